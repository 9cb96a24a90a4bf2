package table

import (
	"errors"
	"testing"
	"unsafe"

	"macronode/ci/flip"
	"macronode/core/words"
)

// TestHashForgetsNothing: of a table, only the sum is hashed, and the sum is of whole
// rows.
func TestHashForgetsNothing(t *testing.T) {
	r := row[words.ID, words.Amount]{}
	flip.Every(t, &r, func() words.Hash64 { return r.hash() })
	tab := New[words.ID, words.Amount](2, 1)
	flip.Every(t, &tab, tab.Hash, "seed: of the slots", "index: finds rows", "rows: the sum stands for them",
		"marked: until Undo or Keep", "mark: until Undo or Keep", "log: until Undo or Keep")
	fifo := NewFifo[words.ID, words.Amount](2, 1)
	flip.Every(t, &fifo, fifo.Hash, "seed: of the slots", "index: finds rows", "rows: the sum stands for them",
		"head: where in the ring", "count: the sum stands for the rows")
	pool := NewPool[words.ID, words.Amount](2, 1)
	flip.Every(t, &pool, pool.Hash, "seed: of the slots", "index: finds rows", "rows: the sum stands for them", "free: where no row is")
}

// TestPoolCheckFinds: a row that was lost, a sum that is wrong, a place that nobody or
// that two have.
func TestPoolCheckFinds(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*Pool[words.Tenant, words.Amount])
		want  error
	}{
		"nothing":           {func(*Pool[words.Tenant, words.Amount]) {}, nil},
		"slots":             {func(p *Pool[words.Tenant, words.Amount]) { clear(p.index.slots) }, ErrFree},
		"seed":              {func(p *Pool[words.Tenant, words.Amount]) { p.seed = 2 }, ErrLost},
		"places":            {func(p *Pool[words.Tenant, words.Amount]) { p.rows[0], p.rows[2] = p.rows[2], p.rows[0] }, ErrLost},
		"keys":              {func(p *Pool[words.Tenant, words.Amount]) { p.rows[2].key = p.rows[0].key }, ErrLost},
		"a slot beyond":     {func(p *Pool[words.Tenant, words.Amount]) { p.index.slots[home(p, 0)].at = 9 }, ErrLost},
		"two of one place":  {func(p *Pool[words.Tenant, words.Amount]) { p.index.slots[home(p, 0)].at = 3 }, ErrLost},
		"value":             {func(p *Pool[words.Tenant, words.Amount]) { p.rows[2].val.Lo++ }, ErrSum},
		"sum":               {func(p *Pool[words.Tenant, words.Amount]) { p.sum++ }, ErrSum},
		"a place forgotten": {func(p *Pool[words.Tenant, words.Amount]) { p.free = p.free[:0] }, ErrFree},
		"free and taken":    {func(p *Pool[words.Tenant, words.Amount]) { p.free[0] = 0 }, ErrFree},
		"free twice":        {func(p *Pool[words.Tenant, words.Amount]) { p.free = append(p.free, p.free[0]) }, ErrFree},
		"free beyond":       {func(p *Pool[words.Tenant, words.Amount]) { p.free[0] = 9 }, ErrFree},
	} {
		pool := NewPool[words.Tenant, words.Amount](4, 1)
		for k := range words.Tenant(3) {
			pool.Put(k, words.Units(uint64(k)))
		}
		pool.Drop(1)
		c.spoil(&pool)
		if err := pool.Check(); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

// home is the slot of k.
func home(p *Pool[words.Tenant, words.Amount], k words.Tenant) int {
	s, _ := p.find(k)
	return s
}

// TestCheckFinds: a row that was lost, and a sum that is wrong.
func TestCheckFinds(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*Table[words.Tenant, words.Amount], *Fifo[words.Tenant, words.Amount])
		want  error
	}{
		"nothing": {func(*Table[words.Tenant, words.Amount], *Fifo[words.Tenant, words.Amount]) {}, nil},
		"slots": {func(t *Table[words.Tenant, words.Amount], f *Fifo[words.Tenant, words.Amount]) {
			clear(t.index.slots)
			clear(f.index.slots)
		}, ErrLost},
		"seed": {func(t *Table[words.Tenant, words.Amount], f *Fifo[words.Tenant, words.Amount]) {
			t.seed, f.seed = 2, 2
		}, ErrLost},
		"places": {func(t *Table[words.Tenant, words.Amount], f *Fifo[words.Tenant, words.Amount]) {
			t.rows[0], t.rows[1] = t.rows[1], t.rows[0]
			f.rows[0], f.rows[1] = f.rows[1], f.rows[0]
		}, ErrLost},
		"keys": {func(t *Table[words.Tenant, words.Amount], f *Fifo[words.Tenant, words.Amount]) {
			t.rows[1].key = t.rows[0].key
			f.rows[1].key = f.rows[0].key
		}, ErrLost},
		"value": {func(t *Table[words.Tenant, words.Amount], f *Fifo[words.Tenant, words.Amount]) {
			t.rows[1].val.Lo++
			f.rows[1].val.Lo++
		}, ErrSum},
		"sum": {func(t *Table[words.Tenant, words.Amount], f *Fifo[words.Tenant, words.Amount]) {
			t.sum++
			f.sum++
		}, ErrSum},
	} {
		tab, fifo := New[words.Tenant, words.Amount](2, 1), NewFifo[words.Tenant, words.Amount](2, 1)
		for k := range words.Tenant(2) {
			tab.Put(k, words.Units(uint64(k)))
			fifo.Push(k, words.Units(uint64(k)))
		}
		c.spoil(&tab, &fifo)
		if err := tab.Check(); !errors.Is(err, c.want) {
			t.Errorf("table, %s: %v, want %v", name, err, c.want)
		}
		if err := fifo.Check(); !errors.Is(err, c.want) {
			t.Errorf("fifo, %s: %v, want %v", name, err, c.want)
		}
	}
}

// TestBytes: what a table says that it takes is what it has taken, and its slots are
// at most half full.
func TestBytes(t *testing.T) {
	for _, limit := range []int{0, 1, 4, 5, 1000, 1024, 1025} {
		tab, fifo := New[words.Tenant, words.Amount](limit, 0), NewFifo[words.Tenant, words.Amount](limit, 0)
		slots := len(tab.index.slots)
		if slots < 2*limit || slots&(slots-1) != 0 || len(fifo.index.slots) != slots {
			t.Errorf("%d rows find themselves by %d slots", limit, slots)
		}
		want := int64(slots)*int64(unsafe.Sizeof(slot{})) + int64(cap(tab.rows))*int64(unsafe.Sizeof(row[words.Tenant, words.Amount]{}))
		if got := Bytes[words.Tenant, words.Amount](limit); got != want || FifoBytes[words.Tenant, words.Amount](limit) != want {
			t.Errorf("%d rows take %d bytes, and say %d", limit, want, got)
		}
		pool := NewPool[words.Tenant, words.Amount](limit, 0)
		if got := PoolBytes[words.Tenant, words.Amount](limit); len(pool.index.slots) != slots || cap(pool.rows) != limit ||
			got != want+4*int64(cap(pool.free)) || cap(pool.free) != limit {
			t.Errorf("a pool of %d places says that it takes %d bytes", limit, got)
		}
		tab.Log(limit)
		if got := LogBytes[words.Amount](limit); got != int64(cap(tab.log))*int64(unsafe.Sizeof(was[words.Amount]{})) || cap(tab.log) != limit {
			t.Errorf("a log of %d changes says that it takes %d bytes", limit, got)
		}
	}
}
