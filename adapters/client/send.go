package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"
)

const jsonType = "application/json"

// request is one thing that is asked, however often it is sent.
type request struct {
	build   func(body io.Reader) (*http.Request, error) // a try's own
	body    []byte
	effect  effect
	key     string        // of what moves money
	patient bool          // a nonce that is ahead is worth another try
	wait    time.Duration // how long the answer may be held back, beside what a try takes
}

// effect is what asking twice would do.
type effect uint8

const (
	none    effect = iota // it changes nothing
	onceFor               // it is done once, however often it is asked
	each                  // it is done as often as it is asked
)

// answer is one that was not a refusal.
type answer struct {
	status   int
	body     []byte
	replayed bool
}

// ask sends a request until there is an answer to keep, or tries or time are over. Its
// error is a *Problem, an *Unknown, or why there is no answer.
func (c *Client) ask(ctx context.Context, q request) (answer, error) {
	began, doubt := c.o.World.Now(), false
	for n := 1; ; n++ {
		limit := c.o.Try + q.wait
		if c.o.Patience > 0 {
			limit = min(limit, began.Add(c.o.Patience).Sub(c.o.World.Now()))
		}
		a, got, err := c.try(ctx, q, limit)
		again, still := judge(a, doubt, q.patient)
		if doubt = still; doubt && q.effect == each {
			again = false
		}
		wait := pause(n-1, a.after, c.o.World.Roll())
		if !again || n == c.o.Tries || !c.intime(ctx, began, wait) || c.o.World.Sleep(ctx, wait) != nil {
			return got, q.end(doubt, n, err)
		}
	}
}

// intime reports that after a wait there is time for another try.
func (c *Client) intime(ctx context.Context, began time.Time, wait time.Duration) bool {
	if c.o.Patience > 0 && !c.o.World.Now().Add(wait).Before(began.Add(c.o.Patience)) {
		return false
	}
	if until, ok := ctx.Deadline(); ok && time.Until(until) <= wait {
		return false
	}
	return ctx.Err() == nil
}

// end is what a request ends with.
func (q *request) end(doubt bool, tries int, err error) error {
	if err != nil && doubt && q.effect != none {
		return &Unknown{Key: q.key, Tries: tries, Err: err}
	}
	return err
}

// try sends a request once.
func (c *Client) try(ctx context.Context, q request, limit time.Duration) (a attempt, got answer, err error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	resp, sent, err := c.send(ctx, q)
	if err != nil {
		return attempt{sent: sent}, got, err
	}
	defer resp.Body.Close() //nolint:errcheck // it has been read
	a = attempt{sent: true, after: retryAfter(resp.Header.Get("Retry-After"), c.o.World.Now())}
	if got.body, err = c.read(resp.Body); err != nil {
		if errors.Is(err, errLong) {
			a.status = http.StatusInternalServerError // again, it would be as long
		}
		return a, got, err
	}
	a.status, got.status = resp.StatusCode, resp.StatusCode
	got.replayed = resp.Header.Get("Idempotency-Replayed") == "true"
	if got.status >= 200 && got.status < 300 {
		return a, got, nil
	}
	p, ok := ParseProblem(got.body)
	if !ok || got.status < 400 {
		return a, got, strange(got.status)
	}
	p.Status, a.code, a.retryable = got.status, p.Code, p.Retryable
	return a, got, p
}

// send sends a request, and says whether it may have reached somebody.
func (c *Client) send(ctx context.Context, q request) (*http.Response, bool, error) {
	var sent atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { sent.Store(true) }})
	r, err := q.build(bytes.NewReader(q.body))
	if err != nil {
		return nil, false, fmt.Errorf("client: make the request: %w", err)
	}
	r = r.WithContext(ctx)
	r.GetBody = nil // what is sent again is sent by us, counted and paused for
	r.Header.Set("Authorization", "Bearer "+c.key)
	if r.Header.Get("Accept") == "" {
		r.Header.Set("Accept", jsonType+", application/problem+json")
	}
	resp, err := c.http.Do(r)
	if err == nil {
		return resp, true, nil
	}
	if why := new(url.Error); errors.As(err, &why) {
		err = why.Err // it names the address itself
	}
	return nil, sent.Load(), fmt.Errorf("the node does not answer: %w", err)
}

var errLong = errors.New("the answer is longer than is read")

// read reads an answer, up to a bound.
func (c *Client) read(from io.Reader) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(from, c.o.MaxAnswer+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("the node does not answer: read: %w", err)
	case int64(len(body)) > c.o.MaxAnswer:
		return nil, fmt.Errorf("%w: %d bytes", errLong, c.o.MaxAnswer)
	}
	return body, nil
}

// look asks what changes nothing.
func (c *Client) look(ctx context.Context, build func() (*http.Request, error)) ([]byte, error) {
	got, err := c.ask(ctx, request{build: func(io.Reader) (*http.Request, error) { return build() }})
	return got.body, err
}

// encode writes a body, once for all tries.
func encode(v any) ([]byte, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("client: write the request: %w", err)
	}
	return body, nil
}
