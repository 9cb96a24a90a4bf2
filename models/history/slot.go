package history

import (
	"math"

	"macronode/core/types"
)

// A slot is an answered operation with its position.
type slot struct {
	at uint64
	op int32
}

// pack returns a position as a number in the same order; all positions past the end are equal.
func pack(p types.Position) uint64 {
	if p.LSN > types.MaxLSN {
		return math.MaxUint64
	}
	return uint64(p.LSN)<<16 | uint64(p.Index)
}

// ascending sorts slots by position, stable, with a radix sort from the last byte to the first.
// Bytes that are equal in all slots are skipped.
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
