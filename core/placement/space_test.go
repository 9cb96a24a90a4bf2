package placement_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"macronode/core/placement"
	model "macronode/models/placement"
)

// drawState draws what is known of some providers, for writes of about ten bytes.
func drawState(t *rapid.T, providers int) (s placement.State) {
	for i := range providers {
		if rapid.IntRange(0, 3).Draw(t, "failed") > 0 {
			s.Healthy = s.Healthy.With(i)
		}
		s.Spare[i] = rapid.SampledFrom([]uint64{0, 1, 9, 10, 11, 1 << 40}).Draw(t, "spare")
	}
	return s
}

// TestWritersAreThoseWithRoom compares the providers of an upload with the model, W1 and W2.
func TestWritersAreThoseWithRoom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := drawList(t, placement.MaxProviders)
		table, key, s := placement.New(list), rapid.Uint64().Draw(t, "key"), drawState(t, len(list))
		n := rapid.IntRange(1, table.Domains()).Draw(t, "n")
		required, bytes := rapid.IntRange(1, n).Draw(t, "required"), rapid.SampledFrom([]uint64{0, 1, 10, 1 << 50}).Draw(t, "bytes")
		var disks []model.Disk
		var ranked, want []int
		for i := range list { // the order of preference of single providers
			ranked = append(ranked, i)
		}
		slices.SortStableFunc(ranked, func(a, b int) int {
			both := placement.Set(0).With(a).With(b)
			if first := table.Order(key, both, 0); first.At(0) == a {
				return -1
			}
			return 1
		})
		for _, i := range ranked {
			disks = append(disks, model.Disk{Domain: list[i].Domain, Failed: !s.Healthy.Has(i), Spare: s.Spare[i]})
		}
		for _, at := range model.Writers(disks, n, required, bytes) {
			want = append(want, ranked[at])
		}
		is := table.Writers(key, n, required, bytes, &s)
		var got []int
		for i := range is.Len() {
			got = append(got, is.At(i))
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%d of %v, %d required, %d bytes, %+v: %v, want %v", n, list, required, bytes, s, got, want)
		}
	})
}

// TestShardWritersAreThoseWithRoom: each shard has a provider of its own, as W1 and W2 say, and the one where it belongs if that has room.
func TestShardWritersAreThoseWithRoom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := drawList(t, placement.MaxProviders)
		for i := range list { // with shared domains the model would need to know which of them has a shard
			list[i].Domain = list[i].Name
		}
		table, key, s := placement.New(list), rapid.Uint64().Draw(t, "key"), drawState(t, len(list))
		n := rapid.IntRange(1, len(list)).Draw(t, "n")
		required, bytes := rapid.IntRange(1, n).Draw(t, "required"), rapid.SampledFrom([]uint64{0, 1, 10, 1 << 50}).Draw(t, "bytes")
		places := table.Choose(key, n, table.All(), 0)
		used, worst, count := placement.Set(0), 0, 0
		for shard, i := range table.ShardWriters(key, n, required, bytes, &s) {
			if i == placement.None {
				continue
			}
			if used.Has(i) || shard >= n {
				t.Fatalf("shard %d is in provider %d, as another one", shard, i)
			}
			used, count = used.With(i), count+1
			disk := model.Disk{Failed: !s.Healthy.Has(i), Spare: s.Spare[i]}
			worst = max(worst, disk.Rank(bytes))
			if room := s.Room(bytes); room.Has(places.At(shard)) && i != places.At(shard) {
				t.Fatalf("shard %d is in provider %d, and %d has room for it", shard, i, places.At(shard))
			}
		}
		room := s.Room(bytes).Len()
		if want := min(n, max(room, required)); count != want || worst > 0 && room >= required {
			t.Fatalf("%d of %d shards, want %d; the worst of rank %d, %d have room, %d required", count, n, want, worst, room, required)
		}
		for i := range list {
			better := model.Disk{Failed: !s.Healthy.Has(i), Spare: s.Spare[i]}
			if !used.Has(i) && count <= required && better.Rank(bytes) < worst {
				t.Fatalf("provider %d of rank %d is passed over, another one of rank %d is used", i, better.Rank(bytes), worst)
			}
		}
	})
}
