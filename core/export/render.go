package export

import (
	"strconv"

	"macronode/core/record"
	"macronode/core/types"
	"macronode/core/wallet/receipt"
)

const statusOK = 200 // of HTTP

// Render appends the answer of a change: the position that it names. A new lane, and a sink, answer no request.
func (*Plane) Render(to []byte, s *record.Sealed, index uint16) (answer []byte, status int, owner types.Tenant, err error) {
	var r record.Record
	if _, err = record.Read(s.Body, index, &r); err != nil {
		return to, 0, 0, err
	}
	kind, ok := kindOf(&r)
	if !ok || kind == kindOpened || kind == kindBegun || kind == kindForgotten {
		return to, 0, 0, receipt.ErrNoAnswer
	}
	c, ok := parseChange(kind, r.Payload)
	if !ok {
		return to, 0, 0, receipt.ErrNoAnswer
	}
	return append(strconv.AppendUint(append(to, `{"position":`...), c.position, 10), '}'), statusOK, r.Tenant, nil
}
