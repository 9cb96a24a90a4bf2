package index_test

import (
	"errors"
	"fmt"
	"os"
	"path"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"macronode/adapters/index"
)

// grown returns a world of a number of frames; from one on they differ.
func grown(seed uint64, frames, branch int) *world {
	dice := diced(seed)
	w := newWorld(func(n int) int { return dice(n) })
	w.frames(min(frames, branch))
	dice = diced(seed + 1000)
	w.frames(frames - min(frames, branch))
	return w
}

// TestIndexIsRebuiltOffItsChain: an index is reused only if its mark is on the chain of the
// journal, and rebuilt otherwise.
func TestIndexIsRebuiltOffItsChain(t *testing.T) {
	for what, c := range map[string]struct {
		now     *world
		ttl     time.Duration
		harm    func(vfs.FS) // changes the disk
		runs    int          // number of runs until it serves
		rebuilt uint64
	}{
		"the same journal":        {now: grown(1, 30, 30), runs: 1},
		"the same, longer":        {now: grown(1, 45, 45), runs: 1},
		"another journal":         {now: grown(2, 30, 30), runs: 1, rebuilt: 1},
		"a journal that branched": {now: grown(1, 30, 25), runs: 1, rebuilt: 1},
		"a shorter one":           {now: grown(1, 20, 20), runs: 1, rebuilt: 1},
		"an empty one":            {now: grown(1, 0, 0), runs: 1, rebuilt: 1},
		"another time of keys":    {now: grown(1, 30, 30), ttl: 2 * ttl * time.Millisecond, runs: 1, rebuilt: 1},
		"a table that is gone":    {now: grown(1, 30, 30), harm: func(fs vfs.FS) { remove(fs, "*.sst") }, runs: 2, rebuilt: 1},
		"no manifest":             {now: grown(1, 30, 30), harm: func(fs vfs.FS) { remove(fs, "MANIFEST-*") }, runs: 2, rebuilt: 1},
		"no marker":               {now: grown(1, 30, 30), harm: func(fs vfs.FS) { remove(fs, "marker.manifest*") }, runs: 1},
		"an empty disk":           {now: grown(1, 30, 30), harm: func(fs vfs.FS) { remove(fs, "*") }, runs: 1},
	} {
		fs := vfs.NewMem()
		d := newDesk(t, grown(1, 30, 30), fs, index.Limits{Frames: 7}).open()
		d.start()
		d.comes()
		if err := d.ends(); err != nil {
			t.Fatalf("%s: it ends with %v", what, err)
		}
		if c.harm != nil {
			c.harm(fs)
		}
		d = newDesk(t, c.now, fs, index.Limits{Frames: 7}).open()
		if c.ttl > 0 {
			d.c.TTL = c.ttl
		}
		d.x = index.New(d.c).On(fs, 3)
		runs := 1
		for d.start(); len(d.done) > 0; d.start() {
			if err := d.ends(); err == nil || runs == 5 {
				t.Fatalf("%s: run %d ends with %v", what, runs, err)
			}
			runs++
		}
		d.comes()
		if s := d.x.Stats(); runs != c.runs || s.Rebuilt != c.rebuilt {
			t.Errorf("%s: it serves in run %d, made anew %d times, want run %d and %d", what, runs, s.Rebuilt, c.runs, c.rebuilt)
		}
		if c.ttl == 0 {
			same(t, c.now, d.x)
		}
		if err := d.ends(); err != nil {
			t.Fatalf("%s: it ends with %v", what, err)
		}
	}
}

// remove removes the files that match a pattern.
func remove(fs vfs.FS, like string) {
	names, _ := fs.List("index/tables")
	for _, name := range names {
		if is, _ := path.Match(like, name); is {
			_ = fs.Remove("index/tables/" + name)
			if like != "*" {
				return
			}
		}
	}
}

// TestUnreadableJournalKeepsIndex: while the journal cannot be read, the index is neither used
// nor removed.
func TestUnreadableJournalKeepsIndex(t *testing.T) {
	fs := vfs.NewMem()
	d := newDesk(t, grown(1, 30, 30), fs, index.Limits{}).open()
	d.start()
	d.comes()
	if err := d.ends(); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("the disk is out")
	d.chain = broken
	d.start()
	if err := d.ends(); !errors.Is(err, broken) {
		t.Fatalf("it ends with %v", err)
	}
	d.chain = nil
	d.start()
	d.comes()
	if s := d.x.Stats(); s.Rebuilt != 0 {
		t.Errorf("it was made anew: %+v", s)
	}
	if err := d.ends(); err != nil {
		t.Fatal(err)
	}
}

