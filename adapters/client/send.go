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

// request is one call, however many attempts it has.
type request struct {
	newRequest    func(body io.Reader) (*http.Request, error) // for each attempt
	body          []byte
	effect        effect
	key           string        // of a write
	waitsForNonce bool          // a nonce that is ahead is retried
	wait          time.Duration // how long the node may hold the response, in addition to AttemptTimeout
}

// effect is what a repetition causes.
type effect uint8

const (
	noEffect         effect = iota // a read
	idempotentEffect               // executed once for its key
	repeatedEffect                 // executed at each repetition
)

// response is a successful response.
type response struct {
	status   int
	body     []byte
	replayed bool
}

// do sends a request until there is a final response, or attempts or time are used up. Its error
// is a *Problem, an *UnknownOutcome, or why there is no response.
func (c *Client) do(ctx context.Context, q request) (response, error) {
	began, inDoubt := c.options.Environment.Now(), false
	for n := 1; ; n++ {
		limit := c.options.AttemptTimeout + q.wait
		if c.options.RetryTimeout > 0 {
			limit = min(limit, began.Add(c.options.RetryTimeout).Sub(c.options.Environment.Now()))
		}
		a, result, err := c.attempt(ctx, q, limit)
		retry, still := decideRetry(a, inDoubt, q.waitsForNonce)
		if inDoubt = still; inDoubt && q.effect == repeatedEffect {
			retry = false
		}
		wait := retryDelay(n-1, a.after, c.options.Environment.Rand())
		if !retry || n == c.options.MaxAttempts || !c.hasTimeFor(ctx, began, wait) || c.options.Environment.Sleep(ctx, wait) != nil {
			return result, q.result(inDoubt, n, err)
		}
	}
}

// hasTimeFor reports whether another attempt may begin after a wait.
func (c *Client) hasTimeFor(ctx context.Context, began time.Time, wait time.Duration) bool {
	if c.options.RetryTimeout > 0 && !c.options.Environment.Now().Add(wait).Before(began.Add(c.options.RetryTimeout)) {
		return false
	}
	if until, ok := ctx.Deadline(); ok && time.Until(until) <= wait {
		return false
	}
	return ctx.Err() == nil
}

// result returns the error of a request.
func (q *request) result(doubt bool, tries int, err error) error {
	if err != nil && doubt && q.effect != noEffect {
		return &UnknownOutcome{Key: q.key, Attempts: tries, Err: err}
	}
	return err
}

// attempt sends a request once.
func (c *Client) attempt(ctx context.Context, q request, limit time.Duration) (a attempt, got response, err error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	resp, sent, err := c.send(ctx, q)
	if err != nil {
		return attempt{sent: sent}, got, err
	}
	defer resp.Body.Close() //nolint:errcheck // it has been read
	a = attempt{sent: true, after: retryAfter(resp.Header.Get("Retry-After"), c.options.Environment.Now())}
	if got.body, err = c.read(resp.Body); err != nil {
		if errors.Is(err, errResponseTooLong) {
			a.status = http.StatusInternalServerError // not retryable: it would be as long again
		}
		return a, got, err
	}
	a.status, got.status = resp.StatusCode, resp.StatusCode
	got.replayed = resp.Header.Get("Idempotency-Replayed") == "true"
	if got.status >= 200 && got.status < 300 {
		if q.effect != noEffect && c.options.Executed != nil {
			c.options.Executed(Execution{Method: resp.Request.Method, Path: resp.Request.URL.Path, IdempotencyKey: q.key, Response: got.body})
		}
		return a, got, nil
	}
	p, ok := ParseProblem(got.body)
	if !ok || got.status < 400 {
		return a, got, foreignResponse(got.status)
	}
	p.Status, a.code, a.retryable = got.status, p.Code, p.Retryable
	return a, got, p
}

// send sends a request. The second result reports whether it may have reached the node.
func (c *Client) send(ctx context.Context, q request) (*http.Response, bool, error) {
	var sent atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { sent.Store(true) }})
	r, err := q.newRequest(bytes.NewReader(q.body))
	if err != nil {
		return nil, false, fmt.Errorf("client: make the request: %w", err)
	}
	r = r.WithContext(ctx)
	r.GetBody = nil // net/http must not resend: attempts are counted and delayed here
	r.Header.Set("Authorization", "Bearer "+c.key)
	if r.Header.Get("Accept") == "" {
		r.Header.Set("Accept", jsonType+", application/problem+json")
	}
	resp, err := c.http.Do(r)
	if err == nil {
		return resp, true, nil
	}
	if why := new(url.Error); errors.As(err, &why) {
		err = why.Err // its text repeats the address
	}
	return nil, sent.Load(), fmt.Errorf("the node does not answer: %w", err)
}

var errResponseTooLong = errors.New("the answer is longer than is read")

// read reads a response up to the limit.
func (c *Client) read(from io.Reader) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(from, c.options.MaxResponseBytes+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("the node does not answer: read: %w", err)
	case int64(len(body)) > c.options.MaxResponseBytes:
		return nil, fmt.Errorf("%w: %d bytes", errResponseTooLong, c.options.MaxResponseBytes)
	}
	return body, nil
}

// get sends a read.
func (c *Client) get(ctx context.Context, build func() (*http.Request, error)) ([]byte, error) {
	got, err := c.do(ctx, request{newRequest: func(io.Reader) (*http.Request, error) { return build() }})
	return got.body, err
}

// encode encodes a body once for all attempts.
func encode(v any) ([]byte, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("client: write the request: %w", err)
	}
	return body, nil
}
