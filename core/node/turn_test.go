package node_test

import (
	"testing"
	"time"

	"macronode/core/event"
	"macronode/core/gateway/quota"
	"macronode/core/node"
	"macronode/core/state"
	"macronode/core/types"
)

// rejectedOfInternal runs ten seconds under an instance quota in which 24 peers without a key send a request each
// millisecond, and an internal caller one each 250 ms. It returns how many requests of the internal caller were
// rejected, and sent.
func rejectedOfInternal(t *testing.T, rate uint64, turn func(c *node.Config) uint64) (rejected, sent int) {
	t.Helper()
	c := config(limits(4, 16))
	c.Quotas = []quota.Rule{{Scope: types.ScopeInstance, Rate: rate, Every: time.Second, Burst: 10, Classes: quota.AllClasses}}
	c.QuotaLimits.Peers = 64
	c.Admission.Places, c.Admission.Quantum, c.Admission.Least, c.Admission.Wait = 512, 64<<10, 4<<10, 25*time.Millisecond
	c.Admission.Weights = [types.NumClasses]uint64{10, 5, 1}
	of := &c.Admission.Facets[types.FacetWallet]
	*of = event.FacetLimits{Permits: 64, Queue: 256, PerClass: [types.NumClasses]int{128, 128, 128}, PerFlow: 16,
		ClassPermits: [types.NumClasses]int{64, 58, 32}, FlowPermits: 16}
	c.Admission.Quantum = turn(&c)
	n := node.New(c, state.New(c.State, 1), 1, types.NewRand(1))
	now, out := types.Now{Mono: 1, Wall: 1_700_000_000_000}, event.Effects{}
	internal, free := map[types.Ticket]bool{}, []uint32(nil)
	for slot := range uint32(c.Admission.Places) {
		free = append(free, slot)
	}
	var step func(in event.Event)
	step = func(in event.Event) {
		out.Reset()
		n.Step(now, in, &out)
		var granted []types.Ticket
		for _, d := range out.Decisions {
			if d.Reason == event.Admitted {
				granted = append(granted, d.Ticket)
				continue
			}
			free = append(free, d.Ticket.Slot())
			if internal[d.Ticket] {
				rejected++
			}
		}
		for _, ticket := range granted { // the work takes no time
			step(&event.Finish{Ticket: ticket, Bytes: 100})
			free = append(free, ticket.Slot())
		}
	}
	step(event.Recovered{Recovery: event.Recovery{Journal: 9}})
	step(&event.CreateKey{Key: event.Key{ID: boss, Tenant: 1, Scopes: event.AllScopes, Bootstrap: true}})
	step(event.Durable{Upto: n.LSN()})
	step(event.Applied{Upto: n.LSN()})
	for service := range types.NumServices {
		step(event.ServiceUp{Service: service})
	}
	generation := uint32(0)
	arrive := func(in event.Admit) types.Ticket {
		generation++
		in.Ticket = types.NewTicket(free[0], generation)
		free = free[1:]
		in.Facet, in.TimeLeft, in.PermitFor = types.FacetWallet, time.Second, time.Second
		if in.Class == types.ClassInternal {
			internal[in.Ticket], sent = true, sent+1
		}
		step(&in)
		return in.Ticket
	}
	for ms := range 10_000 {
		now.Mono += types.Instant(time.Millisecond)
		now.Wall++
		step(event.Tick{})
		arrive(event.Admit{Class: types.ClassAnon, Peer: types.NameHash{1, byte(ms % 24)}})
		if ms%250 == 125 {
			arrive(event.Admit{Class: types.ClassInternal, Tenant: 1, Key: boss})
		}
	}
	return rejected, sent
}

// TestAnonymousRequestsLeaveInstanceQuota: turns that fit the wait leave a slow instance quota to a higher class,
// however many anonymous peers compete. Turns of 64 KiB do not.
func TestAnonymousRequestsLeaveInstanceQuota(t *testing.T) {
	for _, rate := range []uint64{50, 100, 300, 1000} {
		rejected, sent := rejectedOfInternal(t, rate, func(c *node.Config) uint64 {
			rules := []event.Quota{event.Quota(c.Quotas[0])}
			return quota.Turn(rules, c.Admission.Weights, c.Admission.Quantum, c.Admission.Least, c.Admission.Wait)
		})
		if rejected > 0 || sent != 40 {
			t.Errorf("%d requests a second: %d of %d internal requests are rejected", rate, rejected, sent)
		}
		long, _ := rejectedOfInternal(t, rate, func(c *node.Config) uint64 { return c.Admission.Quantum })
		t.Logf("%d requests a second: with turns of 64 KiB %d of %d are rejected", rate, long, sent)
	}
}
