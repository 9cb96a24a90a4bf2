package placement_test

import (
	"testing"

	"pgregory.net/rapid"

	"macronode/core/placement"
	model "macronode/models/placement"
)

// drawHeld draws which providers have each shard: mostly one, as an upload or a repair leaves them, or none, or several.
func drawHeld(t *rapid.T, shards, providers int) (held [placement.MaxProviders]placement.Set) {
	for shard := range shards {
		for range rapid.SampledFrom([]int{0, 1, 1, 1, 1, 2, 3}).Draw(t, "parts") {
			held[shard] = held[shard].With(rapid.IntRange(0, providers-1).Draw(t, "provider"))
		}
	}
	return held
}

// TestMoveWritesFewShards: the places are those of an upload, each has one shard, as many shards as there are places have one, and no
// assignment of them writes fewer shards.
func TestMoveWritesFewShards(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := drawList(t, 7)
		table, key := placement.New(list), rapid.Uint64().Draw(t, "key")
		n := rapid.IntRange(1, 6).Draw(t, "shards")
		held := drawHeld(t, n, len(list))
		m := table.MoveShards(key, n, &held)
		order := table.Choose(key, n, table.All(), 0)
		var places []int
		for i := range order.Len() {
			places = append(places, order.At(i))
		}
		var there []map[int]bool
		placed, given, written, used := 0, 0, 0, map[int]bool{}
		for shard := range placement.MaxProviders {
			want := m.Places(shard)
			if shard >= n && want != 0 || want.Len() > 1 {
				t.Fatalf("shard %d of %d has places %b", shard, n, want)
			}
			if held[shard] != 0 {
				of := map[int]bool{}
				for i := range list {
					of[i] = held[shard].Has(i)
				}
				there = append(there, of)
			}
			for i := range list {
				if !want.Has(i) {
					continue
				}
				if used[i] {
					t.Fatalf("provider %d is the place of two shards", i)
				}
				used[i] = true
				placed++
				if held[shard] != 0 {
					given++
					written += m.Missing(shard).Len()
				}
			}
		}
		for _, i := range places {
			delete(used, i)
		}
		if len(used) > 0 || placed != min(n, len(places)) || given != min(len(there), len(places)) {
			t.Fatalf("%d shards have a place, %d of those that are there, %v are no places", placed, given, used)
		}
		if least := model.FewestWrites(there, places); written != least {
			t.Fatalf("%d shards are written, %d are enough: held %b in places %v", written, least, held, places)
		}
	})
}

// TestNewProviderMovesOneShard adds a provider: an object keeps the places of its shards, or the new one gets one of them.
func TestNewProviderMovesOneShard(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := drawList(t, placement.MaxProviders)
		before, after := placement.New(list[:max(1, len(list)-1)]), placement.New(list)
		n, key := rapid.IntRange(1, before.Domains()).Draw(t, "shards"), rapid.Uint64().Draw(t, "key")
		var none, held [placement.MaxProviders]placement.Set
		for shard, i := range before.Assign(key, n, &none, before.All()) {
			if i != placement.None {
				held[shard] = held[shard].With(i)
			}
		}
		if m := before.MoveShards(key, n, &held); m.IsNeeded() {
			t.Fatalf("what an upload has written is moved: %+v", m)
		}
		m, moved := after.MoveShards(key, n, &held), 0
		for shard := range n {
			if missing := m.Missing(shard); missing != 0 {
				moved++
				if !missing.Has(len(list) - 1) {
					t.Fatalf("shard %d moves to %b, which is not new", shard, missing)
				}
			}
		}
		if moved > 1 || m.IsNeeded() != (moved > 0) {
			t.Fatalf("%d shards move", moved)
		}
	})
}

// mover moves the parts of an object on disks that fail, and starts again at any step.
type mover struct {
	table  placement.Table
	key    uint64
	n      int
	coded  bool
	names  [placement.MaxProviders]placement.Set // of files, good or not
	good   model.Disks
	move   placement.Move
	before int // good shards, or copies
}

// begin begins the move of what the names of files say.
func (v *mover) begin() {
	if v.coded {
		v.move = v.table.MoveShards(v.key, v.n, &v.names)
	} else {
		v.move = v.table.MoveCopies(v.key, v.n, v.names[0])
	}
}

// safe returns how many shards are readable, or how many copies there are of those that an object has.
func (v *mover) safe() int {
	if v.coded {
		return v.good.Readable()
	}
	return min(v.good.Holders(0), v.n)
}

