package node

import (
	"time"

	"macronode/core/event"
	"macronode/core/gateway/quota"
	"macronode/core/types"
)

// reserveBytes lets further bytes of a request's bodies go on: at once, or when its peer, key and
// tenant have them and it is their turn at the instance's. Who would wait for longer than
// the request has patience is told so. Behind it goes whom the time lets go.
func (n *Node) reserveBytes(now types.Instant, in *event.ReserveBytes, out *event.Effects) {
	n.reservePart(now, in, out)
	n.grantPermits(now, out)
}

func (n *Node) reservePart(now types.Instant, in *event.ReserveBytes, out *event.Effects) {
	t, place := in.Ticket, in.Ticket.Slot()
	switch {
	case !n.admission.Holds(t):
		return // it was settled, and hears nothing any more
	case n.admission.Lost(t):
		n.rejectAdmission(event.Decision{Ticket: t, Reason: event.RejectQueueTimeout}, out)
		return
	case !n.admission.Works(t):
		return // it waits already, and will be told
	case !n.quota.CountsBytes(place):
		n.quota.RecordPassed(place, n.config.Admission.Quantum)
		n.sendGrant(t, n.config.Admission.Quantum, out)
		return
	}
	patience := n.admission.Patience(t)
	bytes := n.partSize(n.quota.Subject(place), max(in.Bytes, 1), patience)
	wait, v := n.quota.ReservePart(now, place, bytes, patience)
	switch {
	case v.Refused:
		n.rejectAdmission(event.Decision{Ticket: t, Reason: event.RejectQuotaExceeded, Rule: v.Rule, Left: v.Left, Reset: v.Reset, RetryAfter: v.RetryAfter}, out)
	case wait > 0:
		n.admission.Pause(t, bytes, now.Add(wait))
	default:
		n.queuePart(now, t, bytes, out)
	}
}

// minConcurrentBodies is how many bodies of one caller his quotas can pace at once, at the least, before
// one of them has to wait for longer than it has patience.
const minConcurrentBodies = 64

// partSize is how much of so many bytes goes at once: a quantum at most. It is less where the
// instance takes longer for that than others who come may wait, or the caller's own quotas
// than his bodies can wait for each other; but no less than what any request costs.
func (n *Node) partSize(who *quota.Subject, bytes uint64, patience time.Duration) uint64 {
	a := &n.config.Admission
	bytes = min(bytes, a.Quantum)
	for bytes > a.Least {
		if instance, own := n.quota.DrainTime(who, bytes); instance <= a.Wait/2 && own <= patience/minConcurrentBodies {
			break
		}
		bytes = max(bytes/2, a.Least)
	}
	return bytes
}

// grantBytes is how many bytes of a request that goes may go before it must ask: what it was
// charged, or a quantum where nobody counts them.
func (n *Node) grantBytes(t types.Ticket) uint64 {
	if n.quota.CountsBytes(t.Slot()) {
		return n.quota.ChargedBytes(t.Slot())
	}
	return n.config.Admission.Quantum
}

// queuePart has bytes, which peer, key and tenant let go, wait for their turn at the
// instance's, where that paces.
func (n *Node) queuePart(now types.Instant, t types.Ticket, bytes uint64, out *event.Effects) {
	n.quota.GrantPart(t.Slot())
	if !n.quota.HasInstanceByteQuota() {
		n.passPart(now, t, bytes, out)
		return
	}
	n.admission.Line(t, bytes, now.Add(n.admission.Patience(t)))
	n.grantPermits(now, out)
}

// passPart lets bytes go.
func (n *Node) passPart(now types.Instant, t types.Ticket, bytes uint64, out *event.Effects) {
	n.quota.ChargeInstancePart(now, t.Slot(), bytes)
	n.sendGrant(t, bytes, out)
}

func (n *Node) sendGrant(t types.Ticket, bytes uint64, out *event.Effects) {
	n.admission.Pass(t, bytes)
	out.Decisions = append(out.Decisions, event.Decision{Ticket: t, Bytes: bytes})
}
