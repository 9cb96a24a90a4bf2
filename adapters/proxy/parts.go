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
	"unicode/utf8"

	"macronode/core/event"
	"macronode/core/types"
)

const (
	maxParts  = 3
	maxGather = 256 << 10 // bytes of a response that is composed of parts
)

// A Part is a read of an upstream that becomes one member of a JSON object. The upstream must
// answer 200 with JSON. If it does not, the member is Fallback, and the member _missing contains
// the reason.
type Part struct {
	Name     string // of the member
	Upstream int
	Path     string // the request's query is appended
	Fallback string // JSON; empty: null
	Required bool   // without it the response is a problem
}

func checkParts(parts []Part, has func(upstream int) bool) error {
	names := map[string]bool{"_missing": true}
	for _, p := range parts {
		ok := p.Name != "" && strings.Trim(p.Name, "abcdefghijklmnopqrstuvwxyz0123456789_") == "" && !names[p.Name] &&
			has(p.Upstream) && isCleanPath(p.Path) && (p.Fallback == "" || isJSON([]byte(p.Fallback))) && len(p.Fallback) <= maxGather/8
		if !ok || len(parts) > maxParts {
			return ErrParts
		}
		names[p.Name] = true
	}
	return nil
}

// A partResult is the result of a part.
type partResult struct {
	text    []byte
	problem event.Problem // None: the part is present
	reason  string        // why it is missing
	status  int           // of the response; 0: there was none
	failure FailureReason
}

// serveParts composes a response from several upstreams within one deadline.
func (p *Proxy) serveParts(w http.ResponseWriter, r *http.Request, of *route, c *Trace) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		p.fail(w, r, event.MethodNotAllowed, 0)
		return
	}
	timeLimit, isClientDeadline := responseTimeLimit(r, of.deadline)
	permitted, lose := context.WithCancelCause(r.Context())
	defer lose(nil)
	if m, ok := w.(LosesPermit); ok {
		m.OnLostPermit(partsEnd{lose})
	}
	ctx, cancel := context.WithTimeout(permitted, timeLimit)
	defer cancel()
	results, began := make([]partResult, len(of.Parts)), time.Now()
	c.Upstreams = make([]UpstreamTrace, len(of.Parts))
	var all sync.WaitGroup
	for i := range of.Parts {
		all.Add(1)
		go func() {
			defer all.Done()
			c.Upstreams[i].Upstream, c.Upstreams[i].Part, c.Upstreams[i].request = p.config.Upstreams[of.Parts[i].Upstream].Name, of.Parts[i].Name, c
			results[i] = p.fetchPart(ctx, r, &of.Parts[i], isClientDeadline, c.Flow, &c.Upstreams[i])
			c.Upstreams[i].MissingReason, c.Upstreams[i].PartBytes = results[i].reason, uint64(len(results[i].text))
			c.BytesDown.Add(c.Upstreams[i].PartBytes)
		}()
	}
	all.Wait()
	c.FirstByte = time.Since(began)
	if lost := lostOf(permitted); lost != nil {
		p.fail(w, r, lost.why.Problem(), 0)
		return
	}
	if r.Context().Err() != nil {
		panic(http.ErrAbortHandler)
	}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(p.config.Grace)) // the server's deadline counts from the start of the request
	for i, result := range results {
		if result.problem != event.None && of.Parts[i].Required {
			p.fail(w, r, result.problem, 0)
			return
		}
	}
	text := mergeParts(of.Parts, results)
	if len(text) > maxGather {
		p.fail(w, r, event.BadGateway, 0)
		return
	}
	h := w.Header()
	h["Content-Type"], h["Cache-Control"] = []string{"application/json"}, []string{"no-store"}
	h["Content-Length"] = []string{strconv.Itoa(len(text))}
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(text) // a disconnection of the client is not an error here
}

// A partsEnd ends the requests for all parts when their request loses its permit.
type partsEnd struct{ cancel context.CancelCauseFunc }

// LosePermit ends them.
func (e partsEnd) LosePermit(why event.RejectReason) { e.cancel(&lostPermit{why: why}) }

// mergeParts returns one object of all parts, in the order of the configuration.
func mergeParts(parts []Part, results []partResult) []byte {
	text := []byte{'{'}
	var missing []string
	for i, result := range results {
		text = append(append(append(text, '"'), parts[i].Name...), '"', ':')
		switch {
		case result.problem == event.None:
			text = append(text, result.text...)
		case parts[i].Fallback != "":
			text = append(text, parts[i].Fallback...)
		default:
			text = append(text, "null"...)
		}
		if result.problem != event.None {
			missing = append(missing, `"`+parts[i].Name+`":"`+result.reason+`"`)
		}
		text = append(text, ',')
	}
	return append(text, `"_missing":{`+strings.Join(missing, ",")+`}}`...)
}

func missingPart(problem event.Problem) partResult { return failedPart(problem, NoFailure, 0) }

func failedPart(problem event.Problem, s FailureReason, status int) partResult {
	return partResult{problem: problem, reason: problem.Code(), failure: s, status: status}
}

