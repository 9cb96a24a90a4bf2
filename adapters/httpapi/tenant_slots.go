package httpapi

import (
	"context"
	"sync"

	"macronode/core/share"
	"macronode/core/types"
)

// tenantSlots are slots that tenants share. A tenant may keep a slot for long, and may want many: it leaves room for others, see
// share.Left.
type tenantSlots struct {
	limit int

	mu    sync.Mutex
	taken int
	of    map[types.Tenant]int // the taken ones
	freed chan struct{}        // closed when a slot is given back; nil: no call waits
}

func newTenantSlots(limit int) tenantSlots {
	return tenantSlots{limit: limit, of: make(map[types.Tenant]int)}
}

// take takes a slot for a tenant. It returns false if there is none for it.
func (s *tenantSlots) take(t types.Tenant) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.takeLocked(t)
}

func (s *tenantSlots) takeLocked(t types.Tenant) bool {
	if share.Left(0, s.of[t], s.limit-s.taken) == 0 {
		return false
	}
	s.taken++
	s.of[t]++
	return true
}

// await is take that waits for a slot. It returns false if ctx ends first.
func (s *tenantSlots) await(ctx context.Context, t types.Tenant) bool {
	for {
		freed := s.takeOrWait(t)
		if freed == nil {
			return true
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return false
		}
	}
}

// takeOrWait takes a slot, or returns a channel that is closed when one is given back.
func (s *tenantSlots) takeOrWait(t types.Tenant) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.takeLocked(t) {
		return nil
	}
	if s.freed == nil {
		s.freed = make(chan struct{})
	}
	return s.freed
}

// give gives back a slot of a tenant.
func (s *tenantSlots) give(t types.Tenant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken--
	if s.of[t]--; s.of[t] == 0 {
		delete(s.of, t)
	}
	if s.freed != nil {
		close(s.freed)
		s.freed = nil
	}
}

// depth returns how many slots are taken, and how many there are.
func (s *tenantSlots) depth() (taken, limit int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.taken, s.limit
}
