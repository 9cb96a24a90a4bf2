// Package table is the flat hash map of the state: open addressing over dense rows, a fixed
// capacity allocated once, and a hash that is updated with every change.
//
//	Table:  key ──► slot ──► place of the row; rows keep their places and stay
//	Fifo:   the same over a ring: only the oldest row leaves
//	Pool:   the same with free places: any row leaves, and its place is reused
//
// The state has no Go map: its order is random and its growth is a pause. No row contains a
// pointer, so that CopyTo is a deep copy. Places depend on history: they are equal in all folds
// of one journal, and no decision may depend on them.
package table

import (
	"errors"
	"unsafe"

	"macronode/core/types"
)

// The errors that Check returns.
var (
	ErrUnreachableRow = errors.New("T1: a row is not found from its key")
	ErrHashSum        = errors.New("T2: the sum is not that of the rows")
	ErrFreeList       = errors.New("T3: a place is neither taken nor free, or both") // of a Pool
)

// Table maps K to V. Rows stay; only the newest can be dropped.
//
// Invariants:
//
//	T1  every row is found from its key
//	T2  sum is the sum of the rows' hashes
type Table[K, V Hashable] struct {
	seed  types.Hash64 // of the slots only: names that a caller chooses must not collide
	sum   types.Hash64
	index index
	rows  []row[K, V]

	inSavepoint   bool
	savepointRows int         // number of rows at the savepoint
	undoLog       []change[V] // previous values of those rows, the latest last
}

// change is the previous value of a row.
type change[V Hashable] struct {
	place uint32
	val   V
}

type row[K, V Hashable] struct {
	key K
	val V
}

func (r *row[K, V]) hash() types.Hash64 { return r.val.HashInto(r.key.HashInto(0)) }

// New returns a Table with memory for limit rows.
func New[K, V Hashable](limit int, seed types.Hash64) Table[K, V] {
	return Table[K, V]{seed: seed, index: newIndex(limit), rows: make([]row[K, V], 0, limit)}
}

// Bytes is the memory that New takes for limit rows.
func Bytes[K, V Hashable](limit int) int64 {
	return int64(limit)*int64(unsafe.Sizeof(row[K, V]{})) + int64(slotsFor(limit))*int64(unsafe.Sizeof(slot{}))
}

// ReserveUndo allocates memory for a number of changes of rows between Savepoint and Undo or
// Commit.
func (t *Table[K, V]) ReserveUndo(changes int) { t.undoLog = make([]change[V], 0, changes) }

// UndoBytes is the memory that ReserveUndo takes.
func UndoBytes[V Hashable](changes int) int64 { return SliceBytes[change[V]](changes) }

// Len is the number of rows, Room the number of rows that still fit.
func (t *Table[K, V]) Len() int  { return len(t.rows) }
func (t *Table[K, V]) Room() int { return cap(t.rows) - len(t.rows) }

// Hash depends on the rows and not on their order.
func (t *Table[K, V]) Hash() types.Hash64 { return t.sum }

// Find returns the place of k's row.
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

// Row returns the row at a place.
func (t *Table[K, V]) Row(place uint32) (K, V) { return t.rows[place].key, t.rows[place].val }

// Put sets the value of k and returns the place of its row. The caller has checked Room.
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

// Set replaces the value of the row at a place.
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

// Savepoint starts to log changes. Undo reverts them, Commit keeps them.
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

// DropLast drops the newest row.
func (t *Table[K, V]) DropLast() {
	types.Assert(len(t.rows) > 0, "table: DropLast of an empty Table")
	r := &t.rows[len(t.rows)-1]
	s, _ := t.find(r.key)
	t.sum -= r.hash()
	t.index.free(s)
	t.rows = t.rows[:len(t.rows)-1]
}

// find returns the slot of k, or the free slot where it belongs.
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
