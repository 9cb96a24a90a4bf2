package export

import (
	"encoding/binary"

	"macronode/core/record"
	"macronode/core/types"
)

// The kinds of the plane's records. Their numbers are permanent.
const (
	kindOpened      uint8 = iota // a lane was made
	kindSettled                  // the positions up to one were delivered
	kindQuarantined              // a position cannot be exported
	kindResolved                 // a quarantined position was redelivered
	kindRedriven                 // a quarantined position is due for a redelivery
	kindDiscarded                // a quarantined position is not exported
	kindSkipped                  // the positions up to one are not exported
	kindRewound                  // the positions after one are exported again
	kindRemoved                  // a lane has ended
	kindBegun                    // a sink was seen for the first time
	kindForgotten                // a sink was forgotten
	numKinds
)

// kindOf returns the kind of a record of the plane.
func kindOf(r *record.Record) (kind uint8, ok bool) {
	first := record.PlaneKind(types.PlaneExport, 0)
	if r.Kind < first || r.Kind >= first+record.Kind(numKinds) || len(r.Key.Text) > 0 {
		return 0, false
	}
	return uint8(r.Kind - first), true
}

// A change is the payload of all records except those of a new lane and of a sink. All integers are little-endian:
//
//	lane 16 · position 8 · caller 8 · status 2 · reason 1
type change struct {
	lane     types.NameHash
	position uint64
	caller   types.KeyID // 0: the node itself
	status   uint16
	reason   types.ExportReason // 0, unless a position is quarantined
}

const changeSize = 16 + 8 + 8 + 2 + 1

func (c *change) append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint64(append(b, c.lane[:]...), c.position)
	b = binary.LittleEndian.AppendUint64(b, uint64(c.caller))
	return append(binary.LittleEndian.AppendUint16(b, c.status), byte(c.reason))
}

// parseChange reads the payload of a record of a kind.
func parseChange(kind uint8, b []byte) (c change, ok bool) {
	if len(b) != changeSize {
		return c, false
	}
	c = change{lane: types.NameHash(b), position: binary.LittleEndian.Uint64(b[16:]), caller: types.KeyID(binary.LittleEndian.Uint64(b[24:])),
		status: binary.LittleEndian.Uint16(b[32:]), reason: types.ExportReason(b[34])}
	if quarantined := kind == kindQuarantined; quarantined != c.reason.Known() || !quarantined && (c.reason != 0 || c.status != 0) {
		return c, false
	}
	return c, c.position <= MaxPosition && (kind != kindRemoved || c.position == 0)
}

// The payload of a new lane is sink 1+n · stream 1+n, and position 8 unless that is 0. The payload of a sink that was seen
// is sink 1+n · now 1, and of one that was forgotten sink 1+n.
const maxPayload = 1 + MaxSink + 1 + MaxStream + 8

func appendText(b, text []byte) []byte { return append(append(b, byte(len(text))), text...) }

func appendNames(b, sink, stream []byte) []byte { return appendText(appendText(b, sink), stream) }

func appendOpened(b, sink, stream []byte, after uint64) []byte {
	b = appendNames(b, sink, stream)
	if after == 0 {
		return b
	}
	return binary.LittleEndian.AppendUint64(b, after)
}

func appendBegun(b, sink []byte, now bool) []byte { return append(appendText(b, sink), byte(one(now))) }

// parseOpened reads the payload of a new lane.
func parseOpened(t types.Tenant, b []byte) (l Lane, after uint64, ok bool) {
	l, b, ok = cutLane(t, b)
	switch {
	case !ok || len(b) == 0:
		return l, 0, ok
	case len(b) != 8:
		return l, 0, false
	}
	after = binary.LittleEndian.Uint64(b)
	return l, after, after > 0 && after <= MaxPosition
}

// parseBegun reads the payload of a sink that was seen.
func parseBegun(t types.Tenant, b []byte) (sink []byte, now, ok bool) {
	sink, b, ok = cutText(b)
	if !ok || len(b) != 1 || b[0] > 1 {
		return sink, false, false
	}
	return sink, b[0] == 1, t == types.DefaultTenant && isName(sink, MaxSink, sinkChars)
}

// cutLane reads the names of a lane.
func cutLane(t types.Tenant, b []byte) (l Lane, rest []byte, ok bool) {
	sink, b, ok := cutText(b)
	if !ok {
		return l, nil, false
	}
	stream, b, ok := cutText(b)
	if !ok || !validNames(sink, stream) || t == 0 {
		return l, nil, false
	}
	return identify(sink, t, stream), b, true
}

// cutText reads a text after its length of one byte.
func cutText(b []byte) (text, rest []byte, ok bool) {
	if len(b) == 0 || len(b) < 1+int(b[0]) {
		return nil, nil, false
	}
	end := 1 + int(b[0])
	return b[1:end:end], b[end:], true
}
