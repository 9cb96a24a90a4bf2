package index_test

import (
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"macronode/adapters/index"
)

// TestWritesTablesWhenKeysFill: the index writes a tail when it has many keys and refs, even if
// it has few frames and its interval is long. Until then the node keeps the keys in memory.
func TestWritesTablesWhenKeysFill(t *testing.T) {
	const most = 10
	w := grown(1, 60, 60)
	d := newDesk(t, w, vfs.NewMem(), index.Limits{Frames: 1 << 20, Interval: time.Hour, Keys: most}).open()
	d.start()
	d.comes()
	timeout := time.After(time.Minute)
	for waiting := w.keysAfter(d.kept.Load()); waiting >= most; waiting = w.keysAfter(d.kept.Load()) {
		select {
		case <-d.up:
		case <-timeout:
			t.Fatalf("%d keys and refs wait for a table, at most %d should", waiting, most)
		}
	}
	if total := w.keysAfter(0); total < 4*most {
		t.Errorf("there are %d keys and refs in all: too few to tell", total)
	}
	same(t, w, d.x)
	if err := d.ends(); err != nil {
		t.Error(err)
	}
}

// keysAfter counts the keys and refs of the frames after one.
func (w *world) keysAfter(lsn uint64) (n int) {
	for _, facts := range w.facts[lsn:] {
		for _, f := range facts {
			if f.Key != "" {
				n++
			}
			if f.Ref != "" {
				n++
			}
		}
	}
	return n
}
