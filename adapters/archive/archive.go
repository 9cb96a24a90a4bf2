// Package archive keeps finished files compressed in their own directory, and shows both
// directories as one.
//
//	names, Open ─► live, otherwise kept, block by block
//	Move:  live ─► kept: write · sync · read back and compare · name · sync directory ─► remove from live · sync directory
//
// A kept file has the suffix ".zst": zstd frames of one block of the file each, followed by their
// sizes, in the seekable format of zstd's contrib. `zstd -d` restores the file byte for byte. A
// crash between any two steps leaves the live file, or both.
package archive

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/klauspost/compress/zstd"

	"macronode/adapters/fs"
)

const (
	suffix   = ".zst"
	leftover = suffix + ".tmp"
	shelf    = 16      // decompressed blocks in memory, of all files together
	dirty    = 1 << 20 // bytes between syncs: larger writes would delay the syncs of others
)

var errRead = fmt.Errorf("archive: %w: it is kept for reading", os.ErrPermission)

// Archive is both directories as one fs.FS. Writes go to the live one. Any goroutine may read
// while one moves files.
type Archive struct {
	fs.FS // the live directory
	kept  fs.FS
	read  *zstd.Decoder
	pack  *zstd.Encoder

	mu     sync.Mutex
	blocks []held // cache of blocks, the most recently used last
}

// held is a decompressed block of a file.
type held struct {
	name string
	at   int
	text []byte
}

// New returns an archive that shows live files first, then kept ones.
func New(live, kept fs.FS) (*Archive, error) {
	read, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(2*block), zstd.WithDecoderMaxWindow(2*block))
	if err != nil {
		return nil, fmt.Errorf("archive: %w", err)
	}
	pack, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(block), zstd.WithEncoderCRC(true), zstd.WithSingleSegment(true))
	if err != nil {
		return nil, fmt.Errorf("archive: %w", err)
	}
	return &Archive{FS: live, kept: kept, read: read, pack: pack}, nil
}

// List returns the names of all files, live or kept.
func (a *Archive) List() ([]string, error) {
	names, err := a.FS.List() // first: a file that moves meanwhile is kept before it is removed
	if err != nil {
		return nil, err
	}
	kept, err := a.Kept().List()
	if err != nil {
		return nil, err
	}
	names = append(names, kept...)
	slices.Sort(names)
	return slices.Compact(names), nil
}

// Kept returns the kept files alone, for reading.
func (a *Archive) Kept() fs.FS { return kept{a.kept, a} }

// kept is the kept files alone, under their live names.
type kept struct {
	fs.FS
	a *Archive
}

func (k kept) List() (names []string, err error) {
	all, err := k.FS.List()
	if err != nil {
		return nil, fmt.Errorf("archive: list: %w", err)
	}
	for _, name := range all {
		if name, ok := strings.CutSuffix(name, suffix); ok {
			names = append(names, name)
		}
	}
	return names, nil
}

