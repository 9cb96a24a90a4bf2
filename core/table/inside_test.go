package table

import (
	"errors"
	"testing"
	"unsafe"

	"macronode/ci/hashcoverage"
	"macronode/core/types"
)

// TestHashCoversEveryField shows that the hash of a table is the sum over whole rows.
func TestHashCoversEveryField(t *testing.T) {
	r := row[types.NameHash, types.Amount]{}
	hashcoverage.Every(t, &r, func() types.Hash64 { return r.hash() })
	tab := New[types.NameHash, types.Amount](2, 1)
	hashcoverage.Every(t, &tab, tab.Hash, "seed: affects slots only", "index: finds rows", "rows: covered by the sum",
		"inSavepoint: until Undo or Keep", "savepointRows: until Undo or Keep", "undoLog: until Undo or Keep")
	fifo := NewFifo[types.NameHash, types.Amount](2, 1)
	hashcoverage.Every(t, &fifo, fifo.Hash, "seed: affects slots only", "index: finds rows", "rows: covered by the sum",
		"head: position in the ring", "count: covered by the sum")
	pool := NewPool[types.NameHash, types.Amount](2, 1)
	hashcoverage.Every(t, &pool, pool.Hash, "seed: affects slots only", "index: finds rows", "rows: covered by the sum", "free: places without a row")
}

// TestPoolCheckReportsBrokenInvariants: a lost row, a wrong sum, a place that is neither taken
// nor free or both.
func TestPoolCheckReportsBrokenInvariants(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*Pool[types.Tenant, types.Amount])
		want  error
	}{
		"unchanged":         {func(*Pool[types.Tenant, types.Amount]) {}, nil},
		"slots":             {func(p *Pool[types.Tenant, types.Amount]) { clear(p.index.slots) }, ErrFreeList},
		"seed":              {func(p *Pool[types.Tenant, types.Amount]) { p.seed = 2 }, ErrUnreachableRow},
		"places":            {func(p *Pool[types.Tenant, types.Amount]) { p.rows[0], p.rows[2] = p.rows[2], p.rows[0] }, ErrUnreachableRow},
		"keys":              {func(p *Pool[types.Tenant, types.Amount]) { p.rows[2].key = p.rows[0].key }, ErrUnreachableRow},
		"slot past rows":    {func(p *Pool[types.Tenant, types.Amount]) { p.index.slots[home(p, 0)].at = 9 }, ErrUnreachableRow},
		"two of one place":  {func(p *Pool[types.Tenant, types.Amount]) { p.index.slots[home(p, 0)].at = 3 }, ErrUnreachableRow},
		"value":             {func(p *Pool[types.Tenant, types.Amount]) { p.rows[2].val.Lo++ }, ErrHashSum},
		"sum":               {func(p *Pool[types.Tenant, types.Amount]) { p.sum++ }, ErrHashSum},
		"a place forgotten": {func(p *Pool[types.Tenant, types.Amount]) { p.free = p.free[:0] }, ErrFreeList},
		"free and taken":    {func(p *Pool[types.Tenant, types.Amount]) { p.free[0] = 0 }, ErrFreeList},
		"free twice":        {func(p *Pool[types.Tenant, types.Amount]) { p.free = append(p.free, p.free[0]) }, ErrFreeList},
		"free past rows":    {func(p *Pool[types.Tenant, types.Amount]) { p.free[0] = 9 }, ErrFreeList},
	} {
		pool := NewPool[types.Tenant, types.Amount](4, 1)
		for k := range types.Tenant(3) {
			pool.Put(k, types.MinorUnits(uint64(k)))
		}
		pool.Drop(1)
		c.spoil(&pool)
		if err := pool.Check(); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

// home returns the slot of k.
func home(p *Pool[types.Tenant, types.Amount], k types.Tenant) int {
	s, _ := p.find(k)
	return s
}

// TestCheckReportsBrokenInvariants: a lost row and a wrong sum.
func TestCheckReportsBrokenInvariants(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*Table[types.Tenant, types.Amount], *Fifo[types.Tenant, types.Amount])
		want  error
	}{
		"nothing": {func(*Table[types.Tenant, types.Amount], *Fifo[types.Tenant, types.Amount]) {}, nil},
		"slots": {func(t *Table[types.Tenant, types.Amount], f *Fifo[types.Tenant, types.Amount]) {
			clear(t.index.slots)
			clear(f.index.slots)
		}, ErrUnreachableRow},
		"seed": {func(t *Table[types.Tenant, types.Amount], f *Fifo[types.Tenant, types.Amount]) {
			t.seed, f.seed = 2, 2
		}, ErrUnreachableRow},
		"places": {func(t *Table[types.Tenant, types.Amount], f *Fifo[types.Tenant, types.Amount]) {
			t.rows[0], t.rows[1] = t.rows[1], t.rows[0]
			f.rows[0], f.rows[1] = f.rows[1], f.rows[0]
		}, ErrUnreachableRow},
		"keys": {func(t *Table[types.Tenant, types.Amount], f *Fifo[types.Tenant, types.Amount]) {
			t.rows[1].key = t.rows[0].key
			f.rows[1].key = f.rows[0].key
		}, ErrUnreachableRow},
		"value": {func(t *Table[types.Tenant, types.Amount], f *Fifo[types.Tenant, types.Amount]) {
			t.rows[1].val.Lo++
			f.rows[1].val.Lo++
		}, ErrHashSum},
		"sum": {func(t *Table[types.Tenant, types.Amount], f *Fifo[types.Tenant, types.Amount]) {
			t.sum++
			f.sum++
		}, ErrHashSum},
	} {
		tab, fifo := New[types.Tenant, types.Amount](2, 1), NewFifo[types.Tenant, types.Amount](2, 1)
		for k := range types.Tenant(2) {
			tab.Put(k, types.MinorUnits(uint64(k)))
			fifo.Push(k, types.MinorUnits(uint64(k)))
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

// TestBytesMatchesMemory shows that Bytes is the memory that a table takes, and that its slots
// are at most half full.
func TestBytesMatchesMemory(t *testing.T) {
	for _, limit := range []int{0, 1, 4, 5, 1000, 1024, 1025} {
		tab, fifo := New[types.Tenant, types.Amount](limit, 0), NewFifo[types.Tenant, types.Amount](limit, 0)
		slots := len(tab.index.slots)
		if slots < 2*limit || slots&(slots-1) != 0 || len(fifo.index.slots) != slots {
			t.Errorf("%d rows find themselves by %d slots", limit, slots)
		}
		want := int64(slots)*int64(unsafe.Sizeof(slot{})) + int64(cap(tab.rows))*int64(unsafe.Sizeof(row[types.Tenant, types.Amount]{}))
		if got := Bytes[types.Tenant, types.Amount](limit); got != want || FifoBytes[types.Tenant, types.Amount](limit) != want {
			t.Errorf("%d rows take %d bytes, and say %d", limit, want, got)
		}
		pool := NewPool[types.Tenant, types.Amount](limit, 0)
		if got := PoolBytes[types.Tenant, types.Amount](limit); len(pool.index.slots) != slots || cap(pool.rows) != limit ||
			got != want+4*int64(cap(pool.free)) || cap(pool.free) != limit {
			t.Errorf("PoolBytes(%d) is %d", limit, got)
		}
		tab.ReserveUndo(limit)
		if got := UndoBytes[types.Amount](limit); got != int64(cap(tab.undoLog))*int64(unsafe.Sizeof(change[types.Amount]{})) || cap(tab.undoLog) != limit {
			t.Errorf("UndoBytes(%d) is %d", limit, got)
		}
	}
}
