package index

import (
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
)

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
