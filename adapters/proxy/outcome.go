package proxy

import (
	"context"
	"errors"
	"net"
	"net/http"
	"syscall"
	"time"

	"macronode/adapters/inflate"
	"macronode/core/event"
)

// Results of attempts: they are reported to the core, and to the client if there is no retry.

// Errors that end an attempt.
var (
	errUnsendable = errors.New("proxy: the request cannot be written")

	errNoResponseInTime = errors.New("proxy: no response in time")
	errStalled          = errors.New("proxy: the response has stalled")
)

// reportFailure reports a failed attempt and returns whether to retry.
func (t *exchange) reportFailure(e event.AttemptOutcome) event.RetryDecision {
	decision := t.port.ReportFailure(event.AttemptResult{Ticket: t.ticket, Outcome: e, BodyConsumed: t.isBodyConsumed(), ResponseStarted: t.responseStarted.Load(), TimeLeft: t.timeLeft()})
	t.upstream.NoRetry = decision.NoRetry
	return decision
}

// isBodyConsumed reports whether a part of the body was read.
func (t *exchange) isBodyConsumed() bool { return t.body != nil && t.body.isStarted.Load() }

// lostPermit is why a request is cancelled that has lost its permit, or what else is limited.
type lostPermit struct {
	why event.RejectReason
	of  FailureReason // empty: that of why
}

func (e *lostPermit) Error() string { return "proxy: the permit was lost: " + e.why.String() }

func (e *lostPermit) reason() FailureReason {
	switch {
	case e.of != NoFailure:
		return e.of
	case e.why == event.RejectKeyEnded:
		return KeyEnded
	}
	return GaveWay
}

// LosePermit cancels the request because it has lost its permit.
func (t *exchange) LosePermit(why event.RejectReason) { t.cancel(&lostPermit{why: why}) }

// lost returns how the request has lost its permit; nil: it has it.
func (t *exchange) lost() *lostPermit { return lostOf(t.ctx) }

// lostOf returns how the request of a context has lost its permit; nil: it has it.
func lostOf(ctx context.Context) *lostPermit {
	e, _ := errors.AsType[*lostPermit](context.Cause(ctx))
	return e
}

// problemOf returns the problem of a request that has lost its permit before its response began; None if an endpoint may have
// processed it: only an end of the connection says that nothing is known.
func (t *exchange) problemOf(e *lostPermit) event.Problem {
	if !isIdempotent(t.r.Method) && t.isBodyRead() {
		return event.None
	}
	if e.of == LostDecompressor {
		t.trace.detail = "Its body took long, and its decompressor was given to a caller without one. A body in gzip or without compression needs none."
	}
	return e.why.Problem()
}

// endReason returns why a request was cancelled: by its client or by the shutdown of the node.
func (p *Proxy) endReason(r *http.Request) FailureReason {
	if p.config.ShutdownCause != nil && errors.Is(context.Cause(r.Context()), p.config.ShutdownCause) {
		return Shutdown
	}
	return ClientDisconnected
}

// finish reports the final result of a response.
func (t *exchange) finish(e event.AttemptOutcome, s FailureReason) {
	if t.upstream.lastAttempt().Reason == BadStatus && s == NoFailure {
		s = BadStatus
	}
	if s == ClientDisconnected {
		s = t.endReason(t.r)
	}
	if lost := t.lost(); lost != nil && e == event.AttemptAbandoned {
		s = lost.reason()
	}
	t.upstream.endAttempt(e, s, 0)
	t.port.Report(event.AttemptResult{Ticket: t.ticket, Outcome: e})
}

// classify returns the result of an attempt without a response, the problem for the client, and
// the reason for the trace.
func (t *exchange) classify(err error) (event.AttemptOutcome, event.Problem, FailureReason) {
	var op *net.OpError
	isCancelled, lost := t.r.Context().Err() != nil, t.lost()
	switch {
	case lost != nil:
		return event.AttemptAbandoned, t.problemOf(lost), lost.reason()
	case isCancelled && t.endReason(t.r) == Shutdown: // a failed body is then not the fault of the client
		return event.AttemptAbandoned, event.None, Shutdown
	case t.body != nil && t.body.failure(isCancelled) != event.None:
		problem, reason := t.body.failure(false), RequestBodyError
		switch {
		case t.body.isOverQuota.Load():
			reason = QuotaTimeout
		case t.body.isMalformed.Load():
			t.trace.detail = "The request body does not match its Content-Encoding."
		case problem == event.PayloadTooLarge && t.inflated != nil:
			t.trace.detail = inflate.Describe(inflate.Most)
		case problem == event.BadRequest:
			t.trace.detail = "The request body did not arrive completely in time."
		}
		return event.AttemptAbandoned, problem, reason
	case isCancelled:
		return event.AttemptAbandoned, event.None, t.endReason(t.r)
	case errors.Is(context.Cause(t.ctx), errNoResponseInTime) && t.isClientDeadline:
		return event.AttemptAbandoned, event.Timeout, ClientDeadline
	case errors.Is(context.Cause(t.ctx), errNoResponseInTime):
		return event.AttemptTimedOut, event.Timeout, DeadlineExceeded
	}
	if problem, reason, ok := faultElsewhere(err); ok {
		return event.AttemptAbandoned, problem, reason
	}
	switch {
	case errors.Is(err, errStreamRefused), errors.As(err, &op) && op.Op == "dial":
		return event.AttemptUnsent, event.BadGateway, failureReason(err)
	}
	reason := failureReason(err)
	if t.isEndedBySlowClient(reason) {
		t.trace.detail = "The upstream service closed the connection after a long wait for the client."
		return event.AttemptAbandoned, event.BadGateway, ClientSlow
	}
	return event.AttemptFailed, event.BadGateway, reason
}

// faultElsewhere reports whether an error is not the endpoint's fault: the request cannot be
// written, this machine lacks resources, or the endpoint has not begun the request or rejects its
// size. Such an attempt counts neither against the endpoint nor for a retry.
func faultElsewhere(err error) (problem event.Problem, symptom FailureReason, ok bool) {
	switch {
	case errors.Is(err, errUnsendable):
		return event.BadRequest, InvalidRequest, true
	case errors.Is(err, errHeaderTooLarge):
		return event.BadRequest, StreamRefused, true
	case errors.Is(err, errConnWentAway):
		return event.BadGateway, StreamRefused, true
	case isExhausted(err):
		return event.Unavailable, ResourceExhausted, true
	}
	return event.None, NoFailure, false
}

// isExhausted reports whether this machine lacks a resource for a connection. EADDRNOTAVAIL is
// excluded, because an unreachable address causes it as well.
func isExhausted(err error) bool {
	for _, limit := range [...]syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM} {
		if errors.Is(err, limit) {
			return true
		}
	}
	return false
}

// writeProblem answers with a problem. If the client has left, it aborts the connection.
func (t *exchange) writeProblem(problem event.Problem) {
	t.sealHeader()
	if problem == event.None {
		panic(http.ErrAbortHandler)
	}
	_ = t.controller.SetWriteDeadline(time.Now().Add(t.config.Grace))
	t.fail(t.w, t.r, problem, 0)
}

// sealHeader precedes the header of a response. If the request body is not complete, the
// connection ends with the response, so the server does not wait for the body first.
func (t *exchange) sealHeader() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.headerSealed = true
	if t.body != nil && t.r.ProtoMajor == 1 && !t.body.isComplete.Load() {
		t.w.Header()["Connection"] = []string{"close"}
	}
}
