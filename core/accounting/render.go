package accounting

import (
	"strconv"

	"macronode/core/record"
	"macronode/core/types"
	"macronode/core/wallet/receipt"
)

const statusAccepted = 202 // of HTTP

// Render appends the answer of a report. The other records of the plane answer no request.
func (*Plane) Render(to []byte, s *record.Sealed, index uint16) (answer []byte, status int, owner types.Tenant, err error) {
	var r record.Record
	if _, err = record.Read(s.Body, index, &r); err != nil {
		return to, 0, 0, err
	}
	report, ok := readReport(&r)
	if !ok {
		return to, 0, 0, receipt.ErrNoAnswer
	}
	to = strconv.AppendUint(append(to, `{"recorded":`...), uint64(report.Recorded), 10)
	to = strconv.AppendUint(append(to, `,"duplicate":`...), uint64(report.Duplicate), 10)
	to = strconv.AppendUint(append(to, `,"late":`...), uint64(report.Late), 10)
	return append(to, '}'), statusAccepted, r.Tenant, nil
}

// ReadReport returns the report that is the record with an index of a frame; false if it is none.
func ReadReport(body []byte, index uint16) (report Report, ok bool) {
	var r record.Record
	if _, err := record.Read(body, index, &r); err != nil {
		return report, false
	}
	return readReport(&r)
}

func readReport(r *record.Record) (report Report, ok bool) {
	if kind, ok := kindOf(r); !ok || kind != kindReported {
		return report, false
	}
	return parseReport(r.Payload)
}
