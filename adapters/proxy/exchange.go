package proxy

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"macronode/core/event"
	"macronode/core/types"
)

// An exchange is one request to an upstream and its response.
type exchange struct {
	*Proxy
	w                http.ResponseWriter
	r                *http.Request
	route            *route
	controller       *http.ResponseController
	meter            Meter
	clientWait       clientWait
	heldParts        atomic.Int32 // parts of bodies that wait for quota
	ctx              context.Context
	cancel           context.CancelCauseFunc
	timer            *time.Timer  // cancels the request when a limit of time is reached
	responding       atomic.Bool  // a response is being read: the timer measures a stall
	responseStarted  atomic.Bool  // a part of the response was forwarded
	body             *requestBody // nil: the request has no body
	inflated         *inflated    // the body of a route that decompresses; nil: it is forwarded as it is
	startedAt        time.Time
	timeLimit        time.Duration // until the header of the response
	isClientDeadline bool          // timeLimit comes from the client
	ticket           types.Ticket
	trace            *Trace
	upstream         *UpstreamTrace // the only one

	mu           sync.Mutex // guards the header of w while interim responses may arrive
	headerSealed bool       // interim responses are dropped from now on
}

// Serve forwards a request to the upstream of its route, and the response to the client. It
// records the result in c, which must be empty. If a response that has begun cannot be completed,
// Serve panics with http.ErrAbortHandler, and the server ends the connection.
func (p *Proxy) Serve(w http.ResponseWriter, r *http.Request, m Match, c *Trace) {
	if m.Preflight {
		m.route.cors.servePreflight(w, r)
		return
	}
	if len(m.route.Parts) > 0 {
		p.serveParts(w, r, m.route, c)
		return
	}
	c.Upstreams = []UpstreamTrace{{Upstream: p.config.Upstreams[m.route.Upstream].Name, request: c}}
	t := &exchange{trace: c, upstream: &c.Upstreams[0], Proxy: p, w: w, r: r, route: m.route, controller: http.NewResponseController(w), meter: noMeter{}, startedAt: time.Now()}
	if m, ok := w.(Meter); ok {
		t.meter = m
	}
	t.timeLimit, t.isClientDeadline = responseTimeLimit(r, m.route.deadline)
	t.ctx, t.cancel = context.WithCancelCause(r.Context())
	defer t.cancel(nil)
	if m, ok := w.(LosesPermit); ok {
		m.OnLostPermit(t)
	}
	t.timer = time.AfterFunc(t.timeLimit, t.expire)
	defer t.timer.Stop()
	if r.Body != nil && r.Body != http.NoBody && r.ContentLength != 0 {
		t.body = &requestBody{exchange: t, inner: r.Body, pace: p.newPace()}
		removeHeaderOnlyFields(r.Trailer, r.Header)
		defer t.body.end()
	} else {
		_ = t.controller.SetReadDeadline(time.Time{})
	}
	if m.route.DecompressRequest {
		if !t.decompressBody() {
			return
		}
		if t.inflated != nil {
			defer t.inflated.stop()
		}
	}
	// HTTP/2 has no Upgrade: such a request is forwarded without it
	if kind := t.requestedUpgrade(); kind != "" && p.config.Upstreams[m.route.Upstream].Protocol != HTTP2 {
		t.serveUpgrade(kind)
		return
	}
	t.serveAttempts(nil)
}

// responseTimeLimit returns the limit of time for a response: the client's, if it is shorter than
// the route's.
func responseTimeLimit(r *http.Request, route time.Duration) (timeLimit time.Duration, isClientDeadline bool) {
	if values := r.Header[DeadlineHeader]; len(values) == 1 {
		if ms, err := strconv.ParseUint(values[0], 10, 32); err == nil && time.Duration(ms)*time.Millisecond < route {
			return time.Duration(ms) * time.Millisecond, true
		}
	}
	return route, false
}

// expire cancels the request when the response does not begin in time, or stalls. While a part of
// a body waits for quota, nothing is cancelled.
func (t *exchange) expire() {
	if t.heldParts.Load() > 0 {
		return
	}
	if t.responding.Load() {
		t.cancel(errStalled)
		return
	}
	t.cancel(errNoResponseInTime)
}

// resetTimer restarts the time limit of the endpoint after a wait for the client.
func (t *exchange) resetTimer() {
	if t.responding.Load() {
		t.timer.Reset(t.config.StallTimeout)
		return
	}
	t.timer.Reset(t.timeLimit)
}

