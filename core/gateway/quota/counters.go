package quota

import (
	"encoding/binary"
	"errors"

	"macronode/core/table"
	"macronode/core/types"
)

// Looks is the number of rows that one sweep visits to find an idle one.
const Looks = 8

// subjectKey identifies a subject within a scope: a number or a digest.
type subjectKey struct{ of, rest uint64 }

// HashInto mixes s into h.
func (s subjectKey) HashInto(h types.Hash64) types.Hash64 { return h.Mix(s.of).Mix(s.rest) }

// key returns the subject for which a scope counts a request.
func (w *Subject) key(scope types.QuotaScope) subjectKey {
	switch scope {
	case types.ScopeKey:
		return subjectKey{of: uint64(w.Key)}
	case types.ScopeTenant:
		return subjectKey{of: uint64(w.Tenant)}
	default:
		return subjectKey{binary.LittleEndian.Uint64(w.Peer[:8]), binary.LittleEndian.Uint64(w.Peer[8:])}
	}
}

// noValue is the value of a row: its counters are in times.
type noValue struct{}

// HashInto returns h.
func (noValue) HashInto(h types.Hash64) types.Hash64 { return h }

// counters are the counters of the subjects of one scope: for each rule of the scope, the point
// in time at which the subject has used nothing, which GCRA calls the theoretical arrival time.
// If all points of a row are past, the row is idle and may be removed: without it the results are
// the same.
type counters struct {
	rows    table.Pool[subjectKey, noValue]
	width   int     // rules of the scope that count
	times   []nanos // width of each place; zero: nothing was counted. A row has at least one that is not zero
	sum     types.Hash64
	sweepAt uint32 // the place at which the next sweep starts
}

func newCounters(rows, width int, seed types.Hash64) counters {
	if width == 0 {
		rows = 0
	}
	return counters{rows: table.NewPool[subjectKey, noValue](rows, seed), width: width, times: make([]nanos, rows*width)}
}

func countersBytes(rows, width int) int64 {
	if width == 0 {
		rows = 0
	}
	return table.PoolBytes[subjectKey, noValue](rows) + table.SliceBytes[nanos](rows*width)
}

// row returns the counters at a place.
func (c *counters) row(place uint32) []nanos {
	return c.times[int(place)*c.width : (int(place)+1)*c.width]
}

// endHash is the hash of a counter. subject identifies the subject and the counter; a zero counter
// has no hash.
func endHash(subject types.Hash64, end nanos) types.Hash64 {
	if end.zero() {
		return 0
	}
	return end.HashInto(subject)
}

func subject(s subjectKey, slot int) types.Hash64 { return s.HashInto(types.Hash64(slot)) }

// find returns the place of a subject's row, newRow or sharedRow.
func (c *counters) find(s subjectKey, now types.Instant) uint32 {
	if place, ok := c.rows.Find(s); ok {
		return place
	}
	if c.rows.Room() == 0 {
		c.sweep(now)
	}
	if c.rows.Room() == 0 {
		return sharedRow
	}
	return newRow
}

// set changes one counter of a row.
func (c *counters) set(place uint32, slot int, end nanos) {
	s, _ := c.rows.Row(place)
	was := &c.times[int(place)*c.width+slot]
	h := subject(s, slot)
	c.sum += endHash(h, end) - endHash(h, *was)
	*was = end
}

// idle reports whether all counters of a row are past.
func (c *counters) idle(place uint32, now types.Instant) bool {
	for _, end := range c.row(place) {
		if (nanos{ns: int64(now)}).less(end) {
			return false
		}
	}
	return true
}

// taken reports whether there is a row at a place.
func (c *counters) taken(place uint32) bool {
	for _, end := range c.row(place) {
		if !end.zero() {
			return true
		}
	}
	return false
}

// sweep visits some rows, in turn, and removes idle ones.
func (c *counters) sweep(now types.Instant) {
	places := c.rows.Capacity()
	for range min(Looks, places) {
		if c.sweepAt++; int(c.sweepAt) >= places {
			c.sweepAt = 0
		}
		if c.taken(c.sweepAt) && c.idle(c.sweepAt, now) {
			for slot := range c.width {
				c.set(c.sweepAt, slot, nanos{})
			}
			c.rows.Drop(c.sweepAt)
		}
	}
}

func (c *counters) hash() types.Hash64 { return c.sum.Mix(uint64(c.sweepAt)) }

func (c *counters) copyTo(dst *counters) {
	ends := dst.times
	if len(ends) != len(c.times) {
		ends = make([]nanos, len(c.times))
	}
	touched := max(c.rows.Capacity()*c.width, min(dst.rows.Capacity()*dst.width, len(ends)))
	copy(ends[:touched], c.times) // untouched memory stays untouched
	c.rows.CopyTo(&dst.rows)
	dst.width, dst.times, dst.sum, dst.sweepAt = c.width, ends, c.sum, c.sweepAt
}

// check calls each for every counter, and returns the first invariant of the table that does not
// hold.
func (c *counters) check(each func(s subjectKey, slot int, end nanos) error) error {
	if err := c.rows.Check(); err != nil {
		return err
	}
	var sum types.Hash64
	held := 0
	for place := range uint32(c.rows.Capacity()) {
		if !c.taken(place) {
			continue
		}
		held++
		s, _ := c.rows.Row(place)
		if at, ok := c.rows.Find(s); !ok || at != place {
			return errors.New("G1: a place without a row has counters")
		}
		for slot, end := range c.row(place) {
			sum += endHash(subject(s, slot), end)
			if end.zero() {
				continue
			}
			if err := each(s, slot, end); err != nil {
				return err
			}
		}
	}
	switch {
	case held != c.rows.Len():
		return errors.New("G1: a row counts nothing")
	case sum != c.sum:
		return errors.New("G4: the sum is not that of the counters")
	}
	return nil
}
