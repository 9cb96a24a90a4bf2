package client

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"macronode/adapters/client/wire"
)

// A Change is a movement of the tenant: its receipt, or the expiry of a hold.
type Change struct {
	wire.Change
	RawResponse
}

// Verify is Receipt.Verify.
func (ch *Change) Verify() error { return verify(ch.Raw) }

func parseChange(raw []byte) (ch Change, err error) { ch.Raw = raw; return ch, parse(raw, &ch.Change) }

// maxLine is the limit of a line of a stream in bytes, several times the longest change.
const maxLine = 64 << 10

// FeedOptions selects changes.
type FeedOptions struct {
	After int64         // changes after this seq
	Wait  time.Duration // at the end of the feed, continue to wait until the context ends, in requests that the node may hold for so long; 0: end there
}

// Changes returns the movements of the tenant in order, without gaps: a gap is ErrGap. An error
// is the last item. The caller can continue after the Seq of the last change.
func (c *Client) Changes(ctx context.Context, f FeedOptions) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		last, wait, n := f.After, f.Wait.Milliseconds(), MaxPage
		for {
			p := &wire.ChangesParams{AfterSeq: optional(last), Limit: &n, Wait: optional(int(wait))}
			got, err := c.do(ctx, request{wait: f.Wait, newRequest: func(io.Reader) (*http.Request, error) {
				return wire.NewChangesRequest(c.base, p)
			}})
			var page struct {
				Changes []jsontext.Value `json:"changes"`
			}
			if err == nil {
				err = parse(got.body, &page)
			}
			if err != nil {
				yield(Change{}, err)
				return
			}
			for _, one := range page.Changes {
				if !yieldChange(one, &last, yield) {
					return
				}
			}
			if len(page.Changes) == 0 && f.Wait <= 0 {
				return
			}
		}
	}
}

// Stream returns changes as they become durable, until the context ends. A connection that ends,
// or is silent for Options.StreamIdleTimeout, is opened again where it was. After
// Options.MaxAttempts attempts without a change, the stream ends with an error.
func (c *Client) Stream(ctx context.Context, after int64) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		last, n := after, 0
		for {
			before := last
			a, err := c.readStream(ctx, &last, yield)
			if errors.Is(err, errStopped) {
				return
			}
			if n++; last > before {
				n = 1
			}
			again, _ := decideRetry(a, true, false)
			wait := retryDelay(n-1, a.after, c.options.Environment.Rand())
			if !again || n == c.options.MaxAttempts || !c.hasTimeFor(ctx, c.options.Environment.Now(), wait) || c.options.Environment.Sleep(ctx, wait) != nil {
				yield(Change{}, err)
				return
			}
		}
	}
}

// errStopped is returned when the caller stops the iteration.
var errStopped = errors.New("client: enough")

// readStream opens a connection and yields changes until it ends. The end of a good connection
// counts as an attempt without a response.
func (c *Client) readStream(ctx context.Context, last *int64, yield func(Change, error) bool) (a attempt, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := time.AfterFunc(c.options.AttemptTimeout, func() { cancel(errStreamIdle) })
	defer silence.Stop()
	resp, sent, err := c.send(ctx, request{newRequest: func(io.Reader) (*http.Request, error) {
		r, err := wire.NewChangesRequest(c.base, &wire.ChangesParams{LastEventID: optional(strconv.FormatInt(*last, 10))})
		if err == nil {
			r.Header.Set("Accept", "text/event-stream, application/problem+json")
		}
		return r, err
	}})
	if err != nil {
		return attempt{sent: sent}, withCause(ctx, err)
	}
	defer resp.Body.Close() //nolint:errcheck // it has been read
	if resp.StatusCode != http.StatusOK {
		a = attempt{status: resp.StatusCode, sent: true, after: retryAfter(resp.Header.Get("Retry-After"), c.options.Environment.Now())}
		body, err := c.read(resp.Body)
		p, ok := ParseProblem(body)
		if err != nil || !ok {
			return a, errors.Join(foreignResponse(resp.StatusCode), err)
		}
		p.Status, a.code, a.retryable = resp.StatusCode, p.Code, p.Retryable
		return a, p
	}
	err = readEvents(resp.Body, func() { silence.Reset(c.options.StreamIdleTimeout) }, last, yield)
	a.sent = true
	if why := new(StreamEnded); errors.As(err, &why) && why.Reason == string(Unauthorized) {
		a.status, a.code = http.StatusUnauthorized, Unauthorized // the key was revoked
	}
	return a, withCause(ctx, err)
}

var errStreamIdle = errors.New("nothing was heard in time")

// withCause adds the cause if the client itself has closed the stream.
func withCause(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), errStreamIdle) {
		return fmt.Errorf("%w: %w", errStreamIdle, err)
	}
	return err
}

// yieldChange yields the next change. It returns false if the iteration ends.
func yieldChange(raw []byte, last *int64, yield func(Change, error) bool) bool {
	ch, err := parseChange(raw)
	if err == nil && ch.Seq != *last+1 {
		err = fmt.Errorf("%w: %d follows %d", ErrGap, ch.Seq, *last)
	}
	if err == nil {
		*last = ch.Seq
	}
	return yield(ch, err) && err == nil
}

// StreamEnded reports that the node has ended a stream.
type StreamEnded struct {
	Reason string `json:"reason"`
}

func (e *StreamEnded) Error() string { return "the node has ended the stream: " + e.Reason }

// readEvents reads server-sent events.
func readEvents(from io.Reader, heard func(), last *int64, yield func(Change, error) bool) error {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, maxLine)
	var name string
	var data []byte
	for lines.Scan() {
		heard()
		field, value, _ := bytes.Cut(lines.Bytes(), []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch {
		case len(lines.Bytes()) == 0 && name == "end":
			why := &StreamEnded{"it does not say why"}
			_ = parse(data, why) // without a reason the default stays
			return why
		case len(lines.Bytes()) == 0:
			if name == "change" && !yieldChange(data, last, yield) {
				return errStopped
			}
			name, data = "", nil
		case string(field) == "event":
			name = string(value)
		case string(field) == "data":
			data = append(data, value...) // the node sends one line for each event
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("the stream broke off: %w", err)
	}
	return fmt.Errorf("the stream broke off: %w", io.ErrUnexpectedEOF)
}
