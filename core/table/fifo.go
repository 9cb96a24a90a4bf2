package table

import "macronode/core/types"

// Fifo maps K to V. Rows leave in the order in which they were added.
//
// Invariants:
//
//	T1  every row is found from its key
//	T2  sum is the sum of the rows' hashes
type Fifo[K, V Hashable] struct {
	seed  types.Hash64
	sum   types.Hash64
	index index
	rows  []row[K, V] // ring
	head  int
	count int
}

// NewFifo returns a Fifo with memory for limit rows.
func NewFifo[K, V Hashable](limit int, seed types.Hash64) Fifo[K, V] {
	return Fifo[K, V]{seed: seed, index: newIndex(limit), rows: make([]row[K, V], limit)}
}

// FifoBytes is the memory that NewFifo takes for limit rows.
func FifoBytes[K, V Hashable](limit int) int64 { return Bytes[K, V](limit) }

// Len is the number of rows, Room the number of rows that still fit.
func (f *Fifo[K, V]) Len() int  { return f.count }
func (f *Fifo[K, V]) Room() int { return len(f.rows) - f.count }

// Hash depends on the rows and not on their position in the ring. Their values must encode their
// order if it matters.
func (f *Fifo[K, V]) Hash() types.Hash64 { return f.sum }

// Get returns the value of k, or the zero value.
func (f *Fifo[K, V]) Get(k K) (v V, ok bool) {
	s, _ := f.find(k)
	at := f.index.slots[s].at
	if at == 0 {
		return v, false
	}
	return f.rows[at-1].val, true
}

// Push adds k, which must be absent. The caller has checked Room.
func (f *Fifo[K, V]) Push(k K, v V) {
	types.Assert(f.Room() > 0, "table: push without room")
	s, tag := f.find(k)
	types.Assert(f.index.slots[s].at == 0, "table: pushed twice")
	at := f.at(f.count)
	f.rows[at] = row[K, V]{k, v}
	f.index.slots[s] = slot{uint32(at) + 1, tag}
	f.sum += f.rows[at].hash()
	f.count++
}

// Row returns the i-th oldest row.
func (f *Fifo[K, V]) Row(i int) (K, V) {
	r := &f.rows[f.at(i)]
	return r.key, r.val
}

// Pop drops the oldest row.
func (f *Fifo[K, V]) Pop() {
	types.Assert(f.count > 0, "table: pop of an empty Fifo")
	r := &f.rows[f.head]
	s, _ := f.find(r.key)
	f.sum -= r.hash()
	f.index.free(s)
	f.head, f.count = f.at(1), f.count-1
}

// DropNewest drops the newest row.
func (f *Fifo[K, V]) DropNewest() {
	types.Assert(f.count > 0, "table: DropNewest of an empty Fifo")
	r := &f.rows[f.at(f.count-1)]
	s, _ := f.find(r.key)
	f.sum -= r.hash()
	f.index.free(s)
	f.count--
}

// at returns the ring position of the i-th oldest row, whether or not it exists.
func (f *Fifo[K, V]) at(i int) int {
	if i += f.head; i >= len(f.rows) {
		i -= len(f.rows)
	}
	return i
}

func (f *Fifo[K, V]) find(k K) (s int, tag uint32) {
	tag = uint32(k.HashInto(f.seed))
	for s = f.index.first(tag); ; s = f.index.next(s) {
		x := f.index.slots[s]
		if x.at == 0 || x.tag == tag && f.rows[x.at-1].key == k {
			return s, tag
		}
	}
}

// CopyTo overwrites dst, reusing its memory. Free positions are not copied, so that untouched
// memory stays untouched.
func (f *Fifo[K, V]) CopyTo(dst *Fifo[K, V]) {
	rows := dst.rows
	if len(rows) != len(f.rows) {
		rows = make([]row[K, V], len(f.rows))
	}
	if f.count > 0 || dst.count > 0 || len(f.index.slots) != len(dst.index.slots) {
		f.index.copyTo(&dst.index)
	}
	end := min(f.head+f.count, len(f.rows))
	copy(rows[f.head:end], f.rows[f.head:end])
	copy(rows[:f.count-(end-f.head)], f.rows)
	dst.seed, dst.sum, dst.head, dst.count, dst.rows = f.seed, f.sum, f.head, f.count, rows
}

// Check returns the first invariant that does not hold.
func (f *Fifo[K, V]) Check() error {
	var sum types.Hash64
	for i := range f.count {
		r := &f.rows[f.at(i)]
		s, _ := f.find(r.key)
		if f.index.slots[s].at != uint32(f.at(i))+1 {
			return ErrUnreachableRow
		}
		sum += r.hash()
	}
	if sum != f.sum {
		return ErrHashSum
	}
	return nil
}
