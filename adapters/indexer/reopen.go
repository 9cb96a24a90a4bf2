package indexer

import (
	"fmt"
	"syscall"

	"github.com/cockroachdb/pebble/v2"
)

const (
	// maxEngineFailures is how many engines may stop in one process. Each leaves some
	// goroutines and about 1 MiB behind, beside its open tables: memory tables and its list of
	// tables. Its cache is shared.
	maxEngineFailures = 8
	// reopenRoom is the free space in bytes that an engine needs on the disk if one has
	// stopped before: it writes a list of all tables first, and stops if it cannot.
	reopenRoom = 8 << 20
)

// mayOpen returns why no engine is opened: too many have stopped in this process, or one has
// stopped and the disk is still full.
func (x *Indexer) mayOpen() error {
	failures := x.deaths.Load()
	if failures == 0 {
		return nil
	}
	why := *x.died.Load()
	if failures >= maxEngineFailures {
		return fmt.Errorf("indexer: the engine has stopped %d times; restart the process: %w", failures, why)
	}
	// Where the free space is not known, the engine is tried.
	if disk, err := x.fs.GetDiskUsage(x.config.Dir); err == nil && disk.AvailBytes < reopenRoom {
		return fmt.Errorf("indexer: the disk has %d bytes free, the index needs %d to open: %w", disk.AvailBytes, reopenRoom, syscall.ENOSPC)
	}
	x.config.Log.Warn("the index opens its engine again", "failures", failures, "limit", maxEngineFailures, "err", why)
	return nil
}

// keepCache makes the cache of the engines. The function that it returns lets it go, unless
// an engine has stopped: that one still counts on it.
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
