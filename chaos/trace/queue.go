package trace

import (
	"macronode/core/event"
	"macronode/core/node"
	"macronode/core/types"
)

// A waiter is a held reply: its ticket, its frame and its deadline.
type waiter struct {
	ticket types.Ticket
	of     types.Tenant
	after  types.LSN
	until  types.Instant
	gone   bool
}

// line is the node's part of Queue: Decide, Serve and Cancel. Slots and rings belong to the
// dispatcher, which no step shows.
type line struct {
	config node.Config
	held   []waiter // in the order of arrival
	known  map[types.Tenant]bool
}

func newLine(c node.Config) line {
	if c.MaxHeldPerTenant == 0 {
		c.MaxHeldPerTenant = c.MaxHeldReplies
	}
	return line{config: c, known: map[types.Tenant]bool{}}
}

func (l *line) step(before, after *View, s *Step) error {
	if in, ok := s.In.(event.Cancel); ok {
		for i := range l.held {
			l.held[i].gone = l.held[i].gone || l.held[i].ticket == in.Ticket
		}
	}
	got := s.Replies
	if t, of, shares := asks(s.In); t != 0 {
		if len(got) > 0 && got[0].Ticket == t {
			if err := l.refuses(before, s.In, got[0].Problem, of); err != nil {
				return err
			}
			got = got[1:]
		} else if err := l.admits(waiter{ticket: t, of: of, after: after.LSN, until: s.Now.Mono.Add(l.config.CommitTimeout)}, shares); err != nil {
			return err
		}
	}
	serves := l.lose(before, after, s.In)
	leave := len(l.held) - int(after.HeldReplies)
	if leave < 0 || len(l.held) > l.config.MaxHeldReplies+leave {
		return broken("Bounded", "%d are held, of %d", after.HeldReplies, l.config.MaxHeldReplies)
	}
	for _, x := range l.held[:leave] {
		if x.after > after.Applied && x.until > s.Now.Mono && after.Phase < types.Aborting {
			return broken("CrowdExact", "%v is held no more, waits for %v until %d", x.ticket, x.after, x.until)
		}
	}
	serves = append(serves, l.held[:leave]...)
	l.held = append(l.held[:0], l.held[leave:]...)
	if len(l.held) > 0 && l.held[0].after <= after.Applied {
		return broken("Served", "%v still waits for %v, folded %v", l.held[0].ticket, l.held[0].after, after.Applied)
	}
	return l.serve(serves, got)
}

// asks returns the ticket and tenant of an event, and whether tenant limits apply: key
// administration is exempt.
func asks(in event.Event) (t types.Ticket, of types.Tenant, shares bool) {
	//nolint:gochecksumtype // the others have no ticket
	switch in := in.(type) {
	case *event.Request:
		return in.Ticket, in.Tenant, true
	case *event.Execute:
		return in.Command.Head().Ticket, in.Command.Head().Tenant, true
	case *event.FindOutcome:
		return in.Ticket, in.Tenant, true
	case *event.CreateKey:
		return in.Ticket, in.Tenant, false
	case *event.RevokeKey:
		return in.Ticket, in.Tenant, false
	default:
		return 0, 0, false
	}
}

// crowd counts the held replies of a tenant.
func (l *line) crowd(of types.Tenant) (n int) {
	for i := range l.held {
		if l.held[i].of == of {
			n++
		}
	}
	return n
}

// admits is Admit.
func (l *line) admits(x waiter, shares bool) error {
	if len(l.held) >= l.config.MaxHeldReplies {
		return broken("Bounded", "%v is held, %d are", x.ticket, len(l.held))
	}
	if crowd := l.crowd(x.of); shares && crowd >= l.config.MaxHeldPerTenant {
		return broken("ShareKept", "%v is held, %d of tenant %d are", x.ticket, crowd, x.of)
	}
	l.held, l.known[x.of] = append(l.held, x), x.of != 0
	return nil
}

// mostOfCommand is the number of bytes that a command of storage may reserve: an object, the evicted
// keys, its capture, and the ends of holds.
const mostOfCommand = types.MaxPlaneRecord + 3*types.MaxRecord + types.MaxExpiriesPerStep*types.MaxRecord

// refuses checks the reason of a busy reply.
func (l *line) refuses(before *View, in event.Event, why event.Problem, of types.Tenant) error {
	crowded := l.crowd(of) >= l.config.MaxHeldPerTenant || !l.known[of] && len(l.known) >= l.config.State.Ledger.Tenants
	r, asked := in.(*event.Request)
	full := len(l.held) >= l.config.MaxHeldReplies
	if asked && !full && !crowded { // room for its frame, and for the ends of holds
		full = before.Backlog+uint64(r.Cost().Bytes)+types.MaxExpiriesPerStep*64 > l.config.MaxUnsyncedBytes || before.Holds > types.MaxExpiriesPerStep
	}
	if _, ok := in.(*event.Execute); ok && before.Backlog+mostOfCommand > l.config.MaxUnsyncedBytes {
		full = true
	}
	if why == event.Busy && !full && !crowded {
		return broken("RefusedRightly", "%d are held, of tenant %d %d, with %d bytes", len(l.held), of, l.crowd(of), before.Backlog)
	}
	return nil
}

// lose removes the waiters whose frame a failed flush may have lost.
func (l *line) lose(before, after *View, in event.Event) (lost []waiter) {
	from := after.Durable + 1
	if r, ok := in.(event.FlushFailed); ok {
		from = r.From
	} else if before.DegradedBy.Has(types.JournalFailed) || !after.DegradedBy.Has(types.JournalFailed) {
		return nil
	}
	stay := l.held[:0]
	for _, x := range l.held {
		if x.after >= from {
			lost = append(lost, x)
		} else {
			stay = append(stay, x)
		}
	}
	l.held = stay
	return lost
}

// serve checks that the waiters that leave get their replies, in order.
func (l *line) serve(serves []waiter, got []event.Reply) error {
	for _, x := range serves {
		if x.gone {
			continue
		}
		if len(got) == 0 {
			return broken("NoneLost", "%v left without a reply", x.ticket)
		}
		if got[0].Ticket != x.ticket {
			return broken("InOrder", "%v got a reply before %v, which came earlier", got[0].Ticket, x.ticket)
		}
		got = got[1:]
	}
	if len(got) > 0 {
		return broken("RightReply", "%v got a reply out of turn", got[0].Ticket)
	}
	return nil
}
