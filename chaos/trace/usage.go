package trace

import (
	"encoding/binary"

	"macronode/core/record"
	"macronode/core/types"
)

// A UsageEvent is an event in a record of usage. Its name is a ref of its tenant.
type UsageEvent struct {
	Name    types.NameHash
	Content types.RequestHash
	Value   uint64
}

// UsageKind is that of records of usage, and usageEvent the size of an event in one. Both are repeated here independently of
// core.
const (
	UsageKind  = 1 // of the accounting plane
	usageEvent = 16 + 16 + 8
)

// UsageEvents returns the events of a record; none if it is not one of usage.
func UsageEvents(r *record.Record) (all []UsageEvent) {
	if r.Kind != record.PlaneKind(types.PlaneAccounting, UsageKind) {
		return nil
	}
	b := r.Payload[1+3*8:]
	for range 2 { // the dimension and the labels
		b = b[1+int(b[0]):]
	}
	for ; len(b) >= usageEvent; b = b[usageEvent:] {
		all = append(all, UsageEvent{types.NameHash(b[:16]), types.RequestHash(b[16:32]), binary.LittleEndian.Uint64(b[32:])})
	}
	return all
}
