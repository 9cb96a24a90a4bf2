package index_test

import (
	"context"
	"errors"
	"flag"
	"os"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"macronode/adapters/index"
	"macronode/core/record"
	"macronode/core/types"
)

func TestMain(m *testing.M) {
	if alone() {
		os.Exit(m.Run())
	}
	if slow > 1 {
		_ = flag.Set("rapid.checks", "20")
	}
	goleak.VerifyTestMain(m)
}

// small returns limits that a few frames reach.
func small(pick chance) index.Limits {
	return index.Limits{Frames: 1 + pick(12), Interval: time.Hour, Few: 1, Ring: 1 + pick(6), Cache: 1 << 20, Files: 64, Waiters: 2, Page: 12 + pick(8)}
}

// A desk is an index that runs over a world.
type desk struct {
	tb
	w    *world
	fs   vfs.FS
	x    *index.Indexer
	c    index.Config
	kept atomic.Uint64 // the last frame reported by Indexed
	up   chan struct{} // has a value after a report
	gate chan struct{} // closed: the journal can be read
	stop context.CancelFunc
	done chan error

	chain error // error of Chain
}

// Range waits for the gate.
func (d *desk) Range(from types.LSN, each func(record.Sealed) error) error {
	<-d.gate
	return d.w.shelf.Range(from, each)
}

func (d *desk) Chain(lsn types.LSN) (types.JournalID, types.Root, bool, error) {
	if d.chain != nil {
		return 0, types.Root{}, false, d.chain
	}
	return d.w.shelf.Chain(lsn)
}

func newDesk(t tb, w *world, fs vfs.FS, l index.Limits) *desk {
	d := &desk{tb: t, w: w, fs: fs, up: make(chan struct{}, 1), gate: make(chan struct{})}
	d.c = index.Config{Dir: "index", TTL: ttl * time.Millisecond, Limits: l, Journal: d,
		Indexed: func(lsn types.LSN) {
			d.kept.Store(uint64(lsn))
			select {
			case d.up <- struct{}{}:
			default:
			}
		}}
	d.x = index.New(d.c).On(fs, 3)
	return d
}

// start runs the index, and waits until it is open or has ended.
func (d *desk) start() {
	ctx, stop := context.WithCancel(context.Background())
	d.stop, d.done = stop, make(chan error, 1)
	select {
	case <-d.up:
	default:
	}
	go func() { d.done <- d.x.Run(ctx) }()
	select {
	case <-d.up:
	case err := <-d.done:
		d.done <- err
	}
}

// open opens the gate.
func (d *desk) open() *desk {
	close(d.gate)
	return d
}

// come waits until all durable frames are folded, or the run ends.
func (d *desk) come() error {
	d.Helper()
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	lsn := types.LSN(d.w.shelf.upto.Load())
	if d.x.AwaitFrame(ctx, lsn) {
		return nil
	}
	if ctx.Err() != nil {
		d.Fatalf("it stops at %v of %v", d.x.Mark(), lsn)
	}
	return <-d.done
}

// waiting returns when a number of readers wait.
func (d *desk) waiting(reads int) {
	d.Helper()
	for end := time.Now().Add(time.Minute); d.x.Waiting() < reads; runtime.Gosched() {
		if time.Now().After(end) {
			d.Fatalf("%d reads wait, want %d", d.x.Waiting(), reads)
		}
	}
}

func (d *desk) comes() {
	d.Helper()
	if err := d.come(); err != nil {
		d.Fatalf("it ended: %v", err)
	}
}

func (d *desk) ends() error {
	d.stop()
	return <-d.done
}

func diced(seed uint64) chance {
	dice := types.NewRand(seed)
	return func(n int) int { return int(dice.Uint64n(uint64(n))) }
}

// TestMatchesModel: wherever rows are, in tails or tables, and however often it restarts, the
// index gives the model's answers.
func TestMatchesModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(diced(rapid.Uint64().Draw(t, "seed")))
		d := newDesk(t, w, vfs.NewMem(), small(w.pick)).open()
		w.frames(w.pick(30))
		d.start()
		d.comes()
		for range 1 + w.pick(4) {
			for range 1 + w.pick(5) {
				from := len(w.shelf.frames)
				w.frames(1 + w.pick(8))
				d.x.Offer(w.shelf.frames[from:])
			}
			d.comes()
			same(t, w, d.x)
			if w.pick(3) == 0 {
				if err := d.ends(); err != nil {
					t.Fatalf("it ends with %v", err)
				}
				if last := uint64(len(w.shelf.frames)); d.kept.Load() != last {
					t.Fatalf("the tables have come to %v at the end, want %v", d.kept.Load(), last)
				}
				if _, _, err := d.x.Key(1, types.NameHash{}); !errors.Is(err, index.ErrShut) {
					t.Fatalf("an index that does not run returns %v", err)
				}
				d.start()
				d.comes()
				same(t, w, d.x)
			}
		}
		if err := d.ends(); err != nil {
			t.Fatalf("it ends with %v", err)
		}
		if s := d.x.Stats(); s.Rebuilt > 0 {
			t.Fatalf("it was made anew: %+v", s)
		}
	})
}
