package history

import (
	"math"

	"macronode/core/types"
)

// A slot is an answered op where it says that it stands.
type slot struct {
	at uint64
	op int32
}

// pack is a place as one number of the same order: what is behind all journals is one.
func pack(p types.Position) uint64 {
	if p.LSN > types.MaxLSN {
		return math.MaxUint64
	}
	return uint64(p.LSN)<<16 | uint64(p.Index)
}

// ascending is slots in the order of their places, those of one place as they were: they
// are dealt by one byte after another, the last byte first, and those bytes in which none
// differ are left out.
func ascending(slots []slot) []slot {
	if len(slots) == 0 {
		return slots
	}
	other := make([]slot, len(slots))
	for shift := 0; shift < 64; shift += 8 {
		var ends [256]int
		for i := range slots {
			ends[byte(slots[i].at>>shift)]++
		}
		if ends[byte(slots[0].at>>shift)] == len(slots) {
			continue
		}
		begin := 0
		for b, n := range ends {
			ends[b] = begin
			begin += n
		}
		for _, s := range slots {
			b := byte(s.at >> shift)
			other[ends[b]] = s
			ends[b]++
		}
		slots, other = other, slots
	}
	return slots
}
