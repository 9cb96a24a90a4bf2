package placement_test

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"macronode/core/placement"
)

// drawList draws providers in a few domains.
func drawList(t *rapid.T, most int) []placement.Provider {
	list := make([]placement.Provider, rapid.IntRange(1, most).Draw(t, "providers"))
	for i := range list {
		list[i] = placement.Provider{Name: fmt.Sprintf("p%d", i), Domain: fmt.Sprintf("d%d", rapid.IntRange(0, len(list)-1).Draw(t, "domain")),
			Weight: rapid.Uint32Range(1, placement.MaxWeight).Draw(t, "weight")}
	}
	return list
}

// names returns the names of an order.
func names(list []placement.Provider, o placement.Order) (all []string) {
	for i := range o.Len() {
		all = append(all, list[o.At(i)].Name)
	}
	return all
}

// TestCopiesHaveDistinctDomains: no two copies are in one domain, all are usable, and there are as many as domains allow.
func TestCopiesHaveDistinctDomains(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := drawList(t, placement.MaxProviders)
		table := placement.New(list)
		usable, taken := placement.Set(rapid.Uint32().Draw(t, "usable"))&table.All(), placement.Set(rapid.Uint32().Draw(t, "taken"))&table.All()
		n := rapid.IntRange(0, len(list)).Draw(t, "n")
		chosen := table.Choose(rapid.Uint64().Draw(t, "key"), n, usable, taken)
		free, used := map[string]bool{}, map[string]bool{}
		for i, p := range list {
			if taken.Has(i) {
				used[p.Domain] = true
			}
		}
		for i, p := range list {
			if usable.Has(i) && !used[p.Domain] {
				free[p.Domain] = true
			}
		}
		for i := range chosen.Len() {
			p := list[chosen.At(i)]
			if used[p.Domain] || !usable.Has(chosen.At(i)) {
				t.Fatalf("chose %v of %v, usable %b, taken %b", names(list, chosen), list, usable, taken)
			}
			used[p.Domain] = true
		}
		if chosen.Len() != min(n, len(free)) {
			t.Fatalf("%d copies, want %d in %d domains", chosen.Len(), n, len(free))
		}
	})
}

// TestOrderHasEachProviderOnce, the preferred sets first, and it begins as Choose does.
func TestOrderHasEachProviderOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := drawList(t, placement.MaxProviders)
		table, key := placement.New(list), rapid.Uint64().Draw(t, "key")
		first := placement.Set(rapid.Uint32().Draw(t, "first")) & table.All()
		second := placement.Set(rapid.Uint32().Draw(t, "second")) & table.All()
		order, seen := table.Order(key, first, second), placement.Set(0)
		for i := range order.Len() {
			if at := order.At(i); (i < first.Len() != first.Has(at) || i < (first|second).Len() != (first|second).Has(at)) && len(list) > 1 {
				t.Fatalf("%v does not begin with %b, then %b", names(list, order), first, second)
			}
			seen = seen.With(order.At(i))
		}
		if seen != table.All() || order.Len() != len(list) {
			t.Fatalf("%v of %d", names(list, order), len(list))
		}
		chosen := table.Choose(key, len(list), first, 0)
		for i := range chosen.Len() {
			if chosen.At(i) != order.At(i) {
				t.Fatalf("chooses %v, reads %v", names(list, chosen), names(list, order))
			}
		}
	})
}

// TestNewProviderMovesLittle adds a provider: each file keeps its places or exchanges one of them for the new one.
func TestNewProviderMovesLittle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := drawList(t, placement.MaxProviders)
		before, after := placement.New(list[:max(1, len(list)-1)]), placement.New(list)
		copies := rapid.IntRange(1, before.Domains()).Draw(t, "copies")
		key := rapid.Uint64().Draw(t, "key")
		old, is := before.Choose(key, copies, before.All(), 0), after.Choose(key, copies, after.All(), 0)
		kept := map[int]bool{}
		for i := range old.Len() {
			kept[old.At(i)] = true
		}
		moved := 0
		for i := range is.Len() {
			if !kept[is.At(i)] {
				moved++
				if is.At(i) != len(list)-1 {
					t.Fatalf("%v to %v: moves to an old provider", names(list, old), names(list, is))
				}
			}
		}
		if moved > 1 || is.Len() != copies {
			t.Fatalf("%v to %v", names(list, old), names(list, is))
		}
	})
}

// TestOrderOfListDoesNotMatter: what counts is the names.
func TestOrderOfListDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := drawList(t, 8)
		other := rapid.Permutation(list).Draw(t, "other")
		a, b, key := placement.New(list), placement.New(other), rapid.Uint64().Draw(t, "key")
		copies := rapid.IntRange(1, a.Domains()).Draw(t, "copies")
		if x, y := names(list, a.Choose(key, copies, a.All(), 0)), names(other, b.Choose(key, copies, b.All(), 0)); fmt.Sprint(x) != fmt.Sprint(y) {
			t.Fatalf("%v and %v", x, y)
		}
	})
}