// TestBranchedFramesRebuildIndex: frames that do not follow are not folded; the index is on
// another chain and is rebuilt.
func TestBranchedFramesRebuildIndex(t *testing.T) {
	d := newDesk(t, grown(1, 20, 20), vfs.NewMem(), index.Limits{Frames: 7}).open()
	d.start()
	d.comes()
	d.x.Offer(grown(1, 30, 15).shelf.frames[20:])
	if err := <-d.done; !errors.Is(err, index.ErrDamaged) {
		t.Fatalf("it ends with %v", err)
	}
	d.w = grown(1, 30, 15)
	d.start()
	d.comes()
	same(t, d.w, d.x)
	if err := d.ends(); err != nil || d.x.Stats().Rebuilt != 1 {
		t.Fatalf("it ends with %v: %+v", err, d.x.Stats())
	}
}

// TestRotIsDetected flips a bit in each table. No wrong answer is given: the index reports
// damage, and is rebuilt.
func TestRotIsDetected(t *testing.T) {
	found := 0
	for n := range 40 / slow {
		w := grown(uint64(n), 60, 60)
		fs := vfs.NewMem()
		d := newDesk(t, w, fs, index.Limits{Frames: 20, Cache: 1}).open()
		d.start()
		d.comes()
		if err := d.ends(); err != nil {
			t.Fatal(err)
		}
		flip(t, fs, w.pick)
		for runs := 1; ; runs++ {
			d.start()
			err := d.come()
			if err == nil {
				if agrees(t, w, d.x) {
					err = d.ends()
				} else {
					err = <-d.done
				}
			}
			if err == nil {
				break
			}
			if found++; runs > 4 {
				t.Fatalf("bit %d: run %d ends with %v", n, runs, err)
			}
		}
	}
	if found < 10/slow {
		t.Errorf("%d of %d bits were found out: too few to tell", found, 40/slow)
	}
}

// A judge accepts ErrDamaged and fails on any other difference.
type judge struct{ *testing.T }

type damaged struct{}

func (j judge) Fatalf(format string, args ...any) {
	j.Helper()
	reported := fmt.Sprintf(format, args...)
	if strings.Contains(reported, index.ErrDamaged.Error()) || strings.Contains(reported, index.ErrShut.Error()) {
		panic(damaged{})
	}
	j.T.Fatal(reported)
}

// agrees compares with the model; false if the index reports damage.
func agrees(t *testing.T, w *world, x *index.Indexer) (ok bool) {
	t.Helper()
	defer func() {
		if why := recover(); why != nil {
			if _, is := why.(damaged); !is {
				panic(why)
			}
			ok = false
		}
	}()
	same(judge{t}, w, x)
	return true
}

// flip flips a bit of some table.
func flip(t *testing.T, fs vfs.FS, pick chance) {
	t.Helper()
	names, err := fs.List("index/tables")
	if err != nil {
		t.Fatal(err)
	}
	var tables []string
	for _, name := range names {
		if strings.HasSuffix(name, ".sst") {
			tables = append(tables, name)
		}
	}
	f, err := fs.OpenReadWrite("index/tables/"+tables[pick(len(tables))], vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	size, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	b, at := make([]byte, 1), int64(pick(int(size.Size())))
	if _, err := f.ReadAt(b, at); err != nil {
		t.Fatal(err)
	}
	b[0] ^= 1 << pick(8)
	if _, err := f.WriteAt(b, at); err != nil {
		t.Fatal(err)
	}
}

// TestDiskErrorKeepsIndex: a disk that rejects operations is no reason to remove the index.
func TestDiskErrorKeepsIndex(t *testing.T) {
	w := grown(1, 30, 30)
	var full atomic.Bool
	h := &hook{at: func(int, errorfs.Op) error {
		if full.Load() {
			return &os.PathError{Op: "write", Err: syscall.ENOSPC}
		}
		return nil
	}}
	d := newDesk(t, w, errorfs.Wrap(vfs.NewMem(), h), index.Limits{Frames: 7}).open()
	d.start()
	d.comes()
	if err := d.ends(); err != nil {
		t.Fatal(err)
	}
	full.Store(true)
	for range 4 {
		d.start()
		if err := d.ends(); !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("it ends with %v", err)
		}
	}
	full.Store(false)
	d.start()
	if s := d.x.Stats(); s.Rebuilt != 0 || s.Kept.LSN != 30 {
		t.Errorf("it was made anew: %+v", s)
	}
	if err := d.ends(); err != nil {
		t.Fatal(err)
	}
}
