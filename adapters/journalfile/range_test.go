package journalfile_test

import (
	"errors"
	"testing"

	"macronode/chaos/world"
	"macronode/core/record"
	"macronode/core/words"
)

// TestChain: a durable frame is of a journal, and the chain has a value behind it; of
// others there is none, and a disk that cannot be read is no answer.
func TestChain(t *testing.T) {
	d := world.NewDisk()
	j, _, _ := recovered(t, d)
	wrote := append(add(t, j, 3), add(t, j, 4)...)
	arena, batch := frames(8, 1, 0)
	if _, err := j.Write(arena, batch); err != nil { // and not synced
		t.Fatal(err)
	}
	for _, f := range wrote {
		if journal, root, ok, err := j.Chain(f.LSN); !ok || err != nil || journal != ours || root != f.Root {
			t.Errorf("frame %v is of %x with %x: %v, %v", f.LSN, journal, root, ok, err)
		}
	}
	for _, lsn := range []words.LSN{0, 8, 9, words.MaxLSN} {
		if journal, root, ok, err := j.Chain(lsn); ok || err != nil || journal != 0 || root != (words.Root{}) {
			t.Errorf("frame %v, which is not there: %x, %x, %v, %v", lsn, journal, root, ok, err)
		}
	}
	if _, err := j.Sync(); err != nil {
		t.Fatal(err)
	}
	d.Fuse = 0 // from here on nothing is read
	if _, _, ok, err := j.Chain(1); ok || err == nil {
		t.Errorf("on a disk that refuses: %v, %v", ok, err)
	}
}

// TestRange: the durable frames from one on, in order, over segments and lives; none where
// there are none; and it ends with the error of who takes them.
func TestRange(t *testing.T) {
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
	last := words.LSN(len(wrote))
	arena, batch := frames(last+1, 2, 0)
	if _, err := j.Write(arena, batch); err != nil { // and not synced
		t.Fatal(err)
	}
	if n := len(names(t, d)); n < 6 {
		t.Fatalf("%d segments are too few to tell", n)
	}
	for _, from := range []words.LSN{0, 1, 2, 3, last / 2, last - 1, last, last + 1, last + 2, words.MaxLSN} {
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
	for _, from := range []words.LSN{1, last / 2, last} {
		took := words.LSN(0)
		err := j.Range(from, func(f record.Sealed) error { took++; return enough })
		if took != 1 || !errors.Is(err, enough) {
			t.Errorf("from %v: %d taken after the end, %v", from, took, err)
		}
	}
	d.Fuse = 0
	for _, from := range []words.LSN{1, last / 2} {
		if err := j.Range(from, func(record.Sealed) error { return nil }); err == nil {
			t.Errorf("from %v, on a disk that refuses: no error", from)
		}
	}
}
