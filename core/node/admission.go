package node

import (
	"errors"
	"time"

	"macronode/core/event"
	"macronode/core/gateway/admission"
	"macronode/core/gateway/drr"
	"macronode/core/gateway/quota"
	"macronode/core/types"
)

// admitRequest lets a request wait for its permit, or says why not. Where it is refused, nothing
// of anybody has changed, but that time has gone by: whom that lets go goes.
func (n *Node) admitRequest(now types.Now, in *event.Admit, out *event.Effects) {
	v := event.Decision{Ticket: in.Ticket, Ahead: uint32(n.admission.Ahead(in))}
	if v.Reason = n.rejectReason(now.Mono, in); v.Reason == event.Admitted {
		n.chargeQuotas(now.Mono, in, &v)
	}
	if v.Reason != event.Admitted {
		n.rejectAdmission(v, out)
		n.grantPermits(now.Mono, out)
		return
	}
	n.admission.Arrive(now.Mono, in)
	from := len(out.Decisions)
	n.grantPermits(now.Mono, out)
	for i := from; i < len(out.Decisions); i++ { // who goes at once is told how it stands with its quotas
		if said := &out.Decisions[i]; said.Ticket == v.Ticket {
			v.Shadow, v.Bytes = v.Shadow|said.Shadow, said.Bytes
			*said = v
		}
	}
}

// finishRequest takes a permit back, and gives it to whose turn it is. Quotas are given back what
// was charged and not used: all of it, where the request was never let in.
func (n *Node) finishRequest(now types.Instant, in *event.Finish, out *event.Effects) {
	ended, worked := n.admission.Settle(in.Ticket, in.Bytes)
	switch {
	case !ended:
	case worked:
		n.quota.Finish(now, in.Ticket.Slot(), in.Bytes)
		n.countCompletion(in.Completion)
	default:
		n.quota.Undo(now, in.Ticket.Slot())
	}
	n.grantPermits(now, out)
}

// countCompletion counts what became of a request, once the end has begun.
func (n *Node) countCompletion(f event.Completion) {
	if !n.drain.Started() {
		return
	}
	switch f {
	case event.CompletionRejected:
		n.report.Rejected++
	case event.CompletionAborted:
		n.report.Aborted++
	default:
		n.report.Finished++
	}
}

// rejectReason says which bound but a quota refuses a request.
func (n *Node) rejectReason(now types.Instant, in *event.Admit) event.RejectReason {
	if n.drain.Refusing() || !n.readiness.Verdict().Reads {
		return event.RejectNotServing
	}
	switch err := n.admission.Would(in); {
	case errors.Is(err, admission.ErrRoute):
		return event.RejectRouteLimit
	case errors.Is(err, drr.ErrWeight):
		return event.RejectClassDisabled
	case errors.Is(err, drr.ErrFull):
		return event.RejectQueueFull
	case errors.Is(err, drr.ErrClass):
		return event.RejectClassLimit
	case errors.Is(err, drr.ErrFlow):
		return event.RejectFlowLimit
	}
	most := n.config.maxPacingDelay(in.Class)
	if n.admission.Alone(in) { // whoever asks for little has his turn, however many come before it
		most = n.config.Admission.Wait
	}
	if n.quota.AdmitTime(now, n.admission.Ahead(in)) > now.Add(most) {
		return event.RejectPacingTimeout
	}
	return event.Admitted
}

// maxPacingDelay is how long one of a class may wait for the instance's quota: longer by as much as
// a turn of the class is worth more than the least, but no longer than for a permit.
func (c *Config) maxPacingDelay(class types.Class) time.Duration {
	least := c.Admission.Weights[class]
	for _, w := range c.Admission.Weights {
		if w > 0 {
			least = min(least, w)
		}
	}
	return max(c.MaxPacingDelay, min(c.Admission.Wait, c.MaxPacingDelay*time.Duration(c.Admission.Weights[class]/least)))
}