func (k kept) Open(name string) (fs.File, error) {
	f, err := k.a.open(name, name+suffix)
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (kept) Create(string) (fs.File, error) { return nil, errRead }
func (kept) Rename(string, string) error    { return errRead }
func (kept) Remove(string) error            { return errRead }

// Open opens a file for reading: the live one if it is in both.
func (a *Archive) Open(name string) (fs.File, error) {
	f, err := a.FS.Open(name)
	if !errors.Is(err, os.ErrNotExist) {
		return f, err
	}
	packed, gone := a.Kept().Open(name)
	if errors.Is(gone, os.ErrNotExist) {
		return nil, err
	}
	return packed, gone
}

// Moved is the result of a move.
type Moved struct {
	Name        string
	Bytes, Kept int64 // size before and after
}

// Move moves files that are no longer written, in the given order. It stops at the first that
// fails, which stays live. Step, if not nil, is called between slices of work and may return an
// error.
func (a *Archive) Move(names []string, step func() error, moved func(Moved)) error {
	if step == nil {
		step = func() error { return nil }
	}
	if err := a.sweep(); err != nil {
		return err
	}
	for _, name := range names {
		m, err := a.move(name, step)
		if err != nil {
			return fmt.Errorf("archive: move %s: %w", name, err)
		}
		moved(m)
	}
	return nil
}

// sweep removes the remains of unfinished moves.
func (a *Archive) sweep() error {
	names, err := a.kept.List()
	if err != nil {
		return fmt.Errorf("archive: list: %w", err)
	}
	for _, name := range names {
		if !strings.HasSuffix(name, leftover) {
			continue
		}
		if err := a.kept.Remove(name); err != nil {
			return fmt.Errorf("archive: remove what is left: %w", err)
		}
	}
	return nil
}

func (a *Archive) move(name string, step func() error) (m Moved, err error) {
	live, err := a.FS.Open(name)
	if err != nil {
		return m, err
	}
	defer live.Close() //nolint:errcheck // it was only read
	m.Name = name
	if m.Bytes, err = live.Size(); err != nil {
		return m, err
	}
	if m.Kept, err = a.same(live, m.Bytes, name, name+suffix, step); err != nil && !errors.Is(err, errOther) && !errors.Is(err, os.ErrNotExist) {
		return m, err
	}
	if err != nil {
		if m.Kept, err = a.copy(live, m.Bytes, name, step); err != nil {
			return m, err
		}
	}
	if err := a.kept.SyncDir(); err != nil { // needed for an existing name too: it may not have been synced
		return m, fmt.Errorf("sync the directory: %w", err)
	}
	if err := a.FS.Remove(name); err != nil {
		return m, err
	}
	return m, a.FS.SyncDir()
}

// copy compresses a file durably, and names it after it was read back.
func (a *Archive) copy(live fs.File, size int64, name string, step func() error) (kept int64, err error) {
	to, err := a.kept.Create(name + leftover)
	if err != nil {
		return 0, err
	}
	err = a.write(live, size, to, step)
	if err = errors.Join(err, to.Close()); err != nil {
		return 0, err
	}
	if kept, err = a.same(live, size, name, name+leftover, step); err != nil {
		return 0, err
	}
	a.forget(name)
	return kept, a.kept.Rename(name+leftover, name+suffix)
}

var (
	errOther = errors.New("archive: read back as another")
	errTaken = errors.New("archive: another file of that name is kept already, and whole: neither is touched")
)

// same returns why a kept file differs from the live one. If its name is taken, it may go on behind what the live one has: bytes that were not
// synced to the live file, and were copied, are lost there with the power. A journal has such bytes again in the next segment.
func (a *Archive) same(live fs.File, size int64, name, as string, step func() error) (kept int64, err error) {
	f, err := a.open(name, as)
	if err != nil {
		return 0, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	isNew := as != name+suffix
	switch f.alone = true; {
	case f.torn:
		return 0, errOther
	case f.size < size, f.size > size && isNew:
		return 0, errTaken
	}
	has, ended := false, false // the live file has bytes, and only zeros from there on
	one, two := make([]byte, block), make([]byte, block)
	for off := int64(0); off < size; off += block {
		n := min(block, size-off)
		if _, err := live.ReadAt(one[:n], off); err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		if _, err := f.ReadAt(two[:n], off); err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		written := len(bytes.TrimRight(one[:n], "\x00"))
		isEqual := bytes.Equal(one[:n], two[:n])
		switch {
		case f.torn:
			return 0, errOther
		case !isEqual && isNew, ended && written > 0, !bytes.Equal(one[:written], two[:written]):
			return 0, errTaken
		}
		has, ended = has || written > 0, ended || !isEqual
		if err := step(); err != nil {
			return 0, err
		}
	}
	if !has && (ended || f.size > size) {
		return 0, errTaken
	}
	return f.packed, nil
}

// forget removes the blocks of a file from the cache.
func (a *Archive) forget(name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.blocks = slices.DeleteFunc(a.blocks, func(h held) bool { return h.name == name })
}

// want returns a cached block; keep caches one, in place of the least recently used.
func (a *Archive) want(name string, at int) (text []byte, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := slices.IndexFunc(a.blocks, func(h held) bool { return h.name == name && h.at == at })
	if n < 0 {
		return nil, false
	}
	h := a.blocks[n]
	a.blocks = append(slices.Delete(a.blocks, n, n+1), h)
	return h.text, true
}

func (a *Archive) keep(h held) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.blocks) >= shelf {
		a.blocks = slices.Delete(a.blocks, 0, 1+len(a.blocks)-shelf)
	}
	a.blocks = append(a.blocks, h)
}
