package journalfile_test

import (
	"errors"
	"runtime"
	"sync"
	"testing"

	"macronode/adapters/fs"
	"macronode/adapters/journalfile"
	"macronode/chaos/world"
	"macronode/core/record"
	"macronode/core/types"
)

// TestChainReturnsRootsOfDurableFrames: for other frames it returns false, and an unreadable disk
// is an error.
func TestChainReturnsRootsOfDurableFrames(t *testing.T) {
	d := world.NewDisk()
	j, _, _ := recovered(t, d)
	wrote := append(add(t, j, 3), add(t, j, 4)...)
	arena, batch := frames(8, 1, 0)
	if _, err := j.Write(arena, batch); err != nil { // and do not sync
		t.Fatal(err)
	}
	for _, f := range wrote {
		if journal, root, ok, err := j.Chain(f.LSN); !ok || err != nil || journal != ours || root != f.Root {
			t.Errorf("frame %v is of %x with %x: %v, %v", f.LSN, journal, root, ok, err)
		}
	}
	for _, lsn := range []types.LSN{0, 8, 9, types.MaxLSN} {
		if journal, root, ok, err := j.Chain(lsn); ok || err != nil || journal != 0 || root != (types.Root{}) {
			t.Errorf("frame %v, which is not there: %x, %x, %v, %v", lsn, journal, root, ok, err)
		}
	}
	if _, err := j.Sync(); err != nil {
		t.Fatal(err)
	}
	d.Fuse = 0 // reads fail from here on
	if _, _, ok, err := j.Chain(1); ok || err == nil {
		t.Errorf("on a disk that refuses: %v, %v", ok, err)
	}
}

// TestRangeYieldsDurableFrames: in order, over segments and restarts; none if there are none. It
// returns the error of its callback.
func TestRangeYieldsDurableFrames(t *testing.T) {
	d := world.NewDisk()
	var wrote []record.Sealed
	for range 3 {
		j, _, _ := recovered(t, d)
		j.Roll = 1000
		for range 8 {
			wrote = append(wrote, add(t, j, 3)...)
		}
		must(t, j.Close())
	}
	j, _, _ := recovered(t, d)
	last := types.LSN(len(wrote))
	arena, batch := frames(last+1, 2, 0)
	if _, err := j.Write(arena, batch); err != nil { // and do not sync
		t.Fatal(err)
	}
	if n := len(names(t, d)); n < 6 {
		t.Fatalf("%d segments are too few to tell", n)
	}
	for _, from := range []types.LSN{0, 1, 2, 3, last / 2, last - 1, last, last + 1, last + 2, types.MaxLSN} {
		var got []record.Sealed
		must(t, j.Range(from, func(f record.Sealed) error { got = append(got, f); return nil }))
		want := wrote[min(max(from, 1), last+1)-1:]
		if len(got) != len(want) {
			t.Fatalf("from %v: %d frames, want %d", from, len(got), len(want))
		}
		for i := range got {
			if !same(got[i], want[i]) {
				t.Fatalf("from %v: %v in the place of %v", from, got[i].LSN, want[i].LSN)
			}
		}
	}
	enough := errors.New("enough")
	for _, from := range []types.LSN{1, last / 2, last} {
		took := types.LSN(0)
		err := j.Range(from, func(f record.Sealed) error { took++; return enough })
		if took != 1 || !errors.Is(err, enough) {
			t.Errorf("from %v: %d taken after the end, %v", from, took, err)
		}
	}
	d.Fuse = 0
	for _, from := range []types.LSN{1, last / 2} {
		if err := j.Range(from, func(record.Sealed) error { return nil }); err == nil {
			t.Errorf("from %v, on a disk that refuses: no error", from)
		}
	}
}

// TestRangeWhileWriting: beside a writer that rarely syncs, a range has every frame that was
// durable at its start, and none that is not durable at its end. Each frame equals that of Read.
func TestRangeWhileWriting(t *testing.T) {
	dir, err := fs.Make(t.TempDir())
	must(t, err)
	j, _, err := journalfile.Recover(dir, ours, nil)
	must(t, err)
	j.Roll = 4000
	defer func() { must(t, j.Close()) }()
	add(t, j, 3)
	var readers sync.WaitGroup
	written := make(chan struct{})
	over := errors.New("the reader ends")
	for n := range 2 {
		readers.Go(func() {
			for dice := types.NewRand(uint64(n)); ; {
				durable := j.Durable()
				from := types.LSN(1 + dice.Uint64n(uint64(durable)))
				most, next := types.LSN(1+dice.Uint64n(200)), from
				err := j.Range(from, func(f record.Sealed) error {
					if one, err := j.Read(next); err != nil || !same(f, one) {
						t.Errorf("%v in the place of %v, which is read with %v", f.LSN, next, err)
					}
					if next++; next-from == most {
						return over
					}
					return nil
				})
				if got := next - from; errors.Is(err, over) != (got == most) || err != nil && !errors.Is(err, over) || got > most || err == nil && next <= durable {
					t.Errorf("from %v, durable %v: %d frames of %d at most, %v", from, durable, got, most, err)
				}
				select {
				case <-written:
					return
				default:
				}
			}
		})
	}
	for range 100 {
		arena, batch := frames(j.Durable()+1, 3, 0)
		_, err := j.Write(arena, batch)
		must(t, err)
		runtime.Gosched() // written but not durable
		_, err = j.Sync()
		must(t, err)
	}
	close(written)
	readers.Wait()
}
