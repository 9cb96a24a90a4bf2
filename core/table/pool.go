package table

import (
	"slices"
	"unsafe"

	"macronode/core/types"
)

// Pool maps K to V. Any row can leave. A row keeps its place until it leaves, and the place that
// was freed last is taken next: undoing additions and removals in the opposite order restores
// every place.
//
// Invariants:
//
//	T1  every row is found from its key
//	T2  sum is the sum of the rows' hashes
//	T3  every place below Capacity is either taken or free
type Pool[K, V Hashable] struct {
	seed  types.Hash64
	sum   types.Hash64
	index index
	rows  []row[K, V]
	free  []uint32 // places of free rows; the last is taken next
}

// NewPool returns a Pool with memory for limit rows.
func NewPool[K, V Hashable](limit int, seed types.Hash64) Pool[K, V] {
	return Pool[K, V]{seed: seed, index: newIndex(limit), rows: make([]row[K, V], 0, limit), free: make([]uint32, 0, limit)}
}

// PoolBytes is the memory that NewPool takes for limit rows.
func PoolBytes[K, V Hashable](limit int) int64 { return Bytes[K, V](limit) + SliceBytes[uint32](limit) }

// SliceBytes is the memory of a slice of many elements of T.
func SliceBytes[T any](many int) int64 {
	var one T
	return int64(many) * int64(unsafe.Sizeof(one))
}

// Len is the number of rows, Room the number of rows that still fit.
func (p *Pool[K, V]) Len() int  { return len(p.rows) - len(p.free) }
func (p *Pool[K, V]) Room() int { return cap(p.rows) - p.Len() }

// Capacity is the number of places that were ever taken. Every place is below it.
func (p *Pool[K, V]) Capacity() int { return len(p.rows) }

// Hash depends on the rows and not on their places.
func (p *Pool[K, V]) Hash() types.Hash64 { return p.sum }

// Find returns the place of k's row.
func (p *Pool[K, V]) Find(k K) (place uint32, ok bool) {
	s, _ := p.find(k)
	at := p.index.slots[s].at
	return at - 1, at != 0
}

// Row returns the row at a place that is taken.
func (p *Pool[K, V]) Row(place uint32) (K, V) { return p.rows[place].key, p.rows[place].val }

// Key returns the key of the row at a place that is taken. It must not be changed, and is valid until the row leaves.
func (p *Pool[K, V]) Key(place uint32) *K { return &p.rows[place].key }

// At returns the row at a place below Capacity, if one is there.
func (p *Pool[K, V]) At(place uint32) (k K, v V, taken bool) {
	r := &p.rows[place]
	if at, ok := p.Find(r.key); !ok || at != place {
		return k, v, false
	}
	return r.key, r.val, true
}

// Put adds k, which must be absent, and returns its place. The caller has checked Room.
func (p *Pool[K, V]) Put(k K, v V) (place uint32) {
	types.Assert(p.Room() > 0, "table: put without room")
	s, tag := p.find(k)
	types.Assert(p.index.slots[s].at == 0, "table: put twice")
	if n := len(p.free); n > 0 {
		place, p.free = p.free[n-1], p.free[:n-1]
	} else {
		place = uint32(len(p.rows))
		p.rows = p.rows[:place+1]
	}
	p.rows[place] = row[K, V]{k, v}
	p.index.slots[s] = slot{place + 1, tag}
	p.sum += p.rows[place].hash()
	return place
}

// Set replaces the value of the row at a place that is taken.
func (p *Pool[K, V]) Set(place uint32, v V) {
	r := &p.rows[place]
	p.sum -= r.hash()
	r.val = v
	p.sum += r.hash()
}

// Drop removes the row at a place.
func (p *Pool[K, V]) Drop(place uint32) {
	r := &p.rows[place]
	s, _ := p.find(r.key)
	types.Assert(p.index.slots[s].at == place+1, "table: dropped twice")
	p.sum -= r.hash()
	p.index.free(s)
	p.free = append(p.free, place)
}

func (p *Pool[K, V]) find(k K) (s int, tag uint32) {
	tag = uint32(k.HashInto(p.seed))
	for s = p.index.first(tag); ; s = p.index.next(s) {
		x := p.index.slots[s]
		if x.at == 0 || x.tag == tag && p.rows[x.at-1].key == k {
			return s, tag
		}
	}
}

// CopyTo overwrites dst, reusing its memory.
func (p *Pool[K, V]) CopyTo(dst *Pool[K, V]) {
	if len(p.rows) > 0 || len(dst.rows) > 0 || len(p.index.slots) != len(dst.index.slots) {
		p.index.copyTo(&dst.index) // untouched memory stays untouched
	}
	dst.seed, dst.sum = p.seed, p.sum
	rows, free := dst.rows[:0], dst.free[:0]
	if cap(rows) != cap(p.rows) {
		rows, free = make([]row[K, V], 0, cap(p.rows)), make([]uint32, 0, cap(p.rows))
	}
	dst.rows, dst.free = append(rows, p.rows...), append(free, p.free...)
}

// Check returns the first invariant that does not hold.
func (p *Pool[K, V]) Check() error {
	taken := make([]bool, len(p.rows))
	for _, s := range p.index.slots {
		if s.at > 0 {
			if int(s.at) > len(p.rows) || taken[s.at-1] {
				return ErrUnreachableRow
			}
			taken[s.at-1] = true
		}
	}
	var sum types.Hash64
	for i := range p.rows {
		if !taken[i] {
			continue
		}
		if place, ok := p.Find(p.rows[i].key); !ok || place != uint32(i) {
			return ErrUnreachableRow
		}
		sum += p.rows[i].hash()
	}
	for _, place := range p.free {
		if int(place) >= len(taken) || taken[place] {
			return ErrFreeList
		}
		taken[place] = true
	}
	switch {
	case slices.Contains(taken, false):
		return ErrFreeList
	case sum != p.sum:
		return ErrHashSum
	}
	return nil
}
