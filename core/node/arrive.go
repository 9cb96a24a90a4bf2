package node

import (
	"errors"

	"macronode/core/admit"
	"macronode/core/event"
	"macronode/core/fair"
	"macronode/core/quota"
	"macronode/core/words"
)

// arrive lets a request wait for its permit, or says why not. Where it is refused, nothing
// of anybody has changed.
func (n *Node) arrive(now words.Now, in *event.Arrive, out *event.Effects) {
	v := event.Verdict{Ticket: in.Ticket, Ahead: uint32(n.admit.Ahead(in))}
	if v.Why = n.bars(now.Mono, in); v.Why == event.Admitted {
		n.charges(now.Mono, in, &v)
	}
	if v.Why != event.Admitted {
		n.refuses(v, out)
		return
	}
	n.admit.Arrive(now.Mono, in)
	from := len(out.Verdicts)
	n.permit(now.Mono, out)
	for i := from; i < len(out.Verdicts); i++ { // who goes at once is told how it stands with its quotas
		if said := &out.Verdicts[i]; said.Ticket == v.Ticket {
			v.Shadow |= said.Shadow
			*said = v
		}
	}
}

// settle takes a permit back, and gives it to whose turn it is.
func (n *Node) settle(now words.Instant, in *event.Settle, out *event.Effects) {
	n.admit.Settle(in.Ticket, in.Bytes)
	n.permit(now, out)
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
	most := n.config.Pace
	if n.admit.Alone(in) { // whoever asks for little has his turn, however many come before it
		most = n.config.Admit.Wait
	}
	if n.quota.After(now, n.admit.Ahead(in)) > now.Plus(most) {
		return event.OverPace
	}
	return event.Admitted
}

// charges asks the quotas, which charge all that apply, or none.
func (n *Node) charges(now words.Instant, in *event.Arrive, v *event.Verdict) {
	said := n.quota.Take(now, quota.Who{Class: in.Class, Peer: in.Peer, Key: in.Key, Tenant: in.Tenant, Route: in.Route}, uint64(max(in.Bytes, 0)))
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
		if n.drain.Closed() {
			n.report.Refused++
		}
	}
	out.Verdicts = append(out.Verdicts, v)
}

// permit gives permits to those whose turn it is, while there are permits and the
// instance's quota lets them go.
func (n *Node) permit(now words.Instant, out *event.Effects) {
	for n.admit.Ripe() {
		if at, _ := n.quota.Next(now, 0); at > now {
			return
		}
		t, waited := n.admit.Next(now)
		out.Verdicts = append(out.Verdicts, event.Verdict{Ticket: t, Waited: waited, Shadow: n.quota.Spend(now, 0)})
	}
}

// late tells those who have waited for as long as they may.
func (n *Node) late(now words.Instant, out *event.Effects) {
	for {
		t, waited, ok := n.admit.Overdue(now)
		if !ok {
			n.permit(now, out)
			return
		}
		n.refuses(event.Verdict{Ticket: t, Why: event.WaitedLong, Waited: waited}, out)
	}
}

// shut tells all who wait that nothing new is begun any more.
func (n *Node) shut(out *event.Effects) {
	for {
		t, ok := n.admit.Evict()
		if !ok {
			return
		}
		n.refuses(event.Verdict{Ticket: t, Why: event.NotServing}, out)
	}
}

// paced is when the instance's quota lets the next of those who might go.
func (n *Node) paced() (at words.Instant, any bool) {
	if !n.admit.Ripe() {
		return 0, false
	}
	at, _ = n.quota.Next(0, 0)
	return at, at != quota.Never
}
