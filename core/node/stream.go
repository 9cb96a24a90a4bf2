package node

import (
	"time"

	"macronode/core/event"
	"macronode/core/quota"
	"macronode/core/words"
)

// stream lets further bytes of a request's bodies go on: at once, or when its peer, key and
// tenant have them and it is their turn at the instance's. Who would wait for longer than
// the request has patience is told so. Behind it goes whom the time lets go.
func (n *Node) stream(now words.Instant, in *event.Stream, out *event.Effects) {
	n.streams(now, in, out)
	n.permit(now, out)
}

func (n *Node) streams(now words.Instant, in *event.Stream, out *event.Effects) {
	t, place := in.Ticket, in.Ticket.Slot()
	switch {
	case !n.admit.Holds(t):
		return // it was settled, and hears nothing any more
	case n.admit.Lost(t):
		n.refuses(event.Verdict{Ticket: t, Why: event.WaitedLong}, out)
		return
	case !n.admit.Works(t):
		return // it waits already, and will be told
	case !n.quota.Counts(place):
		n.quota.Pass(place, n.config.Admit.Quantum)
		n.tellsOn(t, n.config.Admit.Quantum, out)
		return
	}
	patience := n.admit.Patience(t)
	bytes := n.part(n.quota.Who(place), max(in.Bytes, 1), patience)
	wait, v := n.quota.Book(now, place, bytes, patience)
	switch {
	case v.Refused:
		n.refuses(event.Verdict{Ticket: t, Why: event.OverQuota, Rule: v.Rule, Left: v.Left, Reset: v.Reset, Retry: v.Retry}, out)
	case wait > 0:
		n.admit.Pause(t, bytes, now.Plus(wait))
	default:
		n.onward(now, t, bytes, out)
	}
}

// parts is how many bodies of one caller his quotas can pace at once, at the least, before
// one of them has to wait for longer than it has patience.
const parts = 64

// part is how much of so many bytes goes at once: a quantum at most. It is less where the
// instance takes longer for that than others who come may wait, or the caller's own quotas
// than his bodies can wait for each other; but no less than what any request costs.
func (n *Node) part(who *quota.Who, bytes uint64, patience time.Duration) uint64 {
	a := &n.config.Admit
	bytes = min(bytes, a.Quantum)
	for bytes > a.Least {
		if instance, own := n.quota.Span(who, bytes); instance <= a.Wait/2 && own <= patience/parts {
			break
		}
		bytes = max(bytes/2, a.Least)
	}
	return bytes
}

// allows is how many bytes of a request that goes may go before it must ask: what it was
// charged, or a quantum where nobody counts them.
func (n *Node) allows(t words.Ticket) uint64 {
	if n.quota.Counts(t.Slot()) {
		return n.quota.Had(t.Slot())
	}
	return n.config.Admit.Quantum
}

// onward has bytes, which peer, key and tenant let go, wait for their turn at the
// instance's, where that paces.
func (n *Node) onward(now words.Instant, t words.Ticket, bytes uint64, out *event.Effects) {
	n.quota.Let(t.Slot())
	if !n.quota.Paces() {
		n.passes(now, t, bytes, out)
		return
	}
	n.admit.Line(t, bytes, now.Plus(n.admit.Patience(t)))
	n.permit(now, out)
}

// passes lets bytes go.
func (n *Node) passes(now words.Instant, t words.Ticket, bytes uint64, out *event.Effects) {
	n.quota.Draw(now, t.Slot(), bytes)
	n.tellsOn(t, bytes, out)
}

func (n *Node) tellsOn(t words.Ticket, bytes uint64, out *event.Effects) {
	n.admit.Pass(t, bytes)
	out.Verdicts = append(out.Verdicts, event.Verdict{Ticket: t, Bytes: bytes})
}
