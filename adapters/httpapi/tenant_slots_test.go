package httpapi

import (
	"context"
	"runtime"
	"testing"

	"macronode/core/types"
)

// TestTenantsShareSlots: a tenant leaves slots to others, and what it gives back is free again.
func TestTenantsShareSlots(t *testing.T) {
	s := newTenantSlots(5)
	for i, c := range []struct {
		tenant types.Tenant
		give   bool
		want   bool
	}{{1, false, true}, {1, false, true}, {1, false, true}, {1, false, false}, {2, false, true}, {2, false, false}, {3, false, true}, {4, false, false},
		{1, true, true}, {1, false, false}, {4, false, true}} {
		if c.give {
			s.give(c.tenant)
			continue
		}
		if got := s.take(c.tenant); got != c.want {
			t.Errorf("%d: tenant %d takes a slot: %v", i, c.tenant, got)
		}
	}
	for _, of := range []types.Tenant{1, 1, 2, 3, 4} {
		s.give(of)
	}
	if taken, limit := s.depth(); taken != 0 || limit != 5 || len(s.of) != 0 {
		t.Errorf("%d of %d slots are taken, of %v", taken, limit, s.of)
	}
}

// TestSlotsAreAwaited: calls that wait get the slot that is given back, one after the other, and end with their context.
func TestSlotsAreAwaited(t *testing.T) {
	s := newTenantSlots(1)
	s.take(1)
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if s.await(ended, 2) {
		t.Error("a call gets a slot that is taken")
	}
	got := make(chan bool)
	for range 2 {
		go func() { got <- s.await(context.Background(), 1) }()
	}
	for range 2 {
		s.awaited(t)
		s.give(1)
		if !<-got {
			t.Error("a call that waits gets no slot")
		}
	}
}

// awaited waits until a call waits for a slot.
func (s *tenantSlots) awaited(t *testing.T) {
	for {
		s.mu.Lock()
		waits := s.freed != nil
		s.mu.Unlock()
		if waits {
			return
		}
		if t.Context().Err() != nil {
			t.Fatal("no call waits")
		}
		runtime.Gosched()
	}
}
