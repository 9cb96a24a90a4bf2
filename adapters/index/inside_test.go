package index

import (
	"errors"
	"log/slog"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"

	"macronode/core/record"
	"macronode/core/types"
)

// TestRingReturnsFramesInOrder: a ring returns frames in order and without gaps, or reports that
// they are elsewhere. It stays within its limits.
func TestRingReturnsFramesInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most, bytes := rapid.IntRange(1, 6).Draw(t, "frames"), rapid.IntRange(1, 30).Draw(t, "bytes")
		r := newRing(most, bytes)
		before := types.LSN(rapid.IntRange(0, 3).Draw(t, "before")) // frames that were not offered
		offered, next := before, types.LSN(1)
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "offer") {
				var batch []record.Sealed
				for range rapid.IntRange(0, 4).Draw(t, "batch") {
					offered++
					batch = append(batch, record.Sealed{LSN: offered, Body: make([]byte, 1+uint64(offered)%7)})
				}
				r.offer(batch)
			} else {
				s, ok, behind := r.take(next)
				switch {
				case ok && (s.LSN != next || len(s.Body) != int(1+uint64(next)%7)):
					t.Fatalf("frame %v is %v with %d bytes", next, s.LSN, len(s.Body))
				case behind != (!ok && offered > before && offered >= next):
					t.Fatalf("frame %v: there %v, behind %v, offered up to %v", next, ok, behind, offered)
				case ok, behind, next <= before: // from the ring, or from the journal
					next++
				}
			}
			held := 0
			for i := range r.n {
				held += len(r.at(r.first + types.LSN(i)).Body)
			}
			if r.n > most || held > bytes || held != r.bytes {
				t.Fatalf("it has %d of %d frames, %d of %d bytes, and counts %d", r.n, most, held, bytes, r.bytes)
			}
		}
	})
}

// TestStoppedEngineIngestsNothing: the tables of a stopped engine may differ from its state, so
// nothing is ingested.
func TestStoppedEngineIngestsNothing(t *testing.T) {
	reported := 0
	s, err := openStore(vfs.NewMem(), "index", Limits{}.withDefaults(), nil, slog.New(slog.DiscardHandler), func(error) { reported++ })
	if err != nil {
		t.Fatal(err)
	}
	b := builder{store: s, width: 1, ttl: 4}
	full := newTail()
	full.reset(mark{})
	full.last = mark{journal: 1, lsn: 1, lives: lives{{1, 1}}}
	full.link(assetKey(nil, 1, []byte("EUR")), nil, 0)
	s.fail(ErrEngine)
	if _, err := b.build(full); !errors.Is(err, ErrEngine) {
		t.Errorf("a table is ingested: %v", err)
	}
	if n := s.db.Metrics().Total().TablesCount; n > 0 {
		t.Errorf("there are %d tables", n)
	}
	s.fail(errors.New("again"))
	if reported != 1 {
		t.Errorf("reported %d times", reported)
	}
	if names, err := s.fs.List("index/next"); err != nil || len(names) > 0 {
		t.Errorf("left behind: %q, %v", names, err)
	}
	if err := s.close(); err != nil {
		t.Error(err)
	}
}

// TestWipeSurvivesCrash: removed tables do not come back after a crash.
func TestWipeSurvivesCrash(t *testing.T) {
	mem := vfs.NewCrashableMem()
	log := slog.New(slog.DiscardHandler)
	s, err := openStore(mem, "index", Limits{}.withDefaults(), nil, log, func(error) {})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.close(), syncDir(mem, ""), syncDir(mem, "index"), wipe(mem, "index")); err != nil {
		t.Fatal(err)
	}
	if left, err := mem.CrashClone(vfs.CrashCloneCfg{}).List("index"); err != nil || len(left) > 0 {
		t.Errorf("after a crash there are %q, %v", left, err)
	}
}

// TestTailGroups: in a group of any length, a seq and its successors are found as in a list;
// later rows are not visible to an earlier reader.
func TestTailGroups(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tail := newTail()
		tail.reset(mark{})
		var seqs [3][]uint64
		var seq uint64
		for range rapid.IntRange(0, 300).Draw(t, "rows") {
			seq += uint64(rapid.IntRange(1, 3).Draw(t, "step"))
			of := rapid.IntRange(0, 2).Draw(t, "tenant")
			seqs[of] = append(seqs[of], seq)
			tail.link(changeKey(nil, types.Tenant(of), types.Seq(seq)), nil, seq)
		}
		g := tail.glimpse()
		for of := range seqs {
			tail.link(changeKey(nil, types.Tenant(of), types.Seq(seq+1)), nil, seq+1)
		}
		for of, all := range seqs {
			head := g.head(changeKey(nil, types.Tenant(of), 0))
			at, limit := uint64(rapid.IntRange(0, int(seq)+2).Draw(t, "at")), rapid.IntRange(1, 20).Draw(t, "limit")
			upto := 0
			for upto < len(all) && all[upto] <= at {
				upto++
			}
			if n := g.before(head, at); n == 0 != (upto == 0) || n > 0 && g.row(n).pos != all[upto-1] {
				t.Fatalf("the last up to %d of %v is row %d", at, all, n)
			}
			want := all[upto:min(len(all), upto+limit)]
			got := make([]uint64, 0, limit)
			g.after(head, at, limit, func(key, _ []byte) { got = append([]uint64{uint64(seqOf(key))}, got...) })
			if len(got) != len(want) || len(want) > 0 && (got[0] != want[0] || got[len(got)-1] != want[len(want)-1]) {
				t.Fatalf("after %d of %v: %v, want %v", at, all, got, want)
			}
		}
	})
}
