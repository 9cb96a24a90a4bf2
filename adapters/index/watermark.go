package index

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"macronode/core/types"
)

// Watermark returns the last frame in the tables of the index in a directory, and its journal.
// Every such frame was durable. It returns 0 if there is no readable index. It changes nothing.
func Watermark(dir string) (types.JournalID, types.LSN, error) {
	at := filepath.Join(dir, tables)
	if _, err := os.Stat(at); err != nil {
		return 0, 0, nil //nolint:nilerr // the index may not exist
	}
	o := &pebble.Options{ReadOnly: true, FS: vfs.Default, CacheSize: 1 << 20, MaxOpenFiles: 16, Logger: quiet{}}
	db, err := pebble.Open(at, o)
	if err != nil {
		return 0, 0, fmt.Errorf("index: open the tables: %w", err)
	}
	m, err := readMark(db)
	return m.journal, m.lsn, errors.Join(err, db.Close())
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

// quiet discards the log of the engine.
type quiet struct{}

func (quiet) Infof(string, ...any)  {}
func (quiet) Errorf(string, ...any) {}
func (quiet) Fatalf(format string, args ...any) {
	panic(fmt.Sprintf("index: "+format, args...))
}
