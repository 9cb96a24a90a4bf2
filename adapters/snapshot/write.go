package snapshot

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"

	"macronode/adapters/fs"
	"macronode/core/state"
	"macronode/core/types"
)

const dirty = 1 << 20 // bytes between syncs: larger writes would delay the syncs of others

// Write makes a snapshot of s, which is as of h. It is named and durable when Write returns.
// Step, if not nil, is called between blocks and may return an error.
func Write(fsys fs.FS, h Head, s *state.State, step func() error) (bytes int64, err error) {
	types.Assert(s.LSN == h.LSN && s.At == h.At, "snapshot: a head of another state")
	name := Name(h.LSN)
	if err := fsys.Remove(name + ".tmp"); err != nil && !errors.Is(err, os.ErrNotExist) { // from an earlier process
		return 0, fmt.Errorf("snapshot: remove what is left of %s: %w", name, err)
	}
	f, err := fsys.Create(name + ".tmp")
	if err != nil {
		return 0, fmt.Errorf("snapshot: create %s: %w", name, err)
	}
	w := writer{file: f, step: step}
	w.write(h, s)
	if err = errors.Join(w.err, f.Close()); err != nil {
		return 0, fmt.Errorf("snapshot: write %s: %w", name, err)
	}
	if err := fsys.Rename(name+".tmp", name); err != nil {
		return 0, fmt.Errorf("snapshot: name %s: %w", name, err)
	}
	if err := fsys.SyncDir(); err != nil {
		return 0, fmt.Errorf("snapshot: sync the directory for %s: %w", name, err)
	}
	return w.off, nil
}

// Same returns why a snapshot differs from the one that a state as of its frame makes. Rows are
// compared as by state.RowSum.
func Same(fsys fs.FS, h Head, s *state.State) error {
	var saved, made state.RowSum
	head, e, err := read(fsys, h.LSN, func(row []byte) error { saved.Add(row); return nil }, nil)
	if err != nil {
		return err
	}
	s.Dump(made.Add)
	if head != h || e.state != s.Hash() || saved.Root() != made.Root() {
		return doubt(h.LSN, "it is not what the journal makes of it")
	}
	return nil
}

// writer writes rows in blocks. After an error it does nothing. Without a file it only counts and
// hashes.
type writer struct {
	file    fs.File
	step    func() error
	off     int64
	unsaved int64
	rows    []byte // rows of the open block
	whole   []byte
	scratch []byte
	sum     end
	err     error
}

func (w *writer) write(h Head, s *state.State) {
	payload := h.put()
	w.scratch = w.sum.add(w.scratch, payload)
	w.item(headMagic, payload)
	s.Dump(w.row)
	w.block()
	w.sum.state = s.Hash()
	w.item(endMagic, w.sum.put())
	w.sync(1)
}

func (w *writer) row(b []byte) {
	types.Assert(rowPrefix+len(b) <= most, "snapshot: a row that no block has room for")
	if len(w.rows)+rowPrefix+len(b) > most {
		w.block()
	}
	w.rows = append(binary.LittleEndian.AppendUint16(w.rows, uint16(len(b))), b...)
	w.sum.rows++
}

func (w *writer) block() {
	if len(w.rows) == 0 || w.err != nil {
		w.rows = w.rows[:0]
		return
	}
	w.scratch = w.sum.add(w.scratch, w.rows)
	w.item(blockMagic, w.rows)
	w.rows = w.rows[:0]
	if w.sync(dirty); w.err == nil && w.step != nil {
		w.err = w.step()
	}
}

func (w *writer) item(m magic, payload []byte) {
	if w.err != nil || w.file == nil {
		return
	}
	w.whole = put(w.whole[:0], m, payload)
	_, w.err = w.file.WriteAt(w.whole, w.off)
	w.off, w.unsaved = w.off+int64(len(w.whole)), w.unsaved+int64(len(w.whole))
}

// sync makes written data durable, if there are at least that many bytes.
func (w *writer) sync(least int64) {
	if w.err != nil || w.file == nil || w.unsaved < least {
		return
	}
	w.err, w.unsaved = w.file.Sync(), 0
}

// Sweep removes snapshots without a final name, and named ones that are not wanted.
func Sweep(fsys fs.FS, wanted func(types.LSN) bool) error {
	names, err := fsys.List()
	if err != nil {
		return fmt.Errorf("snapshot: list: %w", err)
	}
	all, err := List(fsys)
	if err != nil {
		return err
	}
	var gone []string
	for _, name := range names {
		if strings.HasSuffix(name, leftover) {
			gone = append(gone, name)
		}
	}
	for _, lsn := range all {
		if !wanted(lsn) {
			gone = append(gone, Name(lsn))
		}
	}
	for _, name := range gone {
		if err := fsys.Remove(name); err != nil {
			return fmt.Errorf("snapshot: remove %s: %w", name, err)
		}
	}
	if len(gone) == 0 {
		return nil
	}
	if err := fsys.SyncDir(); err != nil {
		return fmt.Errorf("snapshot: sync the directory: %w", err)
	}
	return nil
}
