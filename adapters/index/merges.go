package index

import (
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
)

// merges starts merges only after all tables are open: if opening one fails, the engine removes
// data that a merge uses.
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
