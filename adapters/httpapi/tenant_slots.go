package httpapi

import (
	"context"
	"slices"
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
	waits []*slotWaiter        // at most one for each permit, in the order in which they get slots; none of them could have one
}

// A slotWaiter is a call that waits for a slot.
type slotWaiter struct {
	tenant types.Tenant
	taken  chan struct{} // closed when it has its slot
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

// await is take that waits for a slot, behind those that wait. It returns false if ctx ends first.
func (s *tenantSlots) await(ctx context.Context, t types.Tenant) bool {
	w := s.takeOrWait(t)
	if w == nil {
		return true
	}
	select {
	case <-w.taken:
		return true
	case <-ctx.Done():
		return !s.leave(w)
	}
}

// takeOrWait takes a slot, or returns a waiter that gets one.
func (s *tenantSlots) takeOrWait(t types.Tenant) *slotWaiter {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.takeLocked(t) {
		return nil
	}
	w := &slotWaiter{t, make(chan struct{})}
	s.waits = append(s.waits, w)
	return w
}

// leave ends the waiting of a call. It returns false if the call has got its slot meanwhile.
func (s *tenantSlots) leave(w *slotWaiter) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := slices.Index(s.waits, w)
	if at < 0 {
		return false
	}
	s.waits = slices.Delete(s.waits, at, at+1)
	return true
}

// give gives back a slot of a tenant. Tenants get what is free in turn, each for its call that has waited longest: the other calls of a tenant
// that has got one wait behind those of all others.
func (s *tenantSlots) give(t types.Tenant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken--
	if s.of[t]--; s.of[t] == 0 {
		delete(s.of, t)
	}
	for {
		at := slices.IndexFunc(s.waits, func(w *slotWaiter) bool { return s.takeLocked(w.tenant) })
		if at < 0 {
			return
		}
		w := s.waits[at]
		close(w.taken)
		s.waits = slices.Delete(s.waits, at, at+1)
		others := slices.DeleteFunc(slices.Clone(s.waits), func(o *slotWaiter) bool { return o.tenant == w.tenant })
		own := slices.DeleteFunc(s.waits, func(o *slotWaiter) bool { return o.tenant != w.tenant })
		s.waits = append(others, own...)
	}
}

// depth returns how many slots are taken, and how many there are.
func (s *tenantSlots) depth() (taken, limit int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.taken, s.limit
}
