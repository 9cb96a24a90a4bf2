package node

import (
	"time"

	"macronode/core/event"
	"macronode/core/gateway/quota"
	"macronode/core/types"
)

// reserveBytes grants further bytes of a request's bodies: at once, or when the quotas of its peer, key
// and tenant have them and it is its turn at the instance quota. A wait beyond the deadline of the
// request is rejected.
func (n *Node) reserveBytes(now types.Instant, in *event.ReserveBytes, out *event.Effects) {
	n.reservePart(now, in, out)
	n.grantPermits(now, out)
}

func (n *Node) reservePart(now types.Instant, in *event.ReserveBytes, out *event.Effects) {
	t, place := in.Ticket, in.Ticket.Slot()
	switch {
	case !n.admission.Holds(t):
		return // it was finished and gets no answer
	case n.admission.KeyEnded(t):
		n.rejectAdmission(event.Decision{Ticket: t, Reason: event.RejectKeyEnded}, out)
		return
	case n.admission.Lost(t):
		n.rejectAdmission(event.Decision{Ticket: t, Reason: event.RejectQueueTimeout}, out)
		return
	case !n.admission.Works(t):
		return // it waits already and will get an answer
	case !n.quota.CountsBytes(place):
		n.quota.RecordPassed(place, n.config.Admission.Quantum)
		n.sendGrant(t, n.config.Admission.Quantum, out)
		return
	}
	timeLeft := n.admission.Patience(t)
	bytes := n.partSize(n.quota.Subject(place), max(in.Bytes, 1), timeLeft)
	wait, v := n.quota.ReservePart(now, place, bytes, timeLeft)
	switch {
	case v.Refused:
		n.rejectAdmission(event.Decision{Ticket: t, Reason: event.RejectQuotaExceeded, Rule: v.Rule, Left: v.Left, Reset: v.Reset, RetryAfter: v.RetryAfter}, out)
	case wait > 0:
		n.admission.Pause(t, bytes, now.Add(wait))
	default:
		n.queuePart(now, t, bytes, out)
	}
}

// minConcurrentBodies is the number of concurrent bodies of one caller that its quotas can pace before
// one of them waits beyond its deadline.
const minConcurrentBodies = 64

// partSize returns how many of so many bytes are granted at once: a quantum at most. It is less if the
// instance quota takes longer for them than other requests may wait, or if the caller's own quotas take
// longer than its concurrent bodies may wait; and never less than the cost of the smallest request.
func (n *Node) partSize(subject *quota.Subject, bytes uint64, timeLeft time.Duration) uint64 {
	a := &n.config.Admission
	bytes = min(bytes, a.Quantum)
	for bytes > a.Least {
		if instance, own := n.quota.DrainTime(subject, bytes); instance <= a.Wait/2 && own <= timeLeft/minConcurrentBodies {
			break
		}
		bytes = max(bytes/2, a.Least)
	}
	return bytes
}

// grantBytes returns how many bytes an admitted request may pass before it must reserve more: what it was
// charged, or a quantum if no quota counts bytes.
func (n *Node) grantBytes(t types.Ticket) uint64 {
	if n.quota.CountsBytes(t.Slot()) {
		return n.quota.ChargedBytes(t.Slot())
	}
	return n.config.Admission.Quantum
}

// queuePart queues a part, which the quotas of peer, key and tenant have admitted, for its turn at the
// instance quota.
func (n *Node) queuePart(now types.Instant, t types.Ticket, bytes uint64, out *event.Effects) {
	n.quota.GrantPart(t.Slot())
	if !n.quota.HasInstanceByteQuota() {
		n.passPart(now, t, bytes, out)
		return
	}
	n.admission.Line(t, bytes, now.Add(n.admission.Patience(t)))
	n.grantPermits(now, out)
}

// passPart grants a part.
func (n *Node) passPart(now types.Instant, t types.Ticket, bytes uint64, out *event.Effects) {
	n.quota.ChargeInstancePart(now, t.Slot(), bytes)
	n.sendGrant(t, bytes, out)
}

func (n *Node) sendGrant(t types.Ticket, bytes uint64, out *event.Effects) {
	n.admission.Pass(t, bytes)
	out.Decisions = append(out.Decisions, event.Decision{Ticket: t, Bytes: bytes})
}
