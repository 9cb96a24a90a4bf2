package storage

import (
	"strconv"

	"macronode/core/record"
	"macronode/core/types"
	"macronode/core/wallet/receipt"
)

// The HTTP statuses of answers.
const (
	statusOK      = 200
	statusCreated = 201
)

// Render appends the answer of a record. Only objects that are stored under their address have one, in one
// piece or by an upload in parts: the S3 interface answers from the row of an object.
func (*Plane) Render(to []byte, s *record.Sealed, index uint16) (answer []byte, status int, owner types.Tenant, err error) {
	var r record.Record
	if _, err = record.Read(s.Body, index, &r); err != nil {
		return to, 0, 0, err
	}
	m, ok := parse(&r)
	if !ok || hasNames(m.kind) && !m.completesAddress() {
		return to, 0, 0, receipt.ErrNoAnswer
	}
	to, _ = m.address.AppendText(append(to, `{"address":"`...))
	to = append(append(to, `","bucket":"`...), m.bucket...)
	to = strconv.AppendUint(append(to, `","size":"`...), m.size, 10)
	status = statusOK
	switch m.kind {
	case kindStored, kindCompleted:
		status = statusCreated
		to = append(to, `","created":true}`...)
	case kindKept:
		to = append(to, `","created":false}`...)
	default:
		to = append(to, `","deleted":true}`...)
	}
	return to, status, r.Tenant, nil
}
