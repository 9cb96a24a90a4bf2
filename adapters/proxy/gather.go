package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"macronode/core/event"
)

const (
	maxParts  = 3
	maxGather = 256 << 10 // bytes of an answer that is made of parts
)

// A Part is a read of an upstream that becomes one member of an answer. What it reads is
// JSON, answered by 200. Where it is missing, Missing stands in its place, and the member
// _missing says why.
type Part struct {
	Name     string // of the member
	Upstream int
	Path     string // the request's query follows
	Missing  string // JSON; empty: null
	Required bool   // without it there is no answer
}

func checkParts(parts []Part, has func(upstream int) bool) error {
	names := map[string]bool{"_missing": true}
	for _, p := range parts {
		ok := p.Name != "" && strings.Trim(p.Name, "abcdefghijklmnopqrstuvwxyz0123456789_") == "" && !names[p.Name] &&
			has(p.Upstream) && inside(p.Path) && (p.Missing == "" || json.Valid([]byte(p.Missing))) && len(p.Missing) <= maxGather/8
		if !ok || len(parts) > maxParts {
			return ErrParts
		}
		names[p.Name] = true
	}
	return nil
}

// A piece is what became of a part.
type piece struct {
	text    []byte
	problem event.Problem // None: it is there
	why     string        // it is missing
	status  int           // of the answer; 0: there was none
	symptom Symptom
}

// gather answers with what several upstreams say, under one deadline.
func (p *Proxy) gather(w http.ResponseWriter, r *http.Request, of *route, c *Course) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		p.fail(w, r, event.MethodNotAllowed, 0)
		return
	}
	most, hurried := patience(r, of.deadline)
	ctx, cancel := context.WithTimeout(r.Context(), most)
	defer cancel()
	pieces, began := make([]piece, len(of.Parts)), time.Now()
	c.Legs = make([]Leg, len(of.Parts))
	var all sync.WaitGroup
	for i := range of.Parts {
		all.Add(1)
		go func() {
			defer all.Done()
			c.Legs[i].Upstream, c.Legs[i].Part = p.config.Upstreams[of.Parts[i].Upstream].Name, of.Parts[i].Name
			pieces[i] = p.fetch(ctx, r, &of.Parts[i], hurried, &c.Legs[i])
			c.Legs[i].Missing, c.Legs[i].Down = pieces[i].why, uint64(len(pieces[i].text))
			c.Down.Add(c.Legs[i].Down)
		}()
	}
	all.Wait()
	c.First = time.Since(began)
	if r.Context().Err() != nil {
		panic(http.ErrAbortHandler)
	}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(p.config.Grace)) // the server's counts from the request on
	for i, one := range pieces {
		if one.problem != event.None && of.Parts[i].Required {
			p.fail(w, r, one.problem, 0)
			return
		}
	}
	text := merged(of.Parts, pieces)
	if len(text) > maxGather {
		p.fail(w, r, event.BadGateway, 0)
		return
	}
	h := w.Header()
	h["Content-Type"], h["Cache-Control"] = []string{"application/json"}, []string{"no-store"}
	h["Content-Length"] = []string{strconv.Itoa(len(text))}
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(text) // a client that has left is no failure of ours
}

// merged is one object of all pieces, in the order of the configuration.
func merged(parts []Part, pieces []piece) []byte {
	text := []byte{'{'}
	var missing []string
	for i, one := range pieces {
		text = append(append(append(text, '"'), parts[i].Name...), '"', ':')
		switch {
		case one.problem == event.None:
			text = append(text, one.text...)
		case parts[i].Missing != "":
			text = append(text, parts[i].Missing...)
		default:
			text = append(text, "null"...)
		}
		if one.problem != event.None {
			missing = append(missing, `"`+parts[i].Name+`":"`+one.why+`"`)
		}
		text = append(text, ',')
	}
	return append(text, `"_missing":{`+strings.Join(missing, ",")+`}}`...)
}

func missing(problem event.Problem) piece { return lacking(problem, Fine, 0) }

func lacking(problem event.Problem, s Symptom, status int) piece {
	return piece{problem: problem, why: problem.Code(), symptom: s, status: status}
}