// fetchPart reads a part, with as many attempts as its upstream allows.
func (p *Proxy) fetchPart(ctx context.Context, r *http.Request, of *Part, isClientDeadline bool, by types.Flow, upstream *UpstreamTrace) partResult {
	picked := p.port.Pick(event.Pick{Upstream: uint16(of.Upstream), Idempotent: true, Callers: event.CallersOf(by.Class), Caller: event.CallerOf(by)})
	for {
		to := p.config.Endpoints.at(of.Upstream, picked.Endpoint)
		upstream.startAttempt(picked, to)
		if picked.NoEndpoint != event.EndpointPicked {
			return missingPart(picked.NoEndpoint.Problem())
		}
		if to == nil {
			p.port.Report(event.AttemptResult{Ticket: picked.Ticket, Outcome: event.AttemptAbandoned})
			return missingPart(event.Unavailable)
		}
		part, result := p.requestPart(ctx, r, of, to, upstream)
		end, _ := ctx.Deadline()
		in := event.AttemptResult{Ticket: picked.Ticket, Outcome: result, TimeLeft: time.Until(end)}
		switch {
		case result == event.AttemptAnswered:
			p.port.Report(in)
			in.Outcome = event.AttemptCompleted
		case lostOf(ctx) != nil:
			in.Outcome, part.failure = event.AttemptAbandoned, lostOf(ctx).reason()
		case r.Context().Err() != nil:
			in.Outcome, part.failure = event.AttemptAbandoned, p.endReason(r)
		case result == event.AttemptTimedOut && isClientDeadline:
			in.Outcome, part.failure = event.AttemptAbandoned, ClientDeadline
		}
		upstream.endAttempt(in.Outcome, part.failure, part.status)
		if in.Outcome == event.AttemptCompleted || in.Outcome == event.AttemptAbandoned {
			p.port.Report(in)
			return part
		}
		decision := p.port.ReportFailure(in)
		if upstream.NoRetry = decision.NoRetry; !decision.Retry {
			in.Outcome = event.AttemptCompleted // the endpoint answered 502, 503 or 504
			p.port.Report(in)
			return part
		}
		pause := time.NewTimer(decision.Wait)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			upstream.NoRetry = event.NoRetryDeadline
			in.Outcome = event.AttemptAbandoned
			p.port.Report(in)
			return missingPart(event.Timeout)
		}
		picked = p.port.Retry(event.Retry{Ticket: picked.Ticket})
	}
}

// requestPart reads a part from one endpoint.
func (p *Proxy) requestPart(ctx context.Context, r *http.Request, of *Part, base *endpoint, upstream *UpstreamTrace) (partResult, event.AttemptOutcome) {
	end, _ := ctx.Deadline()
	to := &url.URL{Scheme: base.Scheme, Host: base.Host, Path: base.Path + of.Path, RawQuery: r.URL.RawQuery}
	out := &http.Request{Method: http.MethodGet, URL: to, Host: r.Host, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: p.requestHeader(r, time.Until(end))}
	for _, name := range [...]string{"Range", "If-None-Match", "If-Modified-Since", "If-Range", "If-Match", "If-Unmodified-Since", "Accept-Encoding"} {
		delete(out.Header, name) // a part is read as a whole and unencoded
	}
	if host := p.config.Upstreams[of.Upstream].Host; host != "" {
		out.Host = host
	}
	res, err := p.sendRead(out.WithContext(ctx), base, upstream)
	if err == nil {
		defer res.Body.Close() //nolint:errcheck // it was read, or is not needed
		return readPart(ctx, res)
	}
	if ctx.Err() != nil {
		return failedPart(event.Timeout, DeadlineExceeded, 0), event.AttemptTimedOut
	}
	if problem, reason, ok := faultElsewhere(err); ok {
		return failedPart(problem, reason, 0), event.AttemptAbandoned
	}
	return failedPart(event.BadGateway, failureReason(err), 0), event.AttemptFailed
}

// sendRead sends a read, over HTTP/2 if the endpoint supports it.
func (p *Proxy) sendRead(out *http.Request, to *endpoint, upstream *UpstreamTrace) (*http.Response, error) {
	if s := p.h2PoolOf(to); s != nil {
		res, err := p.roundTripH2(s, out, h2Request{upstream: upstream, canRepeat: func() bool { return true }})
		if !errors.Is(err, errHTTP1Chosen) {
			return res, err
		}
	}
	return p.sendByTransport(out.Context(), out, &httptrace.ClientTrace{WroteHeaders: upstream.noteSent})
}

// isJSON reports whether text is valid JSON. encoding/json accepts what is not UTF-8, and others reject a document with it.
func isJSON(text []byte) bool { return utf8.Valid(text) && json.Valid(text) }

// readPart reads the response of a part.
func readPart(ctx context.Context, res *http.Response) (partResult, event.AttemptOutcome) {
	unfit := func(s FailureReason, why string) partResult {
		return partResult{problem: event.BadGateway, reason: why, failure: s, status: res.StatusCode}
	}
	switch {
	case res.StatusCode == http.StatusBadGateway, res.StatusCode == http.StatusServiceUnavailable, res.StatusCode == http.StatusGatewayTimeout:
		return unfit(BadStatus, "status "+strconv.Itoa(res.StatusCode)), event.AttemptAnswered5xx
	case res.StatusCode != http.StatusOK:
		return unfit(InvalidPart, "status "+strconv.Itoa(res.StatusCode)), event.AttemptAnswered
	}
	text, err := io.ReadAll(io.LimitReader(res.Body, maxGather+1))
	switch {
	case errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil:
		return failedPart(event.Timeout, DeadlineExceeded, res.StatusCode), event.AttemptTimedOut
	case err != nil:
		return failedPart(event.BadGateway, failureReason(err), res.StatusCode), event.AttemptFailed
	case len(text) > maxGather:
		return unfit(InvalidPart, "too large"), event.AttemptAnswered
	case !isJSON(text):
		return unfit(InvalidPart, "no JSON"), event.AttemptAnswered
	}
	return partResult{text: text, status: res.StatusCode}, event.AttemptAnswered
}
