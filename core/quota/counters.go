package quota

import (
	"encoding/binary"
	"errors"

	"macronode/core/table"
	"macronode/core/words"
)

// Looks is at how many rows the hand looks to find one that is idle, in one step.
const Looks = 8

// subject is who is counted within a scope: a number, or a digest.
type subject struct{ of, rest uint64 }

// Mix is h after all of s.
func (s subject) Mix(h words.Hash64) words.Hash64 { return h.Mix(s.of).Mix(s.rest) }

// subject is whom a scope counts a request for.
func (w *Who) subject(scope words.Scope) subject {
	switch scope {
	case words.OfKey:
		return subject{of: uint64(w.Key)}
	case words.OfTenant:
		return subject{of: uint64(w.Tenant)}
	default:
		return subject{binary.LittleEndian.Uint64(w.Peer[:8]), binary.LittleEndian.Uint64(w.Peer[8:])}
	}
}

// nothing is what a row has beside its subject: its counters stand in ends.
type nothing struct{}

// Mix is h.
func (nothing) Mix(h words.Hash64) words.Hash64 { return h }

// counters are those of the subjects of one scope: for each rule of the scope the point
// at which the subject has had nothing, which GCRA calls the theoretical arrival time. A
// row whose points are all past says no more than none: it may leave, and who comes
// again has lost nothing and won nothing.
type counters struct {
	rows  table.Pool[subject, nothing]
	width int     // rules of the scope that count
	ends  []exact // width of each place; zero: nothing was counted. A row has one that is not
	sum   words.Hash64
	hand  uint32 // the place at which it looked last
}

func newCounters(rows, width int, seed words.Hash64) counters {
	if width == 0 {
		rows = 0
	}
	return counters{rows: table.NewPool[subject, nothing](rows, seed), width: width, ends: make([]exact, rows*width)}
}

func countersBytes(rows, width int) int64 {
	if width == 0 {
		rows = 0
	}
	return table.PoolBytes[subject, nothing](rows) + table.Flat[exact](rows*width)
}

// row are the counters at a place.
func (c *counters) row(place uint32) []exact {
	return c.ends[int(place)*c.width : (int(place)+1)*c.width]
}

// endHash is that of a counter of whom, which is all of a row's subject and which counter
// it is; one that counts nothing has none.
func endHash(whom words.Hash64, end exact) words.Hash64 {
	if end.zero() {
		return 0
	}
	return end.Mix(whom)
}

func whom(s subject, slot int) words.Hash64 { return s.Mix(words.Hash64(slot)) }

// find is the place of a subject's row, fresh or shares.
func (c *counters) find(s subject, now words.Instant) uint32 {
	if place, ok := c.rows.Find(s); ok {
		return place
	}
	if c.rows.Room() == 0 {
		c.sweep(now)
	}
	if c.rows.Room() == 0 {
		return shares
	}
	return fresh
}

// set moves one counter of a row.
func (c *counters) set(place uint32, slot int, end exact) {
	s, _ := c.rows.Row(place)
	was := &c.ends[int(place)*c.width+slot]
	h := whom(s, slot)
	c.sum += endHash(h, end) - endHash(h, *was)
	*was = end
}

// idle reports that none of a row's counters counts anything any more.
func (c *counters) idle(place uint32, now words.Instant) bool {
	for _, end := range c.row(place) {
		if (exact{ns: int64(now)}).less(end) {
			return false
		}
	}
	return true
}

// taken reports that a row stands at a place.
func (c *counters) taken(place uint32) bool {
	for _, end := range c.row(place) {
		if !end.zero() {
			return true
		}
	}
	return false
}

// sweep looks at some rows, in turn, and lets those go that are idle.
func (c *counters) sweep(now words.Instant) {
	places := c.rows.Places()
	for range min(Looks, places) {
		if c.hand++; int(c.hand) >= places {
			c.hand = 0
		}
		if c.taken(c.hand) && c.idle(c.hand, now) {
			for slot := range c.width {
				c.set(c.hand, slot, exact{})
			}
			c.rows.Drop(c.hand)
		}
	}
}

func (c *counters) hash() words.Hash64 { return c.sum.Mix(uint64(c.hand)) }

func (c *counters) copyTo(dst *counters) {
	ends := dst.ends
	if len(ends) != len(c.ends) {
		ends = make([]exact, len(c.ends))
	}
	touched := max(c.rows.Places()*c.width, min(dst.rows.Places()*dst.width, len(ends)))
	copy(ends[:touched], c.ends) // untouched memory stays untouched
	c.rows.CopyTo(&dst.rows)
	dst.width, dst.ends, dst.sum, dst.hand = c.width, ends, c.sum, c.hand
}

// check calls each for every counter, and says what of the table does not hold.
func (c *counters) check(each func(s subject, slot int, end exact) error) error {
	if err := c.rows.Check(); err != nil {
		return err
	}
	var sum words.Hash64
	held := 0
	for place := range uint32(c.rows.Places()) {
		if !c.taken(place) {
			continue
		}
		held++
		s, _ := c.rows.Row(place)
		if at, ok := c.rows.Find(s); !ok || at != place {
			return errors.New("G1: counters stand where no row is")
		}
		for slot, end := range c.row(place) {
			sum += endHash(whom(s, slot), end)
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
