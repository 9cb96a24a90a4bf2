package table_test

import (
	"errors"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"macronode/core/table"
	"macronode/core/types"
)

// number spreads well. clash has three hashes, so that rows are displaced and many tags are
// equal.
type (
	number uint32
	clash  uint32
)

func (n number) HashInto(h types.Hash64) types.Hash64 { return h.Mix(uint64(n)) }
func (c clash) HashInto(h types.Hash64) types.Hash64  { return h.Mix(uint64(c % 3)) }

func TestTableMatchesMap(t *testing.T) {
	t.Run("number", func(t *testing.T) { rapid.Check(t, compareTable[number]) })
	t.Run("clash", func(t *testing.T) { rapid.Check(t, compareTable[clash]) })
}

// compareTable compares a table with a map under random operations.
func compareTable[K interface {
	~uint32
	table.Hashable
}](t *rapid.T) {
	limit, changes := rapid.IntRange(0, 20).Draw(t, "limit"), rapid.IntRange(0, 6).Draw(t, "changes")
	seed := types.Hash64(rapid.Uint64().Draw(t, "seed"))
	tab, model, places := table.New[K, number](limit, seed), map[K]number{}, map[K]uint32{}
	tab.ReserveUndo(changes)
	spare := table.New[K, number](3, 0)
	var (
		marked bool
		then   map[K]number // at the savepoint
		logged int          // changes of older rows since
	)
	set := func(t *rapid.T, k K, v number, do func()) {
		if _, known := then[k]; marked && known {
			if logged == changes {
				mustBreak(t, "a change more than may be taken back", do)
				return
			}
			logged++
		}
		do()
		model[k] = v
	}
	key := rapid.Uint32Range(0, 29)
	value := rapid.Custom(func(t *rapid.T) number { return number(rapid.Uint32().Draw(t, "value")) })
	t.Repeat(map[string]func(*rapid.T){
		"put": func(t *rapid.T) {
			k, v := K(key.Draw(t, "key")), value.Draw(t, "value")
			_, known := model[k]
			if !known && len(model) == limit {
				mustBreak(t, "a put without room", func() { tab.Put(k, v) })
				return
			}
			set(t, k, v, func() {
				place := tab.Put(k, v)
				if was, ok := places[k]; ok && was != place {
					t.Fatalf("%v moved from %d to %d", k, was, place)
				}
				places[k] = place
			})
		},
		"set": func(t *rapid.T) {
			if len(model) == 0 {
				t.Skip("no row")
			}
			k := rapid.SampledFrom(slices.Sorted(maps.Keys(model))).Draw(t, "key")
			v := value.Draw(t, "value")
			set(t, k, v, func() { tab.Set(places[k], v) })
		},
		"drop last": func(t *rapid.T) {
			if len(model) == 0 {
				mustBreak(t, "DropLast of an empty table", tab.DropLast)
				return
			}
			if marked {
				t.Skip("the mark counts the rows")
			}
			last, _ := tab.Row(uint32(tab.Len() - 1))
			tab.DropLast()
			delete(model, last)
			delete(places, last)
		},
		"mark": func(t *rapid.T) {
			if marked {
				mustBreak(t, "a second mark", tab.Savepoint)
				mustBreak(t, "a copy in between", func() { tab.CopyTo(&spare) })
				return
			}
			tab.Savepoint()
			marked, then, logged = true, maps.Clone(model), 0
		},
		"undo": func(t *rapid.T) {
			if !marked {
				mustBreak(t, "Undo without a savepoint", tab.Undo)
				mustBreak(t, "Commit without a savepoint", tab.Commit)
				return
			}
			if marked = false; rapid.Bool().Draw(t, "keep") {
				tab.Commit()
				return
			}
			tab.Undo()
			model = then
			maps.DeleteFunc(places, func(k K, _ uint32) bool { _, known := model[k]; return !known })
		},
		"copy": func(t *rapid.T) { // the copy is used from here on; the original is overwritten
			if marked {
				t.Skip("marked")
			}
			tab.CopyTo(&spare)
			for k := range model {
				tab.Set(places[k], ^model[k])
			}
			for k := range K(30) {
				if tab.Room() > 0 {
					tab.Put(k, 7)
				}
			}
			tab, spare = spare, tab
		},
		"": func(t *rapid.T) {
			if err := tab.Check(); err != nil {
				t.Fatal(err)
			}
			if tab.Len() != len(model) || tab.Room() != limit-len(model) {
				t.Fatalf("%d rows and room for %d, the map has %d of %d", tab.Len(), tab.Room(), len(model), limit)
			}
			for k := range K(30) {
				v, ok := tab.Get(k)
				_, found := tab.Find(k)
				if want, known := model[k]; v != want || ok != known || found != known {
					t.Fatalf("%v is %v, %v, the map has %v, %v", k, v, ok, want, known)
				}
				if !ok {
					continue
				}
				place, _ := tab.Find(k)
				if atK, atV := tab.Row(place); place != places[k] || atK != k || atV != v {
					t.Fatalf("%v is at %d, was put at %d; there is %v: %v", k, place, places[k], atK, atV)
				}
			}
			if again := rebuilt(t, model); again != tab.Hash() {
				t.Fatalf("hash %x, put in another order %x", tab.Hash(), again)
			}
		},
	})
}