// takeQuota waits until some of n bytes of a body may be forwarded, and returns how many. This time
// does not count against the endpoint: the caller restarts the timer afterwards.
func (t *exchange) takeQuota(n int) (took int, why event.Problem) {
	t.heldParts.Add(1)
	defer t.heldParts.Add(-1)
	return t.meter.Take(n)
}

// waitForQuota is takeQuota for all of n bytes.
func (t *exchange) waitForQuota(n int) event.Problem {
	for n > 0 && !t.meter.TryTake(n) {
		took, why := t.takeQuota(n)
		if why != event.None {
			return why
		}
		n -= took
	}
	return event.None
}

func (t *exchange) timeLeft() time.Duration {
	if t.body != nil && t.body.isStarted.Load() {
		return t.timeLimit
	}
	return t.timeLimit - time.Since(t.startedAt)
}

// serveAttempts attempts the request until it is answered or may not be retried.
func (t *exchange) serveAttempts(modify func(*http.Request)) {
	picked := t.port.Pick(event.Pick{Upstream: uint16(t.route.Upstream), Idempotent: isIdempotent(t.r.Method), Callers: event.CallersOf(t.trace.Flow.Class), Caller: event.CallerOf(t.trace.Flow)})
	for {
		to := t.config.Endpoints.at(t.route.Upstream, picked.Endpoint)
		t.upstream.startAttempt(picked, to)
		if picked.NoEndpoint != event.EndpointPicked {
			t.fail(t.w, t.r, picked.NoEndpoint.Problem(), picked.RetryAfter)
			return
		}
		t.ticket = picked.Ticket
		if to == nil {
			t.port.Report(event.AttemptResult{Ticket: t.ticket, Outcome: event.AttemptAbandoned})
			t.fail(t.w, t.r, event.Unavailable, 0)
			return
		}
		decision, ok := t.attempt(to, modify)
		if !ok {
			return
		}
		if !t.waitToRetry(decision.Wait) {
			t.port.Report(event.AttemptResult{Ticket: t.ticket, Outcome: event.AttemptAbandoned})
			_, problem, reason := t.classify(nil)
			t.upstream.NoRetry = event.NoRetryDeadline
			if reason == ClientDisconnected || reason == Shutdown || t.lost() != nil {
				t.upstream.NoRetry = event.RetryAllowed
			}
			t.writeProblem(problem)
			return
		}
		picked = t.port.Retry(event.Retry{Ticket: t.ticket})
	}
}

func (t *exchange) waitToRetry(d time.Duration) bool {
	pause := time.NewTimer(d)
	defer pause.Stop()
	select {
	case <-pause.C:
		return true
	case <-t.ctx.Done():
		return false
	}
}

// attempt sends the request to an endpoint once. ok: the request is to be sent again.
func (t *exchange) attempt(to *endpoint, modify func(*http.Request)) (decision event.RetryDecision, ok bool) {
	res, err := t.send(to, modify)
	if err != nil {
		result, problem, reason := t.classify(err)
		t.upstream.endAttempt(result, reason, 0)
		if result == event.AttemptAbandoned {
			t.port.Report(event.AttemptResult{Ticket: t.ticket, Outcome: result})
		} else if decision = t.reportFailure(result); decision.Retry {
			return decision, true
		}
		t.writeProblem(problem)
		return decision, false
	}
	defer res.Body.Close() //nolint:errcheck // it was read, or is not needed
	switch res.StatusCode {
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		t.upstream.endAttempt(event.AttemptAnswered5xx, BadStatus, res.StatusCode)
		if decision = t.reportFailure(event.AttemptAnswered5xx); decision.Retry {
			return decision, true
		}
	default:
		t.upstream.endAttempt(event.AttemptAnswered, NoFailure, res.StatusCode)
		t.port.Report(event.AttemptResult{Ticket: t.ticket, Outcome: event.AttemptAnswered})
	}
	t.trace.FirstByte = time.Since(t.startedAt)
	t.sealHeader()
	if res.StatusCode < http.StatusOK {
		t.joinTunnel(res)
	} else {
		t.forwardResponse(res)
	}
	return decision, false
}

