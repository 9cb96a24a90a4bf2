package receipt

import (
	"strconv"

	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/types"
)

// Facts are the parts of a problem that depend on the request.
type Facts struct {
	Decision []byte      // the decision id
	Nonce    types.Nonce // the next nonce of the account; 0: omitted
	Used     types.TxID  // the record that has the ref; all zeros: omitted
	Index    uint16      // of the item of a batch, if Item is set
	Item     bool        // the problem is that of an item
	Asset    string      // that an account lacks; empty: omitted, with Missing
	Missing  types.Amount
	Detail   string // replaces the default sentence; plain ASCII without quotes
}

// Problem appends p as application/problem+json (RFC 9457).
func Problem(to []byte, p event.Problem, f Facts) []byte {
	detail := p.Detail()
	if f.Detail != "" {
		detail = f.Detail
	}
	to = append(append(to, `{"type":"urn:macronode:problem:`...), p.Code()...)
	to = text(to, `","title":`, p.Code())
	to = strconv.AppendInt(append(to, `,"status":`...), int64(p.Status()), 10)
	to = text(append(to, ','), `"detail":`, detail)
	to = text(append(to, ','), `"code":`, p.Code())
	to = strconv.AppendBool(append(to, `,"retryable":`...), p.Retryable())
	to = text(append(to, ','), `"decision_id":`, f.Decision)
	if f.Nonce > 0 {
		to = strconv.AppendUint(append(to, `,"expected_nonce":`...), uint64(f.Nonce), 10)
	}
	if f.Asset != "" {
		to = text(to, `,"asset":`, f.Asset)
		to = append(f.Missing.Append(append(to, `,"missing_minor":"`...)), '"')
	}
	if f.Item {
		to = strconv.AppendUint(append(to, `,"index":`...), uint64(f.Index), 10)
	}
	if f.Used != (types.TxID{}) {
		id := TxID(f.Used)
		to = text(to, `,"txid":`, id[:])
	}
	return append(to, '}')
}

// Rejection appends the problem that a rejected command of any plane keeps as its answer.
func Rejection(to []byte, s *record.Sealed, index uint16, r *record.Record) (answer []byte, status int) {
	id := RecordID(s.Journal, types.Position{LSN: s.LSN, Index: index})
	f := Facts{Decision: id[:], Nonce: r.Nonce, Used: r.PriorRef}
	if r.Kind == record.Batched {
		f.Index, f.Item = r.Items, true
	}
	return Problem(to, r.Problem, f), r.Problem.Status()
}
