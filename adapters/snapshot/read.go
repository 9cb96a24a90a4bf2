package snapshot

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"macronode/adapters/fs"
	"macronode/core/state"
	"macronode/core/types"
)

// Look reads only the head of a snapshot.
func Look(fsys fs.FS, lsn types.LSN) (Head, error) {
	r, err := open(fsys, lsn)
	if err != nil {
		return Head{}, err
	}
	return r.head, r.file.Close()
}

// Load loads a snapshot into a new state. Step, if not nil, is called between blocks and may
// return an error. After ErrDoubt or any other error the state is unusable. After state.ErrRoom,
// the limits are too small for any snapshot and for the journal.
func Load(fsys fs.FS, lsn types.LSN, s *state.State, step func() error) (Head, error) {
	h, end, err := read(fsys, lsn, s.Load, step)
	switch {
	case errors.Is(err, state.ErrRow):
		return h, fmt.Errorf("%w: %s: %w", ErrDoubt, Name(lsn), err)
	case err != nil:
		return h, err
	case s.LSN != h.LSN || s.At != h.At || s.Hash() != end.state:
		return h, doubt(lsn, "its rows are another state")
	}
	return h, nil // Maker checked the state before writing
}

// Check reads a whole snapshot without loading it.
func Check(fsys fs.FS, lsn types.LSN, step func() error) (Head, error) {
	h, _, err := read(fsys, lsn, func([]byte) error { return nil }, step)
	return h, err
}

func doubt(lsn types.LSN, why string) error {
	return fmt.Errorf("%w: %s: %s", ErrDoubt, Name(lsn), why)
}

// reader reads a snapshot item by item.
type reader struct {
	lsn     types.LSN
	head    Head
	file    fs.File
	size    int64
	off     int64
	buf     []byte
	sum     end // of the items so far
	scratch []byte
}

func open(fsys fs.FS, lsn types.LSN) (r *reader, err error) {
	r = &reader{lsn: lsn}
	if r.file, err = fsys.Open(Name(lsn)); err != nil {
		return nil, fmt.Errorf("snapshot: open: %w", err)
	}
	if r.size, err = r.file.Size(); err == nil {
		r.buf = make([]byte, min(max(r.size, 0), prefixSize+most+sumSize))
		err = r.begin()
	}
	if err != nil {
		return nil, errors.Join(err, r.file.Close())
	}
	return r, nil
}

func (r *reader) begin() error {
	m, payload, err := r.next()
	if err != nil {
		return err
	}
	if m != headMagic {
		return doubt(r.lsn, "it does not begin with its head")
	}
	if r.head, err = head(payload); err != nil {
		return fmt.Errorf("%s: %w", Name(r.lsn), err)
	}
	if r.head.LSN != r.lsn || r.lsn == 0 || r.lsn > types.MaxLSN || r.head.At < 0 {
		return doubt(r.lsn, "it is of another frame")
	}
	r.scratch = r.sum.add(r.scratch, payload)
	return nil
}

// next returns the next item, valid until the next call.
func (r *reader) next() (m magic, payload []byte, err error) {
	n, err := r.file.ReadAt(r.buf[:min(int64(len(r.buf)), max(0, r.size-r.off))], r.off)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, nil, fmt.Errorf("snapshot: read %s: %w", Name(r.lsn), err)
	}
	b := r.buf[:n]
	if n < prefixSize || u32(b[4:]) > most || n < prefixSize+int(u32(b[4:]))+sumSize {
		return 0, nil, doubt(r.lsn, fmt.Sprintf("it ends or is invalid at byte %d", r.off))
	}
	body := prefixSize + int(u32(b[4:]))
	if crc32.Checksum(b[:body], castagnoli()) != u32(b[body:]) {
		return 0, nil, doubt(r.lsn, fmt.Sprintf("it is invalid at byte %d", r.off))
	}
	r.off += int64(body) + sumSize
	return magic(u32(b)), b[prefixSize:body], nil
}

// read passes the rows of a snapshot to row. If the snapshot is invalid, some rows may have been
// passed.
func read(fsys fs.FS, lsn types.LSN, row func([]byte) error, step func() error) (h Head, e end, err error) {
	r, err := open(fsys, lsn)
	if err != nil {
		return h, e, err
	}
	defer r.file.Close() //nolint:errcheck // it was only read
	for {
		m, payload, err := r.next()
		switch {
		case err != nil:
			return r.head, e, err
		case m == endMagic:
			return r.head, r.sum, r.whole(payload)
		case m != blockMagic:
			return r.head, e, doubt(lsn, "an item that has no place there")
		}
		r.scratch = r.sum.add(r.scratch, payload)
		if err := r.rows(payload, row); err != nil {
			return r.head, e, err
		}
		if step != nil {
			if err := step(); err != nil {
				return r.head, e, err
			}
		}
	}
}

func (r *reader) rows(payload []byte, row func([]byte) error) error {
	for len(payload) > 0 {
		if len(payload) < rowPrefix {
			return doubt(r.lsn, "a row that is cut short")
		}
		n := rowPrefix + int(payload[0]) + int(payload[1])<<8
		if n > len(payload) {
			return doubt(r.lsn, "a row that is cut short")
		}
		if err := row(payload[rowPrefix:n]); err != nil {
			return err
		}
		payload = payload[n:]
		r.sum.rows++
	}
	return nil
}

// whole returns why the snapshot is incomplete, and sets the hash from its end.
func (r *reader) whole(payload []byte) error {
	switch {
	case len(payload) != endSize, r.off != r.size:
		return doubt(r.lsn, "it does not end with its end")
	case u64(payload) != r.sum.rows, types.Root(payload[16:]) != r.sum.chain:
		return doubt(r.lsn, "its end is that of another")
	}
	r.sum.state = types.Hash64(u64(payload[8:]))
	return nil
}
