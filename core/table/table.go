// Package table is the flat map that state is made of: open addressing over dense
// rows, room taken once, a hash that is kept as it changes.
//
//	Table:  key ──► slot ──► place of the row; rows stay where they are for ever
//	Fifo:   the same over a ring: the oldest row is the only one that leaves
//	Pool:   the same with free places: any row leaves, and another takes its place
//
// There is no Go map in state, because its order is chance and its growth a pause;
// no pointer leaves, so that CopyTo is a copy. Places depend on history: equal for
// all who fold one journal, and never a ground for a decision.
package table

import (
	"errors"
	"unsafe"

	"macronode/core/types"
)

// What Check may find.
var (
	ErrUnreachableRow = errors.New("T1: a row is not found from its key")
	ErrHashSum        = errors.New("T2: the sum is not that of the rows")
	ErrFreeList       = errors.New("T3: a place is neither taken nor free, or both") // of a Pool
)

// Table maps K to V, and keeps every row it was given but for those that came last.
//
// Invariants:
//
//	T1  every row is found from its key
//	T2  sum is the sum of the rows' hashes
type Table[K, V Hashable] struct {
	seed  types.Hash64 // of the slots only: a stranger's names must not pile up
	sum   types.Hash64
	index index
	rows  []row[K, V]

	inSavepoint   bool
	savepointRows int         // how many rows there were at the Mark
	undoLog       []change[V] // of those, what changed since, the latest last
}

// change is a value that a row had.
type change[V Hashable] struct {
	place uint32
	val   V
}

type row[K, V Hashable] struct {
	key K
	val V
}

func (r *row[K, V]) hash() types.Hash64 { return r.val.HashInto(r.key.HashInto(0)) }

// New takes room for limit rows.
func New[K, V Hashable](limit int, seed types.Hash64) Table[K, V] {
	return Table[K, V]{seed: seed, index: newIndex(limit), rows: make([]row[K, V], 0, limit)}
}

// Bytes is the memory that New takes for limit rows.
func Bytes[K, V Hashable](limit int) int64 {
	return int64(limit)*int64(unsafe.Sizeof(row[K, V]{})) + int64(slotsFor(limit))*int64(unsafe.Sizeof(slot{}))
}

// ReserveUndo takes room to come back: for so many changes of rows after a Mark.
func (t *Table[K, V]) ReserveUndo(changes int) { t.undoLog = make([]change[V], 0, changes) }

// UndoBytes is the memory that Log takes.
func UndoBytes[V Hashable](changes int) int64 { return SliceBytes[change[V]](changes) }

// Len is how many rows there are, Room how many more may come.
func (t *Table[K, V]) Len() int  { return len(t.rows) }
func (t *Table[K, V]) Room() int { return cap(t.rows) - len(t.rows) }

// Hash is the same for the same rows, in whatever order they came.
func (t *Table[K, V]) Hash() types.Hash64 { return t.sum }

// Find is the place of k's row.
func (t *Table[K, V]) Find(k K) (place uint32, ok bool) {
	s, _ := t.find(k)
	at := t.index.slots[s].at
	return at - 1, at != 0
}

// Get returns the value of k, or the zero value.
func (t *Table[K, V]) Get(k K) (v V, ok bool) {
	if place, ok := t.Find(k); ok {
		return t.rows[place].val, true
	}
	return v, false
}

// Row is the row at a place.
func (t *Table[K, V]) Row(place uint32) (K, V) { return t.rows[place].key, t.rows[place].val }

// Put sets the value of k and says where its row is. The caller has seen that
// there is room.
func (t *Table[K, V]) Put(k K, v V) (place uint32) {
	s, tag := t.find(k)
	if at := t.index.slots[s].at; at != 0 {
		t.Set(at-1, v)
		return at - 1
	}
	types.Assert(t.Room() > 0, "table: put without room")
	t.rows = append(t.rows, row[K, V]{k, v})
	place = uint32(len(t.rows) - 1)
	t.index.slots[s] = slot{place + 1, tag}
	t.sum += t.rows[place].hash()
	return place
}

// Set changes the value of the row at a place.
func (t *Table[K, V]) Set(place uint32, v V) {
	r := &t.rows[place]
	if t.inSavepoint && int(place) < t.savepointRows {
		types.Assert(len(t.undoLog) < cap(t.undoLog), "table: more changes than may be taken back")
		t.undoLog = append(t.undoLog, change[V]{place, r.val})
	}
	t.sum -= r.hash()
	r.val = v
	t.sum += r.hash()
}

// Savepoint begins to note what changes; Undo takes it all back, Keep keeps it.
func (t *Table[K, V]) Savepoint() {
	types.Assert(!t.inSavepoint, "table: marked twice")
	t.inSavepoint, t.savepointRows = true, len(t.rows)
}

func (t *Table[K, V]) Undo() {
	types.Assert(t.inSavepoint, "table: undo without a mark")
	t.inSavepoint = false
	for len(t.rows) > t.savepointRows {
		t.DropLast()
	}
	for i := len(t.undoLog) - 1; i >= 0; i-- {
		t.Set(t.undoLog[i].place, t.undoLog[i].val)
	}
	t.undoLog = t.undoLog[:0]
}

func (t *Table[K, V]) Commit() {
	types.Assert(t.inSavepoint, "table: keeps without a mark")
	t.inSavepoint, t.undoLog = false, t.undoLog[:0]
}

// DropLast drops the row that came last.
func (t *Table[K, V]) DropLast() {
	types.Assert(len(t.rows) > 0, "table: unput of nothing")
	r := &t.rows[len(t.rows)-1]
	s, _ := t.find(r.key)
	t.sum -= r.hash()
	t.index.free(s)
	t.rows = t.rows[:len(t.rows)-1]
}

// find is the slot of k, or the free one where it belongs.
func (t *Table[K, V]) find(k K) (s int, tag uint32) {
	tag = uint32(k.HashInto(t.seed))
	for s = t.index.first(tag); ; s = t.index.next(s) {
		x := t.index.slots[s]
		if x.at == 0 || x.tag == tag && t.rows[x.at-1].key == k {
			return s, tag
		}
	}
}

// CopyTo overwrites dst, reusing its memory.
func (t *Table[K, V]) CopyTo(dst *Table[K, V]) {
	types.Assert(!t.inSavepoint && !dst.inSavepoint, "table: copied while marked")
	if cap(dst.undoLog) != cap(t.undoLog) {
		dst.ReserveUndo(cap(t.undoLog))
	}
	if len(t.rows) > 0 || len(dst.rows) > 0 || len(t.index.slots) != len(dst.index.slots) {
		t.index.copyTo(&dst.index) // untouched memory stays untouched
	}
	dst.seed, dst.sum = t.seed, t.sum
	rows := dst.rows[:0]
	if cap(rows) != cap(t.rows) {
		rows = make([]row[K, V], 0, cap(t.rows))
	}
	dst.rows = append(rows, t.rows...)
}

// Check returns the first invariant that does not hold.
func (t *Table[K, V]) Check() error {
	var sum types.Hash64
	for i := range t.rows {
		if place, ok := t.Find(t.rows[i].key); !ok || place != uint32(i) {
			return ErrUnreachableRow
		}
		sum += t.rows[i].hash()
	}
	if sum != t.sum {
		return ErrHashSum
	}
	return nil
}
