package proxy

import (
	"context"
	"errors"
	"net"
	"net/http"
	"syscall"
	"time"

	"macronode/core/event"
)

// What a try comes to is told to who decides, and to the client where there is no other.

// Why a request is given up.
var (
	errUnsendable = errors.New("proxy: the request cannot be written")

	errLate   = errors.New("proxy: no answer in time")
	errSilent = errors.New("proxy: the upstream is silent")
)

// failed tells of a try that failed, and asks whether there is another.
func (t *trip) failed(e event.AttemptOutcome) event.RetryDecision {
	on := t.port.Failed(event.AttemptResult{Ticket: t.ticket, Outcome: e, BodyConsumed: t.spent(), ResponseStarted: t.spoke.Load(), TimeLeft: t.left()})
	t.leg.Halt = on.NoRetry
	return on
}

// spent reports that some of the body is gone.
func (t *trip) spent() bool { return t.body != nil && t.body.begun.Load() }

// gone is who ended a request that did not end by itself: its client, or the node.
func (p *Proxy) gone(r *http.Request) Symptom {
	if p.config.Cut != nil && errors.Is(context.Cause(r.Context()), p.config.Cut) {
		return Drained
	}
	return Gone
}

// over tells what an answer has come to.
func (t *trip) over(e event.AttemptOutcome, s Symptom) {
	if t.leg.Tries[len(t.leg.Tries)-1].Symptom == BadStatus && s == Fine {
		s = BadStatus
	}
	if s == Gone {
		s = t.gone(t.r)
	}
	t.leg.ended(e, s, 0)
	t.port.Tell(event.AttemptResult{Ticket: t.ticket, Outcome: e})
}

// why says what an endpoint that gave no answer came to, what the client is told, and what
// who asks later is.
func (t *trip) why(err error) (event.AttemptOutcome, event.Problem, Symptom) {
	var op *net.OpError
	gone := t.r.Context().Err() != nil
	switch {
	case gone && t.gone(t.r) == Drained: // what became of the body is not its client's doing
		return event.AttemptAbandoned, event.None, Drained
	case t.body != nil && t.body.wrong(gone) != event.None:
		return event.AttemptAbandoned, t.body.wrong(false), Body
	case gone:
		return event.AttemptAbandoned, event.None, t.gone(t.r)
	case errors.Is(context.Cause(t.ctx), errLate) && t.hurried:
		return event.AttemptAbandoned, event.Timeout, Hurried
	case errors.Is(context.Cause(t.ctx), errLate):
		return event.AttemptTimedOut, event.Timeout, Deadline
	}
	if problem, symptom, ok := blameless(err); ok {
		return event.AttemptAbandoned, problem, symptom
	}
	switch {
	case errors.Is(err, errDeclined), errors.As(err, &op) && op.Op == "dial":
		return event.AttemptUnsent, event.BadGateway, symptom(err)
	}
	return event.AttemptFailed, event.BadGateway, symptom(err)
}

// blameless reports whether an error is not the endpoint's: the request could not be written,
// this machine lacks what a connection needs, or the endpoint has said that it has not begun
// with a request or takes none so large. Such a try counts neither against the endpoint nor
// for a retry.
func blameless(err error) (problem event.Problem, symptom Symptom, ok bool) {
	switch {
	case errors.Is(err, errUnsendable):
		return event.BadRequest, InvalidRequest, true
	case errors.Is(err, errLarge):
		return event.BadRequest, Declined, true
	case errors.Is(err, errAway):
		return event.BadGateway, Declined, true
	case isExhausted(err):
		return event.Unavailable, ResourceExhausted, true
	}
	return event.None, Fine, false
}

// isExhausted reports whether this machine, and not the endpoint, is why there is no connection.
// EADDRNOTAVAIL is none of these: an address that this machine cannot reach gives it as well.
func isExhausted(err error) bool {
	for _, limit := range [...]syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM} {
		if errors.Is(err, limit) {
			return true
		}
	}
	return false
}

// refuse answers with a problem; with nothing, and no end, where the client has left.
func (t *trip) refuse(problem event.Problem) {
	t.seal()
	if problem == event.None {
		panic(http.ErrAbortHandler)
	}
	_ = t.control.SetWriteDeadline(time.Now().Add(t.config.Grace))
	t.fail(t.w, t.r, problem, 0)
}

// seal comes before the header of an answer. One that comes before the body is whole
// ends the connection: so the server does not wait for the body before it lets it out.
func (t *trip) seal() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sealed = true
	if t.body != nil && t.r.ProtoMajor == 1 && !t.body.done.Load() {
		t.w.Header()["Connection"] = []string{"close"}
	}
}