// draw draws one of some parts.
func (v *mover) draw(t *rapid.T, of func(shard int) placement.Set) (shard, i int) {
	type part struct{ shard, provider int }
	var all []part
	for shard := range placement.MaxProviders {
		for i := range v.table.Len() {
			if of(shard).Has(i) {
				all = append(all, part{shard, i})
			}
		}
	}
	if len(all) == 0 {
		t.Skip("there is no such part")
	}
	p := rapid.SampledFrom(all).Draw(t, "part")
	return p.shard, p.provider
}

// TestMoveLosesNothing writes, verifies and removes parts in any order that a move allows. Writes fail, files are damaged from the
// beginning, and the move begins again from the names at any time, as after a crash. At no step are fewer shards readable than before, or fewer
// copies there, and in the end every part is in its place and nowhere else.
func TestMoveLosesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := drawList(t, 8)
		v := &mover{table: placement.New(list), key: rapid.Uint64().Draw(t, "key"), coded: rapid.Bool().Draw(t, "coded"), good: model.Disks{}}
		v.n = rapid.IntRange(1, v.table.Domains()).Draw(t, "n")
		if v.coded {
			v.n = rapid.IntRange(1, 8).Draw(t, "shards")
			v.names = drawHeld(t, v.n, len(list))
		} else {
			v.names = drawHeld(t, 1, len(list))
		}
		for shard, of := range v.names {
			for i := range list {
				v.good.Set(shard, i, of.Has(i) && rapid.IntRange(0, 5).Draw(t, "damaged") > 0)
			}
		}
		v.before = v.safe()
		v.begin()
		write := func(shard, i int) {
			v.names[shard] = v.names[shard].With(i)
			v.good.Set(shard, i, true)
			v.move.Confirm(shard, i)
		}
		verify := func(shard, i int) {
			if v.good[shard][i] {
				v.move.Confirm(shard, i)
			} else {
				write(shard, i) // from the others
			}
		}
		remove := func(shard, i int) {
			v.names[shard] &^= placement.Set(0).With(i)
			v.good.Set(shard, i, false)
		}
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				if v.safe() < v.before {
					t.Fatalf("%d shards or copies are good, %d were: %v", v.safe(), v.before, v.good)
				}
				v.before = v.safe()
			},
			"write": func(t *rapid.T) {
				shard, i := v.draw(t, v.move.Missing)
				if rapid.IntRange(0, 3).Draw(t, "fails") == 0 {
					v.names[shard] = v.names[shard].With(i) // a file that is not whole
					return
				}
				write(shard, i)
			},
			"verify": func(t *rapid.T) { verify(v.draw(t, v.move.Unsure)) },
			"remove": func(t *rapid.T) { remove(v.draw(t, v.move.Surplus)) },
			"crash":  func(*rapid.T) { v.begin() },
		})
		v.begin()
		for shard := range placement.MaxProviders {
			for i := range list {
				if v.move.Missing(shard).Has(i) {
					write(shard, i)
				}
				if v.move.Unsure(shard).Has(i) {
					verify(shard, i)
				}
			}
			for i := range list {
				if v.move.Surplus(shard).Has(i) {
					remove(shard, i)
				}
			}
			if want := v.move.Places(shard); want != 0 && v.names[shard] != want || v.safe() < v.before {
				t.Fatalf("shard %d is in %b, its places are %b, good %v", shard, v.names[shard], want, v.good)
			}
		}
	})
}

// TestMoveWithoutPlace: of an object that has more shards than there are failure domains, what has no place stays.
func TestMoveWithoutPlace(t *testing.T) {
	list := []placement.Provider{{"a", "x", 1}, {"b", "y", 1}, {"c", "y", 1}}
	table := placement.New(list)
	var held [placement.MaxProviders]placement.Set
	for shard := range 3 {
		held[shard] = held[shard].With(shard)
	}
	m := table.MoveShards(5, 3, &held)
	for shard := range 3 {
		if m.Places(shard) == 0 {
			if m.Confirm(shard, shard); m.Surplus(shard) != 0 || m.Missing(shard) != 0 || m.Unsure(shard) != 0 {
				t.Fatalf("shard %d has no place and moves: %+v", shard, m)
			}
			return
		}
	}
	t.Fatalf("three shards have places in two domains: %+v", m)
}