// send sends the request and returns the header of the response. An upgrade uses http.Transport
// with HTTP/1.1. Any other request uses the HTTP/2 pool if the endpoint supports it. A read over
// cleartext HTTP without a body uses the HTTP/1.1 pool, and the rest http.Transport.
func (t *exchange) send(to *endpoint, modify func(*http.Request)) (*http.Response, error) {
	if s := t.h2PoolOf(to); s != nil && modify == nil {
		res, err := t.sendOverH2(s, to)
		if !errors.Is(err, errHTTP1Chosen) {
			return res, err
		}
	}
	if modify == nil && t.usesH1Pool(to) {
		return t.sendOverH1(to)
	}
	out, interim := t.outgoingRequest(to), 0
	if out.Body != nil && len(out.Trailer) > 0 {
		out.ContentLength = -1 // HTTP/1.1 allows trailers only after a chunked body
	}
	if !isIdempotent(out.Method) {
		hideIdempotencyKey(out.Header)
	}
	if modify != nil {
		modify(out)
	}
	return t.sendByTransport(t.ctx, out, &httptrace.ClientTrace{WroteHeaders: t.upstream.noteSent, Got1xxResponse: func(status int, h textproto.MIMEHeader) error {
		if interim++; interim > maxInterimResponses {
			return errTooManyInterim
		}
		return t.forwardInterim(status, h)
	}})
}

// sendOverH2 sends the request over HTTP/2. Interim responses arrive on the goroutine that reads
// the whole connection. It queues them here, so that it never waits for a client.
func (t *exchange) sendOverH2(s *h2pool, to *endpoint) (*http.Response, error) {
	type hint struct {
		status int
		header textproto.MIMEHeader
	}
	type result struct {
		res *http.Response
		err error
	}
	hints, done, count := make(chan hint, maxInterimResponses), make(chan result, 1), 0
	note := clientTrace{Got1xxResponse: func(status int, h textproto.MIMEHeader) error {
		if count++; count > maxInterimResponses {
			return errTooManyInterim
		}
		t.responseStarted.Store(t.responseStarted.Load() || status != http.StatusContinue)
		hints <- hint{status, h} // the channel has room for all that may arrive
		return nil
	}}
	e := h2Request{upstream: t.upstream, trace: note, canRepeat: t.canRepeat}
	if t.body != nil {
		e.newBody = t.newUpload
	}
	out := t.outgoingRequest(to).WithContext(t.ctx)
	if t.body != nil {
		e.body = bodyToSend{exists: true, flow: t.trace.Flow, length: out.ContentLength}
	}
	t.inBackground(func() {
		res, err := t.roundTripH2(s, out, e)
		done <- result{res, err}
	})
	for { // ctx needs no case: roundTripH2 ends with it, and RoundTrip takes no lock of a connection that is held over I/O
		select {
		case h := <-hints:
			_ = t.forwardInterim(h.status, h.header) // its error is always nil
		case is := <-done:
			for len(hints) > 0 {
				h := <-hints
				_ = t.forwardInterim(h.status, h.header)
			}
			return is.res, is.err
		}
	}
}

// inBackground runs do while the request's goroutine continues.
func (t *exchange) inBackground(do func()) { go do() }

// newUpload returns the body for one attempt over HTTP/2.
func (t *exchange) newUpload() *upload {
	body, _ := t.outgoingBody()
	return &upload{inner: body, inBackground: t.inBackground, closed: make(chan struct{})}
}

// canRepeat reports whether the whole request may be sent again.
func (t *exchange) canRepeat() bool {
	return isIdempotent(t.r.Method) && !t.isBodyConsumed() && !t.responseStarted.Load()
}

// outgoingRequest returns the request for an endpoint.
func (t *exchange) outgoingRequest(to *endpoint) *http.Request {
	out := &http.Request{Method: t.r.Method, URL: t.route.target(to.URL, t.r.URL), Host: t.r.Host, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: t.Proxy.requestHeader(t.r, t.timeLeft())}
	if host := t.config.Upstreams[t.route.Upstream].Host; host != "" {
		out.Host = host
	}
	if t.body != nil {
		out.Body, out.ContentLength = t.outgoingBody()
		out.Trailer = t.r.Trailer
	}
	return out
}

// forwardInterim forwards an interim response (1xx). It drops 100, because reading the body
// implies it, and everything for clients of HTTP/1.0.
func (t *exchange) forwardInterim(status int, h textproto.MIMEHeader) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if status == http.StatusContinue || status == http.StatusSwitchingProtocols || t.headerSealed || !t.r.ProtoAtLeast(1, 1) {
		return nil
	}
	t.responseStarted.Store(true)
	to := t.w.Header()
	was := maps.Clone(to)
	t.route.copyResponseHeader(to, http.Header(h))
	idsOf(was).put(to)
	t.w.WriteHeader(status)
	clear(to)
	maps.Copy(to, was)
	return nil
}
