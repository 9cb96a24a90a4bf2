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

// A trip is one request to an upstream, and its answer.
type trip struct {
	*Proxy
	w        http.ResponseWriter
	r        *http.Request
	route    *route
	control  *http.ResponseController
	meter    Meter
	held     atomic.Int32 // parts of bodies that wait until they may go on
	ctx      context.Context
	give     context.CancelCauseFunc
	timer    *time.Timer // ends what takes too long
	reading  atomic.Bool // an answer is: what is too long then is silence
	spoke    atomic.Bool // something of an answer was given on
	body     *body       // nil: none
	inflated *inflated   // the body, by a route that inflates; nil: it is as it came
	begun    time.Time
	most     time.Duration // until the header of the answer
	hurried  bool          // because the client says so
	ticket   types.Ticket
	course   *Course
	leg      *Leg // the only one

	mu     sync.Mutex // of w, while an endpoint may say something before its answer
	sealed bool       // it may no more
}

// Serve sends a request to the upstream of its route, and the answer back, and writes into
// c, which is empty, how that went. It panics with http.ErrAbortHandler when an answer that has begun cannot be given whole: that must
// reach the server, which ends the connection.
func (p *Proxy) Serve(w http.ResponseWriter, r *http.Request, m Match, c *Course) {
	if m.Preflight {
		m.route.cors.answer(w, r)
		return
	}
	if len(m.route.Parts) > 0 {
		p.gather(w, r, m.route, c)
		return
	}
	c.Legs = []Leg{{Upstream: p.config.Upstreams[m.route.Upstream].Name}}
	t := &trip{course: c, leg: &c.Legs[0], Proxy: p, w: w, r: r, route: m.route, control: http.NewResponseController(w), meter: free{}, begun: time.Now()}
	if m, ok := w.(Meter); ok {
		t.meter = m
	}
	t.most, t.hurried = patience(r, m.route.deadline)
	t.ctx, t.give = context.WithCancelCause(r.Context())
	defer t.give(nil)
	t.timer = time.AfterFunc(t.most, t.expire)
	defer t.timer.Stop()
	if r.Body != nil && r.Body != http.NoBody && r.ContentLength != 0 {
		t.body = &body{of: t, inner: r.Body, pace: p.pace()}
		behind(r.Trailer, r.Header)
		defer t.body.end()
	} else {
		_ = t.control.SetReadDeadline(time.Time{})
	}
	if m.route.Inflate {
		if problem := t.inflate(); problem != event.None {
			p.fail(w, r, problem, 0)
			return
		}
		if t.inflated != nil {
			defer t.inflated.end()
		}
	}
	// HTTP/2 has no upgrade: who asks for one may be answered without
	if kind := t.upgrade(); kind != "" && p.config.Upstreams[m.route.Upstream].Protocol != HTTP2 {
		t.tunnel(kind)
		return
	}
	t.serve(nil)
}

// patience is how long an answer may take: what the client has left, or the route.
func patience(r *http.Request, route time.Duration) (most time.Duration, hurried bool) {
	if said := r.Header[DeadlineHeader]; len(said) == 1 {
		if ms, err := strconv.ParseUint(said[0], 10, 32); err == nil && time.Duration(ms)*time.Millisecond < route {
			return time.Duration(ms) * time.Millisecond, true
		}
	}
	return route, false
}

// expire gives up what takes too long: an answer that does not begin, or one that is silent. While a
// part of a body is held nobody's time is over.
func (t *trip) expire() {
	if t.held.Load() > 0 {
		return
	}
	if t.reading.Load() {
		t.give(errSilent)
		return
	}
	t.give(errLate)
}

// wait gives the endpoint its time anew, after the client had some.
func (t *trip) wait() {
	if t.reading.Load() {
		t.timer.Reset(t.config.Silence)
		return
	}
	t.timer.Reset(t.most)
}

// pass waits until a part of a body may go on. That is nobody's time: whoever calls gives
// the endpoint its time anew.
func (t *trip) pass(n int) event.Problem {
	if n == 0 || t.meter.May(n) {
		return event.None
	}
	t.held.Add(1)
	defer t.held.Add(-1)
	return t.meter.Pass(n)
}

func (t *trip) left() time.Duration {
	if t.body != nil && t.body.begun.Load() {
		return t.most
	}
	return t.most - time.Since(t.begun)
}

// serve tries until there is an answer, or none is to be had.
func (t *trip) serve(mark func(*http.Request)) {
	picked := t.port.Pick(event.Pick{Upstream: uint16(t.route.Upstream), Idempotent: idempotent(t.r.Method)})
	for {
		to := t.config.Endpoints.find(t.route.Upstream, picked.Endpoint)
		t.leg.picked(picked, to)
		if picked.NoEndpoint != event.EndpointPicked {
			t.fail(t.w, t.r, picked.NoEndpoint.Problem(), picked.RetryAfter)
			return
		}
		t.ticket = picked.Ticket
		if to == nil {
			t.port.Tell(event.AttemptResult{Ticket: t.ticket, Outcome: event.AttemptAbandoned})
			t.fail(t.w, t.r, event.Unavailable, 0)
			return
		}
		again, ok := t.try(to, mark)
		if !ok {
			return
		}
		if !t.sleep(again.Wait) {
			t.port.Tell(event.AttemptResult{Ticket: t.ticket, Outcome: event.AttemptAbandoned})
			_, problem, symptom := t.why(nil)
			t.leg.Halt = event.NoRetryDeadline
			if symptom == Gone || symptom == Drained {
				t.leg.Halt = event.RetryAllowed
			}
			t.refuse(problem)
			return
		}
		picked = t.port.Retry(event.Retry{Ticket: t.ticket})
	}
}

