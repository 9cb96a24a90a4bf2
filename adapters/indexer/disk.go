package indexer

import (
	"fmt"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// A disk is what the engine is given. Where a directory cannot be synced, the engine
// panics, in a goroutine of its own, which would end the process: nobody knows then which
// names are on the disk. Here it stops instead, and the process goes on.
type disk struct {
	vfs.FS
	die func(error) // does not come back
}

func (d *disk) OpenDir(name string) (vfs.File, error) {
	f, err := d.FS.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return names{f, d.die}, nil
}

// names are an open directory.
type names struct {
	vfs.File
	die func(error)
}

func (n names) Sync() error {
	if err := n.File.Sync(); err != nil {
		n.die(fmt.Errorf("%w: a directory cannot be synced: %w", ErrEngine, err))
	}
	return nil
}

// merges lets the engine merge tables when they are open, and not before: where one
// cannot be opened, the engine takes away under a merge what it stands on.
type merges struct {
	pebble.CompactionScheduler
	on atomic.Bool
}

func (m *merges) TrySchedule() (bool, pebble.CompactionGrantHandle) {
	if !m.on.Load() {
		return false, nil
	}
	return m.CompactionScheduler.TrySchedule()
}

func (m *merges) UpdateGetAllowedWithoutPermission() {
	if m.on.Load() {
		m.CompactionScheduler.UpdateGetAllowedWithoutPermission()
	}
}
