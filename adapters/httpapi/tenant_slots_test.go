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

// TestSlotsAreGivenInOrder: the call that has waited longest gets the slot, unless its tenant leaves it to others.
func TestSlotsAreGivenInOrder(t *testing.T) {
	s := newTenantSlots(2)
	s.take(1)
	s.take(2)
	first, second, other := s.takeOrWait(1), s.takeOrWait(1), s.takeOrWait(3)
	s.give(2)
	for i, w := range []*slotWaiter{first, second, other} {
		select {
		case <-w.taken:
			if w != other {
				t.Errorf("call %d has a slot that its tenant leaves to others", i)
			}
		default:
			if w == other {
				t.Error("the call of another tenant has no slot")
			}
		}
	}
	if s.give(1); s.leave(first) || !s.leave(second) {
		t.Error("the call that has waited longest has no slot, or both have one")
	}
	s.give(1)
	s.give(3)
	if taken, _ := s.depth(); taken != 0 || len(s.waits) != 0 {
		t.Errorf("in the end, %d slots are taken, and %d calls wait", taken, len(s.waits))
	}
}

// TestTenantsGetSlotsInTurn: the call of a tenant does not wait behind the queues of others: each of them gets one slot before.
func TestTenantsGetSlotsInTurn(t *testing.T) {
	s := newTenantSlots(2)
	s.take(1)
	s.take(2)
	for range 9 {
		s.takeOrWait(1)
		s.takeOrWait(2)
	}
	w := s.takeOrWait(3)
	for n, of := range []types.Tenant{1, 2, 1} {
		s.give(of)
		select {
		case <-w.taken:
			if n < 2 {
				t.Errorf("tenant 3 has a slot after %d were given back", n+1)
			}
		default:
			if n == 2 {
				t.Error("tenant 3 waits behind the queues of others")
			}
		}
	}
}

// awaited waits until a call waits for a slot.
func (s *tenantSlots) awaited(t *testing.T) {
	for {
		s.mu.Lock()
		waits := len(s.waits) > 0
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
