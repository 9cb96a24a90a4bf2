package node

import (
	"errors"
	"time"

	"macronode/core/admit"
	"macronode/core/event"
	"macronode/core/fair"
	"macronode/core/quota"
	"macronode/core/words"
)

// arrive lets a request wait for its permit, or says why not. Where it is refused, nothing
// of anybody has changed, but that time has gone by: whom that lets go goes.
func (n *Node) arrive(now words.Now, in *event.Arrive, out *event.Effects) {
	v := event.Verdict{Ticket: in.Ticket, Ahead: uint32(n.admit.Ahead(in))}
	if v.Why = n.bars(now.Mono, in); v.Why == event.Admitted {
		n.charges(now.Mono, in, &v)
	}
	if v.Why != event.Admitted {
		n.refuses(v, out)
		n.permit(now.Mono, out)
		return
	}
	n.admit.Arrive(now.Mono, in)
	from := len(out.Verdicts)
	n.permit(now.Mono, out)
	for i := from; i < len(out.Verdicts); i++ { // who goes at once is told how it stands with its quotas
		if said := &out.Verdicts[i]; said.Ticket == v.Ticket {
			v.Shadow, v.Bytes = v.Shadow|said.Shadow, said.Bytes
			*said = v
		}
	}
}

// settle takes a permit back, and gives it to whose turn it is. Quotas are given back what
// was charged and not used: all of it, where the request was never let in.
func (n *Node) settle(now words.Instant, in *event.Settle, out *event.Effects) {
	ended, worked := n.admit.Settle(in.Ticket, in.Bytes)
	switch {
	case !ended:
	case worked:
		n.quota.Settle(now, in.Ticket.Slot(), in.Bytes)
		n.reports(in.Fate)
	default:
		n.quota.Undo(now, in.Ticket.Slot())
	}
	n.permit(now, out)
}

// reports counts what became of a request, once the end has begun.
func (n *Node) reports(f event.Fate) {
	if !n.drain.Begun() {
		return
	}
	switch f {
	case event.TurnedAway:
		n.report.Refused++
	case event.GivenUp:
		n.report.Aborted++
	default:
		n.report.Finished++
	}
}

// bars says which bound but a quota refuses a request.
func (n *Node) bars(now words.Instant, in *event.Arrive) event.Why {
	if n.drain.Closed() || !n.ready.Verdict().Reads {
		return event.NotServing
	}
	switch err := n.admit.Would(in); {
	case errors.Is(err, admit.ErrRoute):
		return event.OverRoute
	case errors.Is(err, fair.ErrWeight):
		return event.NoWeight
	case errors.Is(err, fair.ErrFull):
		return event.QueueFull
	case errors.Is(err, fair.ErrClass):
		return event.ClassFull
	case errors.Is(err, fair.ErrFlow):
		return event.FlowFull
	}
	most := n.config.patience(in.Class)
	if n.admit.Alone(in) { // whoever asks for little has his turn, however many come before it
		most = n.config.Admit.Wait
	}
	if n.quota.After(now, n.admit.Ahead(in)) > now.Plus(most) {
		return event.OverPace
	}
	return event.Admitted
}

// patience is how long one of a class may wait for the instance's quota: longer by as much as
// a turn of the class is worth more than the least, but no longer than for a permit.
func (c *Config) patience(class words.Class) time.Duration {
	least := c.Admit.Weights[class]
	for _, w := range c.Admit.Weights {
		if w > 0 {
			least = min(least, w)
		}
	}
	return max(c.Pace, min(c.Admit.Wait, c.Pace*time.Duration(c.Admit.Weights[class]/least)))
}

// charges asks the quotas, which charge all that apply, or none: of a body no more than its
// first part.
func (n *Node) charges(now words.Instant, in *event.Arrive, v *event.Verdict) {
	who := quota.Who{Class: in.Class, Peer: in.Peer, Key: in.Key, Tenant: in.Tenant, Route: in.Route}
	said := n.quota.Enter(now, in.Ticket.Slot(), who, n.part(&who, uint64(max(in.Bytes, 0)), in.Patience))
	v.Rule, v.Left, v.Reset, v.Retry, v.Shadow = said.Rule, said.Left, said.Reset, said.Retry, said.Shadow
	if said.Refused {
		v.Why = event.OverQuota
	}
}

// refuses tells one who may not come in. What it tells of is nothing durable, so it waits
// for nothing.
func (n *Node) refuses(v event.Verdict, out *event.Effects) {
	v.Problem = event.Busy
	if v.Why == event.NotServing {
		v.Problem = event.Unavailable
		n.reports(event.TurnedAway)
	}
	out.Verdicts = append(out.Verdicts, v)
}

// permit gives permits to those whose turn it is, while there are permits and the
// instance's quota lets them go; and in turn with them it lets parts of bodies go.
func (n *Node) permit(now words.Instant, out *event.Effects) {
	for {
		ripe, lined := n.goes(now)
		switch {
		case lined && (n.admit.First() || !ripe):
			t, bytes := n.admit.NextPart()
			n.passes(now, t, bytes, out)
		case ripe:
			t, waited := n.admit.Next(now)
			shadow := n.quota.Go(now, t.Slot())
			out.Verdicts = append(out.Verdicts, event.Verdict{Ticket: t, Waited: waited, Shadow: shadow, Bytes: n.allows(t)})
		default:
			return
		}
	}
}

// goes reports that a request, and that a part of a body, may go now.
func (n *Node) goes(now words.Instant) (request, part bool) {
	if n.admit.Ripe() {
		at, _ := n.quota.Next(now, 0)
		request = at <= now
	}
	return request, n.admit.Lined() > 0 && n.quota.Onward(now) <= now
}

// late tells those who have waited for as long as they may, and lets go on what was paused.
func (n *Node) late(now words.Instant, out *event.Effects) {
	for {
		t, what, waited, bytes, ok := n.admit.Overdue(now)
		if !ok {
			n.permit(now, out)
			return
		}
		switch what {
		case admit.Paused:
			n.onward(now, t, bytes, out)
		case admit.Lined:
			n.quota.Drop(now, t.Slot(), bytes)
			n.refuses(event.Verdict{Ticket: t, Why: event.OverPace}, out)
		case admit.Waited:
			n.quota.Undo(now, t.Slot())
			n.refuses(event.Verdict{Ticket: t, Why: event.WaitedLong, Waited: waited}, out)
		}
	}
}

// shut tells all who wait that nothing new is begun any more. What streams goes on.
func (n *Node) shut(now words.Instant, out *event.Effects) {
	for {
		t, ok := n.admit.Evict()
		if !ok {
			n.permit(now, out)
			return
		}
		n.quota.Undo(now, t.Slot())
		n.refuses(event.Verdict{Ticket: t, Why: event.NotServing}, out)
	}
}

// paced is when the instance's quota lets the next of those go who might.
func (n *Node) paced() (at words.Instant, any bool) {
	at = quota.Never
	if n.admit.Ripe() {
		at, _ = n.quota.Next(0, 0)
	}
	if n.admit.Lined() > 0 {
		at = min(at, n.quota.Onward(0))
	}
	return at, at != quota.Never
}
