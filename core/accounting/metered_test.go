package accounting_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"macronode/core/accounting"
	"macronode/core/command"
	"macronode/core/event"
	"macronode/core/types"
)

// TestDrainTakesMeteredUsage: while a drain rejects events, the node still records what it has metered. When the drain
// is aborted or has ended, it does not.
func TestDrainTakesMeteredUsage(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		s := newSystem(r, map[string]int{})
		decided := func(c command.Command) event.Problem {
			s.ticket++
			c.Head().Ticket, c.Head().Tenant = s.ticket, 2
			s.now.Mono++
			s.out.Reset()
			s.node.Step(s.now, &event.Execute{Command: c}, &s.out)
			s.node.Status(&s.status)
			if len(s.out.Frames) > 0 {
				return event.None // the reply waits until the frame is durable
			}
			if len(s.out.Replies) != 1 {
				r.Fatalf("no frame and %d replies", len(s.out.Replies))
			}
			return s.out.Replies[0].Problem
		}
		metered := func() *accounting.RecordMetered {
			return &accounting.RecordMetered{Metered: []accounting.Metered{{Series: series(r, "requests", nil), Time: s.status.At, Count: accounting.Count{Value: 1, Events: 1}}}}
		}
		s.step(event.Signal{Kind: event.Drain})
		for s.status.Phase != types.Draining {
			s.now.Mono += types.Instant(100 * time.Millisecond)
			s.step(event.Tick{})
		}
		events := &accounting.RecordEvents{Header: command.Header{Caller: apiKeys[1].ID}, Events: []accounting.Event{{Source: "s", ID: "1", Series: series(r, "requests", nil), Value: 1, Time: s.status.At}}}
		if err := events.Seal(); err != nil {
			r.Fatal(err)
		}
		if why := decided(events); why != event.Unavailable {
			r.Fatalf("events while the node drains: %v", why.Code())
		}
		if why := decided(metered()); why != event.None {
			r.Fatalf("metered usage while the node drains: %v", why.Code())
		}
		forged := metered()
		forged.Caller = apiKeys[1].ID
		if why := decided(forged); why != event.BadRequest {
			r.Fatalf("metered usage of an API key: %v", why.Code())
		}
		s.node.Step(s.now, event.Signal{Kind: event.Abort}, &s.out)
		if why := decided(metered()); why != event.Unavailable {
			r.Fatalf("metered usage after an abort: %v", why.Code())
		}
	})
}