// fetch reads a part, with as many tries as its upstream is given.
func (p *Proxy) fetch(ctx context.Context, r *http.Request, of *Part, hurried bool, leg *Leg) piece {
	picked := p.port.Pick(event.Pick{Upstream: uint16(of.Upstream), Idempotent: true})
	for {
		to := p.config.Endpoints.find(of.Upstream, picked.Endpoint)
		leg.picked(picked, to)
		if picked.NoEndpoint != event.EndpointPicked {
			return missing(picked.NoEndpoint.Problem())
		}
		if to == nil {
			p.port.Tell(event.AttemptResult{Ticket: picked.Ticket, Outcome: event.AttemptAbandoned})
			return missing(event.Unavailable)
		}
		one, ending := p.part(ctx, r, of, to, leg)
		end, _ := ctx.Deadline()
		in := event.AttemptResult{Ticket: picked.Ticket, Outcome: ending, TimeLeft: time.Until(end)}
		switch {
		case ending == event.AttemptAnswered:
			p.port.Tell(in)
			in.Outcome = event.AttemptCompleted
		case r.Context().Err() != nil:
			in.Outcome, one.symptom = event.AttemptAbandoned, p.gone(r)
		case ending == event.AttemptTimedOut && hurried:
			in.Outcome, one.symptom = event.AttemptAbandoned, Hurried
		}
		leg.ended(in.Outcome, one.symptom, one.status)
		if in.Outcome == event.AttemptCompleted || in.Outcome == event.AttemptAbandoned {
			p.port.Tell(in)
			return one
		}
		again := p.port.Failed(in)
		if leg.Halt = again.NoRetry; !again.Retry {
			in.Outcome = event.AttemptCompleted // of an answer that turned us away
			p.port.Tell(in)
			return one
		}
		pause := time.NewTimer(again.Wait)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			leg.Halt = event.NoRetryDeadline
			in.Outcome = event.AttemptAbandoned
			p.port.Tell(in)
			return missing(event.Timeout)
		}
		picked = p.port.Retry(event.Retry{Ticket: picked.Ticket})
	}
}

// part reads a part from an endpoint.
func (p *Proxy) part(ctx context.Context, r *http.Request, of *Part, base *endpoint, leg *Leg) (piece, event.AttemptOutcome) {
	end, _ := ctx.Deadline()
	to := &url.URL{Scheme: base.Scheme, Host: base.Host, Path: base.Path + of.Path, RawQuery: r.URL.RawQuery}
	out := &http.Request{Method: http.MethodGet, URL: to, Host: r.Host, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: p.request(r, time.Until(end))}
	for _, name := range [...]string{"Range", "If-None-Match", "If-Modified-Since", "If-Range", "If-Match", "If-Unmodified-Since", "Accept-Encoding"} {
		delete(out.Header, name) // a part is read whole, and as it is
	}
	if host := p.config.Upstreams[of.Upstream].Host; host != "" {
		out.Host = host
	}
	res, err := p.read(out.WithContext(ctx), base, leg)
	if err == nil {
		defer res.Body.Close() //nolint:errcheck // it was read, or is of no use
		return pieced(ctx, res)
	}
	if ctx.Err() != nil {
		return lacking(event.Timeout, Deadline, 0), event.AttemptTimedOut
	}
	if problem, symptom, ok := blameless(err); ok {
		return lacking(problem, symptom, 0), event.AttemptAbandoned
	}
	return lacking(event.BadGateway, symptom(err), 0), event.AttemptFailed
}

// read sends a read on, over a trunk where HTTP/2 is spoken.
func (p *Proxy) read(out *http.Request, to *endpoint, leg *Leg) (*http.Response, error) {
	if s := p.trunks(to); s != nil {
		res, err := p.carry(s, out, errand{leg: leg, again: func() bool { return true }})
		if !errors.Is(err, errFirst) {
			return res, err
		}
	}
	return p.sendOn(out.Context(), out, new(httptrace.ClientTrace))
}

// pieced reads the answer that a part is.
func pieced(ctx context.Context, res *http.Response) (piece, event.AttemptOutcome) {
	unfit := func(s Symptom, why string) piece {
		return piece{problem: event.BadGateway, why: why, symptom: s, status: res.StatusCode}
	}
	switch {
	case res.StatusCode == http.StatusBadGateway, res.StatusCode == http.StatusServiceUnavailable, res.StatusCode == http.StatusGatewayTimeout:
		return unfit(BadStatus, "status "+strconv.Itoa(res.StatusCode)), event.AttemptAnswered5xx
	case res.StatusCode != http.StatusOK:
		return unfit(Unfit, "status "+strconv.Itoa(res.StatusCode)), event.AttemptAnswered
	}
	text, err := io.ReadAll(io.LimitReader(res.Body, maxGather+1))
	switch {
	case errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil:
		return lacking(event.Timeout, Deadline, res.StatusCode), event.AttemptTimedOut
	case err != nil:
		return lacking(event.BadGateway, symptom(err), res.StatusCode), event.AttemptFailed
	case len(text) > maxGather:
		return unfit(Unfit, "too large"), event.AttemptAnswered
	case !json.Valid(text):
		return unfit(Unfit, "no JSON"), event.AttemptAnswered
	}
	return piece{text: text, status: res.StatusCode}, event.AttemptAnswered
}
