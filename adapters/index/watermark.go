package index

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"macronode/core/types"
)

// Watermark returns the last frame in the tables of the index in a directory, the root after it, and its journal.
// Every such frame was durable. It returns 0 if there is no readable index. It changes nothing.
func Watermark(dir string) (of types.JournalID, last types.LSN, root types.Root, err error) {
	files := &lockedFS{FS: vfs.Default}
	defer func() {
		if r := recover(); r != nil {
			corrupt, is := r.(corruption) // the engine does not go on, so it is not closed
			if !is {
				panic(r)
			}
			of, last, root, err = 0, 0, types.Root{}, errors.Join(errors.New(string(corrupt)), files.unlock())
		}
	}()
	at := filepath.Join(dir, tables)
	if _, err := os.Stat(at); err != nil {
		return 0, 0, root, nil //nolint:nilerr // the index may not exist
	}
	o := &pebble.Options{ReadOnly: true, FS: files, CacheSize: 1 << 20, MaxOpenFiles: 16, Logger: quiet{}}
	db, err := pebble.Open(at, o)
	if err != nil {
		return 0, 0, root, fmt.Errorf("index: open the tables: %w", err)
	}
	m, err := readMark(db)
	return m.journal, m.lsn, m.root, errors.Join(err, db.Close())
}

func readMark(db *pebble.DB) (m mark, err error) {
	value, closer, err := db.Get(markKey(nil))
	if errors.Is(err, pebble.ErrNotFound) {
		return m, nil
	}
	if err != nil {
		return m, fmt.Errorf("index: read the mark: %w", err)
	}
	v := values{b: value}
	if v.one() == version { // the bucket width depends on the TTL, which may have changed
		_ = m.read(value, v.uvar(1<<62))
	}
	return m, closer.Close()
}

// A lockedFS keeps the lock of an engine, so that an engine that is not closed does not keep it for the rest of the process.
type lockedFS struct {
	vfs.FS
	lock io.Closer
}

// Lock locks a file.
func (f *lockedFS) Lock(name string) (lock io.Closer, err error) {
	f.lock, err = f.FS.Lock(name)
	return f.lock, err
}

func (f *lockedFS) unlock() error {
	if f.lock == nil {
		return nil
	}
	return f.lock.Close()
}

// A corruption is the panic of quiet.
type corruption string

// quiet discards the log of the engine. If that finds a damaged table, quiet panics: the engine expects that it does not return.
type quiet struct{}

func (quiet) Infof(string, ...any)  {}
func (quiet) Errorf(string, ...any) {}
func (quiet) Fatalf(format string, args ...any) {
	panic(corruption(fmt.Sprintf("index: "+format, args...)))
}
