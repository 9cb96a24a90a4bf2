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

// admitRequest queues a request for a permit, or rejects it. A rejection changes no quota and no queue.
// In both cases permits are granted to requests that time has made ready.
func (n *Node) admitRequest(now types.Now, at types.Time, in *event.Admit, out *event.Effects) {
	v := event.Decision{Ticket: in.Ticket, Ahead: uint32(n.admission.Ahead(in))}
	if v.Reason = n.rejectReason(now.Mono, at, in); v.Reason == event.Admitted {
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
	for i := from; i < len(out.Decisions); i++ { // a request that is admitted at once gets the state of its quotas
		if charged := &out.Decisions[i]; charged.Ticket == v.Ticket {
			v.Shadow, v.Bytes = v.Shadow|charged.Shadow, charged.Bytes
			*charged = v
		}
	}
}

// finishRequest returns a permit and grants it to the next request. Quotas get back what was charged and
// not used: all of it if the request was never admitted.
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

// countCompletion counts how a request ended, once a drain has begun.
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

// rejectReason returns why a request is rejected, apart from quotas.
func (n *Node) rejectReason(now types.Instant, at types.Time, in *event.Admit) event.RejectReason {
	if n.drain.Refusing() || !n.readiness.Verdict().Reads {
		return event.RejectNotServing
	}
	if in.Key != 0 && n.keyHasEnded(at, in.Key) { // its end may be newer than the read model, which verified the key
		return event.RejectKeyEnded
	}
	switch err := n.admission.Would(in); {
	case errors.Is(err, admission.ErrRoute):
		return event.RejectRouteLimit
	case errors.Is(err, admission.ErrRouteFlow):
		return event.RejectRouteFlow
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
	if n.admission.Alone(in) { // a flow without queued requests gets its turn, however many are ahead
		most = n.config.Admission.Wait
	}
	if n.quota.AdmitTime(now, n.admission.Ahead(in)) > now.Add(most) {
		return event.RejectPacingTimeout
	}
	return event.Admitted
}

// maxPacingDelay returns how long a request of a class may wait for the instance quota: the more weight,
// the longer, up to the wait for a permit.
func (c *Config) maxPacingDelay(class types.Class) time.Duration {
	least := c.Admission.Weights[class]
	for _, w := range c.Admission.Weights {
		if w > 0 {
			least = min(least, w)
		}
	}
	return max(c.MaxPacingDelay, min(c.Admission.Wait, c.MaxPacingDelay*time.Duration(c.Admission.Weights[class]/least)))
}

// chargeQuotas charges all quotas that apply, or none. Of a body only the first part is charged.
func (n *Node) chargeQuotas(now types.Instant, in *event.Admit, v *event.Decision) {
	subject := quota.Subject{Class: in.Class, Peer: in.Peer, Key: in.Key, Tenant: in.Tenant, Route: in.Route}
	charged := n.quota.Admit(now, in.Ticket.Slot(), subject, n.partSize(&subject, uint64(max(in.DeclaredBytes, 0)), in.TimeLeft))
	v.Rule, v.Left, v.Reset, v.RetryAfter, v.Shadow = charged.Rule, charged.Left, charged.Reset, charged.RetryAfter, charged.Shadow
	if charged.Refused {
		v.Reason = event.RejectQuotaExceeded
	}
}

// rejectAdmission rejects a request, or takes its permit. The decision does not wait for the disk: it reveals no durable state, but
// that a key may have ended.
func (n *Node) rejectAdmission(v event.Decision, out *event.Effects) {
	v.Problem = v.Reason.Problem()
	if v.Reason == event.RejectNotServing {
		n.countCompletion(event.CompletionRejected)
	}
	out.Decisions = append(out.Decisions, v)
}

// grantPermits grants permits in turn, while there are permits and the instance quota admits. Parts of
// bodies that wait for the instance quota take turns with them.
func (n *Node) grantPermits(now types.Instant, out *event.Effects) {
	for {
		ripe, lined := n.runnable(now)
		switch {
		case lined && (n.admission.First() || !ripe):
			t, bytes := n.admission.NextPart()
			n.passPart(now, t, bytes, out)
		case ripe:
			t, waited := n.admission.Next(now)
			n.sendPermit(now, t, waited, out)
		default:
			return
		}
	}
}

// sendPermit admits a request that has a permit.
func (n *Node) sendPermit(now types.Instant, t types.Ticket, waited time.Duration, out *event.Effects) {
	shadow := n.quota.ChargeInstance(now, t.Slot())
	out.Decisions = append(out.Decisions, event.Decision{Ticket: t, Waited: waited, Shadow: shadow, Bytes: n.grantBytes(t)})
}

// rejectPart rejects a part of the bodies of a request, which has waited.
func (n *Node) rejectPart(now types.Instant, t types.Ticket, bytes uint64, why event.RejectReason, out *event.Effects) {
	n.quota.ReleasePart(now, t.Slot(), bytes)
	n.rejectAdmission(event.Decision{Ticket: t, Reason: why}, out)
}

// runnable reports whether a request, and whether a part of a body, may go now.
func (n *Node) runnable(now types.Instant) (request, part bool) {
	if n.admission.Ripe() {
		at, _ := n.quota.NextAdmit(now, 0)
		request = at <= now
	}
	return request, n.admission.Lined() > 0 && n.quota.NextPart(now) <= now
}

// expireWaiting rejects the requests that have waited for too long, and resumes those that were paused.
func (n *Node) expireWaiting(now types.Instant, out *event.Effects) {
	for {
		at, _ := n.quota.NextAdmit(now, 0)
		e, ok := n.admission.Overdue(now, at > now)
		if !ok {
			n.grantPermits(now, out)
			return
		}
		switch e.What {
		case admission.Paused:
			n.queuePart(now, e.Ticket, e.Bytes, out)
		case admission.Lined:
			n.rejectPart(now, e.Ticket, e.Bytes, event.RejectPacingTimeout, out)
		case admission.Waited:
			n.quota.Undo(now, e.Ticket.Slot())
			n.rejectAdmission(event.Decision{Ticket: e.Ticket, Reason: event.RejectQueueTimeout, Waited: e.Waited}, out)
		case admission.TookOver:
			if e.Bytes > 0 {
				n.rejectPart(now, e.Loser, e.Bytes, event.RejectPacingTimeout, out)
			}
			n.rejectAdmission(event.Decision{Ticket: e.Loser, Reason: event.RejectGaveWay}, out)
			n.sendPermit(now, e.Ticket, e.Waited, out)
		}
	}
}

// rejectWaiting rejects all queued requests because of a drain. Admitted streams continue.
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

// nextPaced returns when the instance quota admits the next request or part.
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