// rebuilt returns the hash of the same rows, put in another order into a table of another size
// and seed, over other values.
func rebuilt[K interface {
	~uint32
	table.Hashable
}](t *rapid.T, rows map[K]number) types.Hash64 {
	tab := table.New[K, number](len(rows)+1, 99)
	keys := rapid.Permutation(slices.Sorted(maps.Keys(rows))).Draw(t, "order")
	for _, k := range keys {
		tab.Put(k, 5)
	}
	for _, k := range keys {
		tab.Put(k, rows[k])
	}
	return tab.Hash()
}

func mustBreak(t *rapid.T, what string, do func()) {
	defer func() {
		if _, ok := recover().(types.InvariantError); !ok {
			t.Fatalf("%s: no panic", what)
		}
	}()
	do()
}

func TestFifoMatchesSlice(t *testing.T) {
	t.Run("number", func(t *testing.T) { rapid.Check(t, compareFifo[number]) })
	t.Run("clash", func(t *testing.T) { rapid.Check(t, compareFifo[clash]) })
}

// compareFifo compares a Fifo with a slice under random operations.
func compareFifo[K interface {
	~uint32
	table.Hashable
}](t *rapid.T) {
	type row struct {
		key K
		val number
	}
	limit := rapid.IntRange(0, 9).Draw(t, "limit")
	fifo, model := table.NewFifo[K, number](limit, types.Hash64(rapid.Uint64().Draw(t, "seed"))), []row{}
	spare := table.NewFifo[K, number](3, 0)
	key := rapid.Uint32Range(0, 29)
	find := func(k K) int { return slices.IndexFunc(model, func(r row) bool { return r.key == k }) }
	push := func(t *rapid.T) {
		k, v := K(key.Draw(t, "key")), number(rapid.Uint32().Draw(t, "value"))
		switch {
		case len(model) == limit:
			mustBreak(t, "a push without room", func() { fifo.Push(k, v) })
		case find(k) >= 0:
			mustBreak(t, "a second push", func() { fifo.Push(k, v) })
		default:
			fifo.Push(k, v)
			model = append(model, row{k, v})
		}
	}
	t.Repeat(map[string]func(*rapid.T){
		"push":  push,
		"again": push,
		"pop": func(t *rapid.T) {
			if len(model) == 0 {
				mustBreak(t, "Pop of an empty Fifo", fifo.Pop)
				return
			}
			fifo.Pop()
			model = model[1:]
		},
		"drop newest": func(t *rapid.T) {
			if len(model) == 0 {
				mustBreak(t, "DropNewest of an empty Fifo", fifo.DropNewest)
				return
			}
			fifo.DropNewest()
			model = model[:len(model)-1]
		},
		"copy": func(*rapid.T) { // the copy is used from here on; the original is emptied
			fifo.CopyTo(&spare)
			for fifo.Len() > 0 {
				fifo.Pop()
			}
			for k := range K(limit) {
				fifo.Push(k, 7)
			}
			fifo, spare = spare, fifo
		},
		"": func(t *rapid.T) {
			if err := fifo.Check(); err != nil {
				t.Fatal(err)
			}
			if fifo.Len() != len(model) || fifo.Room() != limit-len(model) {
				t.Fatalf("%d rows and room for %d, the slice has %d of %d", fifo.Len(), fifo.Room(), len(model), limit)
			}
			fresh := table.NewFifo[K, number](limit, 99)
			for i, want := range model {
				if k, v := fifo.Row(i); k != want.key || v != want.val {
					t.Fatalf("row %d is %v: %v, want %v", i, k, v, want)
				}
				fresh.Push(want.key, want.val)
			}
			if fresh.Hash() != fifo.Hash() {
				t.Fatalf("hash %x, elsewhere in the ring %x", fifo.Hash(), fresh.Hash())
			}
			for k := range K(30) {
				v, ok := fifo.Get(k)
				if i := find(k); ok != (i >= 0) || ok && v != model[i].val || !ok && v != 0 {
					t.Fatalf("%v is %v, %v, in the slice at %d", k, v, ok, i)
				}
			}
		},
	})
}

func TestPoolMatchesMap(t *testing.T) {
	t.Run("number", func(t *testing.T) { rapid.Check(t, comparePool[number]) })
	t.Run("clash", func(t *testing.T) { rapid.Check(t, comparePool[clash]) })
}