// chargeQuotas asks the quotas, which charge all that apply, or none: of a body no more than its
// first part.
func (n *Node) chargeQuotas(now types.Instant, in *event.Admit, v *event.Decision) {
	who := quota.Subject{Class: in.Class, Peer: in.Peer, Key: in.Key, Tenant: in.Tenant, Route: in.Route}
	said := n.quota.Admit(now, in.Ticket.Slot(), who, n.partSize(&who, uint64(max(in.DeclaredBytes, 0)), in.TimeLeft))
	v.Rule, v.Left, v.Reset, v.RetryAfter, v.Shadow = said.Rule, said.Left, said.Reset, said.RetryAfter, said.Shadow
	if said.Refused {
		v.Reason = event.RejectQuotaExceeded
	}
}

// rejectAdmission rejects a request. The decision reveals no durable state, so it does not wait
// for the disk.
func (n *Node) rejectAdmission(v event.Decision, out *event.Effects) {
	v.Problem = v.Reason.Problem()
	if v.Reason == event.RejectNotServing {
		n.countCompletion(event.CompletionRejected)
	}
	out.Decisions = append(out.Decisions, v)
}

// grantPermits gives permits to those whose turn it is, while there are permits and the
// instance's quota lets them go; and in turn with them it lets parts of bodies go.
func (n *Node) grantPermits(now types.Instant, out *event.Effects) {
	for {
		ripe, lined := n.runnable(now)
		switch {
		case lined && (n.admission.First() || !ripe):
			t, bytes := n.admission.NextPart()
			n.passPart(now, t, bytes, out)
		case ripe:
			t, waited := n.admission.Next(now)
			shadow := n.quota.ChargeInstance(now, t.Slot())
			out.Decisions = append(out.Decisions, event.Decision{Ticket: t, Waited: waited, Shadow: shadow, Bytes: n.grantBytes(t)})
		default:
			return
		}
	}
}

// runnable reports that a request, and that a part of a body, may go now.
func (n *Node) runnable(now types.Instant) (request, part bool) {
	if n.admission.Ripe() {
		at, _ := n.quota.NextAdmit(now, 0)
		request = at <= now
	}
	return request, n.admission.Lined() > 0 && n.quota.NextPart(now) <= now
}

// expireWaiting tells those who have waited for as long as they may, and lets go on what was paused.
func (n *Node) expireWaiting(now types.Instant, out *event.Effects) {
	for {
		t, what, waited, bytes, ok := n.admission.Overdue(now)
		if !ok {
			n.grantPermits(now, out)
			return
		}
		switch what {
		case admission.Paused:
			n.queuePart(now, t, bytes, out)
		case admission.Lined:
			n.quota.ReleasePart(now, t.Slot(), bytes)
			n.rejectAdmission(event.Decision{Ticket: t, Reason: event.RejectPacingTimeout}, out)
		case admission.Waited:
			n.quota.Undo(now, t.Slot())
			n.rejectAdmission(event.Decision{Ticket: t, Reason: event.RejectQueueTimeout, Waited: waited}, out)
		}
	}
}

// rejectWaiting tells all who wait that nothing new is begun any more. What streams goes on.
func (n *Node) rejectWaiting(now types.Instant, out *event.Effects) {
	for {
		t, ok := n.admission.Evict()
		if !ok {
			n.grantPermits(now, out)
			return
		}
		n.quota.Undo(now, t.Slot())
		n.rejectAdmission(event.Decision{Ticket: t, Reason: event.RejectNotServing}, out)
	}
}

// nextPaced is when the instance's quota lets the next of those go who might.
func (n *Node) nextPaced() (at types.Instant, any bool) {
	at = quota.Never
	if n.admission.Ripe() {
		at, _ = n.quota.NextAdmit(0, 0)
	}
	if n.admission.Lined() > 0 {
		at = min(at, n.quota.NextPart(0))
	}
	return at, at != quota.Never
}
