package index

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2/objstorage/objstorageprovider"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// A builder makes tables of a tail. It reuses the memory for sorting.
type builder struct {
	store *store
	width uint64
	ttl   uint64
	order []ordered
	files int
}

// ordered is a row and the first 16 bytes of its key, which distinguish most keys.
type ordered struct {
	hi, lo uint64
	row    uint32
}

const orderedSize = 24

// build writes a tail, the mark after it, and the removal of expired keys, as tables that are
// ingested together.
func (b *builder) build(t *tail) (mark, error) {
	m := t.last
	if gone := b.expired(&m); gone > m.dropped {
		m.dropped = gone
	}
	g := t.glimpse()
	b.sort(&g)
	w := writing{builder: b}
	err := w.tables(&g, m, m.dropped > t.last.dropped)
	if err = errors.Join(err, w.finish()); err == nil {
		err = b.store.ingest(w.paths)
	}
	if err != nil {
		for _, path := range w.paths {
			_ = b.store.fs.Remove(path) // the next start removes it too
		}
	}
	return m, err
}

// expired returns the first bucket that may have a key within its TTL.
func (b *builder) expired(m *mark) uint64 {
	at := uint64(m.at)
	if at < b.ttl+b.width {
		return 0
	}
	return (at - b.ttl) / b.width
}

// sort orders the rows by key, and those with the same key by arrival.
func (b *builder) sort(g *glimpse) {
	b.order = slices.Grow(b.order[:0], int(g.count))
	for n := uint32(1); n < g.count; n++ {
		key, _ := g.at(n)
		b.order = append(b.order, ordered{word(key), word(key[min(8, len(key)):]), n})
	}
	slices.SortFunc(b.order, func(x, y ordered) int {
		switch {
		case x.hi != y.hi:
			return less(x.hi < y.hi)
		case x.lo != y.lo:
			return less(x.lo < y.lo)
		}
		return less(x.row < y.row)
	})
	for from := 0; from < len(b.order); {
		to := from + 1
		for to < len(b.order) && b.order[to].hi == b.order[from].hi && b.order[to].lo == b.order[from].lo {
			to++
		}
		if to > from+1 {
			sortRun(g, b.order[from:to])
		}
		from = to
	}
}

// sortRun orders rows whose keys have the same prefix; most often they are in order already.
func sortRun(g *glimpse, run []ordered) {
	byKey := func(x, y ordered) int {
		a, _ := g.at(x.row)
		b, _ := g.at(y.row)
		return bytes.Compare(a, b)
	}
	if !slices.IsSortedFunc(run, byKey) {
		slices.SortStableFunc(run, byKey)
	}
}

func less(is bool) int {
	if is {
		return -1
	}
	return 1
}

// word returns the first 8 bytes, padded with zeros.
func word(b []byte) uint64 {
	if len(b) >= 8 {
		return binary.BigEndian.Uint64(b)
	}
	var padded [8]byte
	copy(padded[:], b)
	return binary.BigEndian.Uint64(padded[:])
}

// writing has the tables of one tail while they are written: one per shelf, so that each overlaps
// only the tables with which it must be merged.
type writing struct {
	*builder
	table *sstable.Writer
	shelf uint64
	paths []string
}

func (w *writing) tables(g *glimpse, m mark, drop bool) error {
	if err := w.set(markKey(nil), m.put(nil, w.width)); err != nil {
		return err
	}
	last := keyKey(nil, m.dropped, 0, [16]byte{}) // of the oldest bucket that stays: all later keys are removed
	ending := binary.BigEndian.AppendUint64(nil, word(last)+1)
	for i, o := range w.order {
		key, value := g.at(o.row)
		if family(key[0]) == ofKey && bytes.Compare(key, ending) >= 0 {
			continue // expired before it was written
		}
		if i+1 < len(w.order) && w.order[i+1].hi == o.hi && w.order[i+1].lo == o.lo {
			if behind, _ := g.at(w.order[i+1].row); bytes.Equal(behind, key) {
				continue // the last of them counts
			}
		}
		if drop && family(key[0]) > ofKey {
			if err := w.drop(ending); err != nil {
				return err
			}
			drop = false
		}
		if err := w.set(key, value); err != nil {
			return err
		}
	}
	if drop {
		return w.drop(ending)
	}
	return nil
}

// drop removes all keys of the buckets from one on, by a table of its own.
func (w *writing) drop(from []byte) error {
	if err := w.begin(word(from)); err != nil {
		return err
	}
	return w.table.DeleteRange(from, []byte{byte(ofKey) + 1})
}

func (w *writing) set(key, value []byte) error {
	if at := shelf(key); w.table == nil || at != w.shelf && w.shelf>>56 != uint64(ofMark) {
		if err := w.begin(at); err != nil {
			return err
		}
	} else {
		w.shelf = at
	}
	put := w.table.Set
	if isRemoval(key, value) {
		put = func(key, _ []byte) error { return w.table.Delete(key) }
	}
	if err := put(key, value); err != nil {
		return fmt.Errorf("index: write a table: %w", err)
	}
	return nil
}

func (w *writing) begin(shelf uint64) error {
	if err := w.finish(); err != nil {
		return err
	}
	w.files++
	s := w.store
	path := s.fs.PathJoin(s.dir, next, fmt.Sprintf("%d.sst", w.files))
	f, err := s.fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return fmt.Errorf("index: create a table: %w", err)
	}
	f = vfs.NewSyncingFile(f, vfs.SyncingFileOptions{BytesPerSync: 512 << 10})
	w.table = sstable.NewWriter(objstorageprovider.NewFileWritable(f), s.opts.MakeWriterOptions(0, s.db.TableFormat()))
	w.shelf = shelf
	w.paths = append(w.paths, path)
	return nil
}

// finish makes the current table durable.
func (w *writing) finish() error {
	if w.table == nil {
		return nil
	}
	err := w.table.Close()
	w.table = nil
	if err != nil {
		return fmt.Errorf("index: finish a table: %w", err)
	}
	return nil
}