// comparePool compares a Pool with a map under random operations.
func comparePool[K interface {
	~uint32
	table.Hashable
}](t *rapid.T) {
	limit := rapid.IntRange(0, 9).Draw(t, "limit")
	pool, model, places := table.NewPool[K, number](limit, types.Hash64(rapid.Uint64().Draw(t, "seed"))), map[K]number{}, map[K]uint32{}
	spare := table.NewPool[K, number](3, 0)
	key := rapid.Uint32Range(0, 29)
	put := func(t *rapid.T) {
		k, v := K(key.Draw(t, "key")), number(rapid.Uint32().Draw(t, "value"))
		_, known := model[k]
		switch {
		case len(model) == limit:
			mustBreak(t, "a put without room", func() { pool.Put(k, v) })
		case known:
			mustBreak(t, "a second put", func() { pool.Put(k, v) })
		default:
			model[k], places[k] = v, pool.Put(k, v)
		}
	}
	some := func(t *rapid.T) K {
		if len(model) == 0 {
			t.Skip("no row")
		}
		return rapid.SampledFrom(slices.Sorted(maps.Keys(model))).Draw(t, "key")
	}
	t.Repeat(map[string]func(*rapid.T){
		"put":   put,
		"again": put,
		"drop": func(t *rapid.T) {
			k := some(t)
			pool.Drop(places[k])
			mustBreak(t, "a second drop", func() { pool.Drop(places[k]) })
			delete(model, k)
			delete(places, k)
		},
		"remove and restore": func(t *rapid.T) { // several rows leave and return in the opposite order
			var gone []K
			for range rapid.IntRange(0, len(model)).Draw(t, "many") {
				k := some(t)
				pool.Drop(places[k])
				gone = append(gone, k)
				delete(model, k)
			}
			for _, k := range slices.Backward(gone) {
				if place := pool.Put(k, number(k)); place != places[k] {
					t.Fatalf("%v came back to %d from %d", k, place, places[k])
				}
				model[k] = number(k)
			}
		},
		"copy": func(*rapid.T) { // the copy is used from here on; the original is filled
			pool.CopyTo(&spare)
			for k := range K(limit) {
				if _, known := pool.Find(100 + k); !known && pool.Room() > 0 {
					pool.Put(100+k, 7)
				}
			}
			pool, spare = spare, pool
		},
		"": func(t *rapid.T) {
			if err := pool.Check(); err != nil {
				t.Fatal(err)
			}
			if pool.Len() != len(model) || pool.Room() != limit-len(model) || pool.Capacity() < len(model) {
				t.Fatalf("%d rows in %d places and room for %d, the map has %d of %d", pool.Len(), pool.Capacity(), pool.Room(), len(model), limit)
			}
			for k := range K(30) {
				place, ok := pool.Find(k)
				want, known := model[k]
				if ok != known || ok && place != places[k] {
					t.Fatalf("%v is at %d, %v; the map has it at %d, %v", k, place, ok, places[k], known)
				}
				if !ok {
					continue
				}
				if atK, atV := pool.Row(place); atK != k || atV != want {
					t.Fatalf("at %d is %v: %v, want %v: %v", place, atK, atV, k, want)
				}
			}
			if again := rebuilt(t, model); again != pool.Hash() {
				t.Fatalf("hash %x, of a table %x", pool.Hash(), again)
			}
		},
	})
}

// TestOperationsDoNotAllocate fills, changes, undoes, empties and copies a table.
func TestOperationsDoNotAllocate(t *testing.T) {
	const limit = 100
	tab, tabCopy := table.New[number, number](limit, 1), table.New[number, number](limit, 1)
	fifo, fifoCopy := table.NewFifo[number, number](limit, 1), table.NewFifo[number, number](limit, 1)
	pool, poolCopy := table.NewPool[number, number](limit, 1), table.NewPool[number, number](limit, 1)
	tab.ReserveUndo(limit)
	tabCopy.ReserveUndo(limit)
	taken := testing.AllocsPerRun(100, func() {
		for i := range number(limit) {
			tab.Put(i, i+1)
			fifo.Push(i, i+1)
			pool.Put(i, i+1)
		}
		tab.Savepoint()
		for i := range number(limit) {
			tab.Put(i, i)
		}
		tab.Undo()
		tab.CopyTo(&tabCopy)
		fifo.CopyTo(&fifoCopy)
		pool.CopyTo(&poolCopy)
		for fifo.Len() > 0 {
			fifo.Pop()
			pool.Drop(uint32(pool.Len() - 1))
		}
	})
	if taken != 0 {
		t.Errorf("%v allocations", taken)
	}
	if err := errors.Join(tabCopy.Check(), fifoCopy.Check(), poolCopy.Check()); err != nil || tabCopy.Len() != limit ||
		fifoCopy.Len() != limit || poolCopy.Len() != limit {
		t.Errorf("the copies hold %d, %d and %d: %v", tabCopy.Len(), fifoCopy.Len(), poolCopy.Len(), err)
	}
}