func (t *trip) sleep(d time.Duration) bool {
	pause := time.NewTimer(d)
	defer pause.Stop()
	select {
	case <-pause.C:
		return true
	case <-t.ctx.Done():
		return false
	}
}

// try sends the request to an endpoint once. ok: it is to be sent again.
func (t *trip) try(to *endpoint, mark func(*http.Request)) (again event.RetryDecision, ok bool) {
	res, err := t.send(to, mark)
	if err != nil {
		ending, problem, symptom := t.why(err)
		t.leg.ended(ending, symptom, 0)
		if ending == event.AttemptAbandoned {
			t.port.Tell(event.AttemptResult{Ticket: t.ticket, Outcome: ending})
		} else if again = t.failed(ending); again.Retry {
			return again, true
		}
		t.refuse(problem)
		return again, false
	}
	defer res.Body.Close() //nolint:errcheck // it was read, or is of no use
	switch res.StatusCode {
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		t.leg.ended(event.AttemptAnswered5xx, BadStatus, res.StatusCode)
		if again = t.failed(event.AttemptAnswered5xx); again.Retry {
			return again, true
		}
	default:
		t.leg.ended(event.AttemptAnswered, Fine, res.StatusCode)
		t.port.Tell(event.AttemptResult{Ticket: t.ticket, Outcome: event.AttemptAnswered})
	}
	t.course.First = time.Since(t.begun)
	t.seal()
	if res.StatusCode < http.StatusOK {
		t.through(res)
	} else {
		t.answer(res)
	}
	return again, false
}

// send sends the request, and has the header of the answer: an upgrade by http.Transport,
// which is of HTTP/1.1; all else over a trunk where HTTP/2 is spoken; else a read of http
// without a body over a line, and the rest by http.Transport.
func (t *trip) send(to *endpoint, mark func(*http.Request)) (*http.Response, error) {
	if s := t.trunks(to); s != nil && mark == nil {
		res, err := t.carried(s, to)
		if !errors.Is(err, errFirst) {
			return res, err
		}
	}
	if mark == nil && t.straight(to) {
		return t.ask(to)
	}
	out, said := t.request(to), 0
	if out.Body != nil && len(out.Trailer) > 0 {
		out.ContentLength = -1 // HTTP/1.1 has them behind a body in chunks alone
	}
	if !idempotent(out.Method) {
		singly(out.Header)
	}
	if mark != nil {
		mark(out)
	}
	return t.sendOn(t.ctx, out, &httptrace.ClientTrace{Got1xxResponse: func(status int, h textproto.MIMEHeader) error {
		if said++; said > earlyMost {
			return errEarly
		}
		return t.early(status, h)
	}})
}

// carried is send over a trunk. What an endpoint says before its answer comes to who reads
// that for all requests on it: he leaves it here, and waits for no client.
func (t *trip) carried(s *trunks, to *endpoint) (*http.Response, error) {
	type hint struct {
		status int
		header textproto.MIMEHeader
	}
	type told struct {
		res *http.Response
		err error
	}
	said, done, heard := make(chan hint, earlyMost), make(chan told, 1), 0
	note := trail{Got1xxResponse: func(status int, h textproto.MIMEHeader) error {
		if heard++; heard > earlyMost {
			return errEarly
		}
		t.spoke.Store(t.spoke.Load() || status != http.StatusContinue)
		said <- hint{status, h} // there is room for all that may come
		return nil
	}}
	e := errand{leg: t.leg, note: note, again: t.unspent}
	if t.body != nil {
		e.body = t.upload
	}
	out := t.request(to).WithContext(t.ctx)
	t.aside(func() {
		res, err := t.carry(s, out, e)
		done <- told{res, err}
	})
	for { // ctx needs no watch here: what carry waits for ends with it, and no lock of a trunk that RoundTrip takes is held over I/O
		select {
		case h := <-said:
			_ = t.early(h.status, h.header) // it has no error
		case is := <-done:
			for len(said) > 0 {
				h := <-said
				_ = t.early(h.status, h.header)
			}
			return is.res, is.err
		}
	}
}

// aside does something while who serves the client goes on.
func (t *trip) aside(do func()) { go do() }

// upload is the body for one try over a trunk.
func (t *trip) upload() *upload {
	body, _ := t.sent()
	return &upload{inner: body, aside: t.aside, closed: make(chan struct{})}
}

// unspent reports that the request may be repeated, whole.
func (t *trip) unspent() bool { return idempotent(t.r.Method) && !t.spent() && !t.spoke.Load() }

// request is what an endpoint is sent.
func (t *trip) request(to *endpoint) *http.Request {
	out := &http.Request{Method: t.r.Method, URL: t.route.target(to.URL, t.r.URL), Host: t.r.Host, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: t.Proxy.request(t.r, t.left())}
	if host := t.config.Upstreams[t.route.Upstream].Host; host != "" {
		out.Host = host
	}
	if t.body != nil {
		out.Body, out.ContentLength = t.sent()
		out.Trailer = t.r.Trailer
	}
	return out
}

// early gives on what an endpoint says before its answer. That the body is wanted is said
// by asking for it, and a client of HTTP/1.0 knows nothing of all that.
func (t *trip) early(status int, h textproto.MIMEHeader) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if status == http.StatusContinue || status == http.StatusSwitchingProtocols || t.sealed || !t.r.ProtoAtLeast(1, 1) {
		return nil
	}
	t.spoke.Store(true)
	to := t.w.Header()
	was := maps.Clone(to)
	t.route.pass(to, http.Header(h))
	t.w.WriteHeader(status)
	clear(to)
	maps.Copy(to, was)
	return nil
}
