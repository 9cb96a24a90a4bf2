package accounting

import (
	"encoding/hex"
	"strconv"

	"macronode/core/types"
	"macronode/core/wallet/receipt"
)

// AppendJSON appends a slice as a JSON object: all that its digest covers, and the digest. The API and the exports
// send these bytes. No text of a slice needs an escape.
func (s *Slice) AppendJSON(b []byte) []byte {
	b = append(append(append(b, `{"tenant":"`...), s.Tenant.Text()...), '"')
	b = append(append(append(b, `,"dimension":"`...), s.Dimension...), '"')
	b = strconv.AppendUint(append(b, `,"seq":`...), s.Seq, 10)
	b = append(append(append(b, `,"kind":"`...), s.Kind.String()...), '"')
	b = append(receipt.Stamp(append(b, `,"window_from":"`...), s.Window.From), '"')
	b = append(receipt.Stamp(append(b, `,"window_to":"`...), s.Window.To), '"')
	b = append(hex.AppendEncode(append(b, `,"previous":"`...), s.Previous[:]), '"')
	b = append(hex.AppendEncode(append(b, `,"digest":"`...), s.Digest[:]), '"')
	b = append(b, `,"rows":[`...)
	for i := range s.Rows {
		if i > 0 {
			b = append(b, ',')
		}
		b = s.Rows[i].appendJSON(b)
	}
	return append(b, "]}"...)
}

func (r *Row) appendJSON(b []byte) []byte {
	b = append(AppendLabelsJSON(append(b, `{"labels":`...), r.Labels), `,"value":"`...)
	b = append(types.MinorUnits(r.Value).Append(b), '"')
	return append(strconv.AppendUint(append(b, `,"events":`...), r.Events, 10), '}')
}

// AppendLabelsJSON appends the labels of their text as a JSON object.
func AppendLabelsJSON(b, labels []byte) []byte {
	b = append(b, '{')
	for i, l := range ParseLabels(labels) {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(append(append(append(b, '"'), l.Name...), `":"`...), l.Value...), '"')
	}
	return append(b, '}')
}