// TestWeightsAreRespected counts the first copies of many files: the share of a provider is that of its weight. The keys
// are consecutive, as the numbers of uploads are.
func TestWeightsAreRespected(t *testing.T) {
	for _, weights := range [][]uint32{{1, 1}, {1, 2, 3}, {1000, 1, 500}, {7, 7, 7, 7, 7, 1}} {
		var list []placement.Provider
		sum := 0.0
		for i, w := range weights {
			list = append(list, placement.Provider{Name: fmt.Sprintf("disk-%d", i), Domain: fmt.Sprint(i), Weight: w})
			sum += float64(w)
		}
		table, counts := placement.New(list), make([]int, len(list))
		const files = 100_000
		for key := range uint64(files) {
			first := table.Choose(key, 1, table.All(), 0)
			counts[first.At(0)]++
		}
		for i, w := range weights {
			share := float64(w) / sum
			want, spread := files*share, math.Sqrt(files*share*(1-share))
			if math.Abs(float64(counts[i])-want) > 5*spread {
				t.Errorf("weights %v: provider %d has %d files, want %.0f ± %.0f", weights, i, counts[i], want, 5*spread)
			}
		}
	}
}

// TestPlacesAreStable: a version that places files elsewhere would not find them first.
func TestPlacesAreStable(t *testing.T) {
	list := []placement.Provider{{"a", "x", 1}, {"b", "y", 2}, {"c", "z", 3}, {"d", "z", 4}}
	table, got := placement.New(list), ""
	for key := range uint64(12) {
		order := table.Order(key, table.All(), 0)
		for i := range order.Len() {
			got += list[order.At(i)].Name
		}
		got += " "
	}
	const want = "cabd bcad dbac cabd dabc dbac abcd bcad dbac dabc cbad bdac "
	if got != want {
		t.Errorf("places %q, want %q", got, want)
	}
}

// TestChooseAllocatesNothing: it is called for each upload and each read.
func TestChooseAllocatesNothing(t *testing.T) {
	table := placement.New([]placement.Provider{{"a", "x", 1}, {"b", "y", 2}, {"c", "z", 3}})
	if n := testing.AllocsPerRun(100, func() {
		_ = table.Choose(7, 2, table.All(), 0)
		_ = table.Order(7, table.All(), 0)
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestShardsHaveDistinctDomains: a shard stays where it is, no two new ones are in one domain, as many shards have a provider as domains allow, and a
// shard returns to the provider that it had.
func TestShardsHaveDistinctDomains(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := drawList(t, placement.MaxProviders)
		table, key := placement.New(list), rapid.Uint64().Draw(t, "key")
		n := rapid.IntRange(1, placement.MaxProviders).Draw(t, "shards")
		var none, held [placement.MaxProviders]placement.Set
		before := table.All()
		if rapid.Bool().Draw(t, "some had failed") {
			before = placement.Set(rapid.Uint32().Draw(t, "before")) & table.All()
		}
		ideal := table.Assign(key, n, &none, before)
		usable := placement.Set(rapid.Uint32().Draw(t, "usable")) & table.All()
		used := map[string]bool{}
		for shard := range n {
			if i := ideal[shard]; i != placement.None && rapid.Bool().Draw(t, "held") {
				held[shard] = held[shard].With(i)
				if usable.Has(i) {
					used[list[i].Domain] = true
				}
			}
		}
		free := 0
		for i, p := range list {
			if usable.Has(i) && !used[p.Domain] {
				used[p.Domain] = true
				free++
			}
		}
		at, seen, lacking, added := table.Assign(key, n, &held, usable), map[string]bool{}, 0, 0
		for shard, i := range at {
			switch {
			case shard >= n:
				if i != placement.None {
					t.Fatalf("shard %d of %d has provider %d", shard, n, i)
				}
				continue
			case held[shard]&usable != 0:
				if !held[shard].Has(i) {
					t.Fatalf("shard %d moves to %d", shard, i)
				}
			case i == placement.None:
				lacking++
				continue
			default:
				added++
				lacking++
			}
			if !usable.Has(i) || seen[list[i].Domain] {
				t.Fatalf("shard %d is in %s: it is used, or not usable", shard, list[i].Name)
			}
			seen[list[i].Domain] = true
		}
		if added != min(lacking, free) {
			t.Fatalf("%d of %d shards get a provider, %d domains are free", added, lacking, free)
		}
		if again := table.Assign(key, n, &held, table.All()); before == table.All() && again != ideal {
			t.Fatalf("%v after %v", again, ideal)
		}
	})
}

// TestDuplicatesLeaveRoom: if there are as many usable domains as shards, each shard has one, even if others have several.
func TestDuplicatesLeaveRoom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := drawList(t, placement.MaxProviders)
		for i := range list {
			list[i].Domain = list[i].Name
		}
		table := placement.New(list)
		usable := placement.Set(rapid.Uint32().Draw(t, "usable")) & table.All()
		n := rapid.IntRange(0, usable.Len()).Draw(t, "shards")
		var held [placement.MaxProviders]placement.Set
		for shard := range n {
			held[shard] = placement.Set(rapid.Uint32().Draw(t, "held")) & table.All()
		}
		got := placement.Set(0)
		for shard, i := range table.Assign(rapid.Uint64().Draw(t, "key"), n, &held, usable) {
			switch {
			case shard >= n:
			case i == placement.None || !usable.Has(i):
				t.Fatalf("shard %d of %d has provider %d; held are %b, usable is %b", shard, n, i, held[:n], usable)
			case held[shard]&usable != 0 && !held[shard].Has(i):
				t.Fatalf("shard %d moves to %d", shard, i)
			case held[shard]&usable == 0 && got.Has(i):
				t.Fatalf("shard %d gets a provider that another one has", shard)
			default:
				got = got.With(i)
			}
		}
	})
}
