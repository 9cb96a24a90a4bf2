package index

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

const (
	// MaxEngineFailures is how many engines may stop in one process. Each leaves AbandonedBytes
	// and some goroutines behind.
	MaxEngineFailures = 8
	// reopenRoom is the free space in bytes that an engine needs on the disk if one has
	// stopped before: it writes a list of all tables first, and stops if it cannot.
	reopenRoom = 8 << 20
)

// AbandonedBytes is the memory that a stopped engine keeps at most: its open tables, its memory tables and its
// list of tables. Its cache is shared.
func AbandonedBytes(l Limits) int64 { return int64(l.withDefaults().Files)*openTable + 1<<20 }

// mayOpen returns an error if no engine may be opened: too many have stopped in this process, or one has stopped
// and the disk is still full or still fails.
func (x *Indexer) mayOpen() error {
	failures := x.deaths.Load()
	if failures == 0 {
		return nil
	}
	why := *x.died.Load()
	if failures >= MaxEngineFailures {
		return fmt.Errorf("index: the engine has stopped %d times; restart the process: %w", failures, why)
	}
	// Where the free space is not known, the engine is tried.
	if disk, err := x.fs.GetDiskUsage(x.config.Dir); err == nil && disk.AvailBytes < reopenRoom {
		return fmt.Errorf("index: the disk has %d bytes free, the index needs %d to open: %w", disk.AvailBytes, reopenRoom, syscall.ENOSPC)
	}
	if err := x.tryDisk(); err != nil {
		return fmt.Errorf("index: the disk still fails, no engine is opened: %w", err)
	}
	x.config.Log.Warn("index engine reopened", "failures", failures, "limit", MaxEngineFailures, "err", why)
	return nil
}

// tryDisk writes a file, syncs it and its directory, and removes it. An engine for which this fails would stop.
// The file is among the unfinished tables, which every open removes.
func (x *Indexer) tryDisk() error {
	dir := x.fs.PathJoin(x.config.Dir, next)
	if err := x.fs.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	name := x.fs.PathJoin(dir, "trial")
	f, err := x.fs.Create(name, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write(make([]byte, 4<<10))
	return errors.Join(err, f.Sync(), f.Close(), syncDir(x.fs, dir), x.fs.Remove(name))
}

// keepCache creates the cache of the engines. release drops it, unless an engine has stopped, because that engine
// still uses it.
func (x *Indexer) keepCache() (release func()) {
	if x.cache == nil {
		x.cache = pebble.NewCache(x.limits.Cache)
	}
	return func() {
		if x.deaths.Load() == 0 {
			x.cache.Unref()
			x.cache = nil
		}
	}
}
