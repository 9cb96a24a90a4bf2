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

// A Change is a movement of the tenant: its receipt, or the end in time of a hold.
type Change struct {
	wire.Change
	Told
}

// Verify is Receipt.Verify.
func (ch *Change) Verify() error { return verify(ch.Raw) }

func parseChange(raw []byte) (ch Change, err error) { ch.Raw = raw; return ch, parse(raw, &ch.Change) }

// maxLine is how long a line of a stream may be, in bytes: the longest change fits
// several times.
const maxLine = 64 << 10

// A Feed says which changes are wanted.
type Feed struct {
	After int64         // those behind this seq
	Wait  time.Duration // at the end, ask for more for as long as the context allows, and let the node hold an answer back so long; 0: end there
}

// Changes are the movements of the tenant in order, none left out: ErrGap says
// otherwise. An error is the last that it yields, and after its last change's Seq it
// can be gone on with.
func (c *Client) Changes(ctx context.Context, f Feed) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		last, wait, n := f.After, f.Wait.Milliseconds(), MaxPage
		for {
			p := &wire.ChangesParams{AfterSeq: said(last), Limit: &n, Wait: said(int(wait))}
			got, err := c.ask(ctx, request{wait: f.Wait, build: func(io.Reader) (*http.Request, error) {
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
				if !hand(one, &last, yield) {
					return
				}
			}
			if len(page.Changes) == 0 && f.Wait <= 0 {
				return
			}
		}
	}
}

// Stream is Changes for as long as the context allows, as they become durable. A
// connection that ends, or says nothing for Options.Quiet, is made anew from where it
// was; so many tries without a change between them as Options.Tries allows end the
// stream with an error.
func (c *Client) Stream(ctx context.Context, after int64) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		last, n := after, 0
		for {
			before := last
			a, err := c.listen(ctx, &last, yield)
			if errors.Is(err, errStop) {
				return
			}
			if n++; last > before {
				n = 1
			}
			again, _ := judge(a, true, false)
			wait := pause(n-1, a.after, c.o.World.Roll())
			if !again || n == c.o.Tries || !c.intime(ctx, c.o.World.Now(), wait) || c.o.World.Sleep(ctx, wait) != nil {
				yield(Change{}, err)
				return
			}
		}
	}
}

// errStop says that nobody wants more.
var errStop = errors.New("client: enough")

// listen makes a connection and yields what comes, until it ends. A connection that
// was good and ended is an attempt without an answer.
func (c *Client) listen(ctx context.Context, last *int64, yield func(Change, error) bool) (a attempt, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := time.AfterFunc(c.o.Try, func() { cancel(errQuiet) })
	defer silence.Stop()
	resp, sent, err := c.send(ctx, request{build: func(io.Reader) (*http.Request, error) {
		r, err := wire.NewChangesRequest(c.base, &wire.ChangesParams{LastEventID: said(strconv.FormatInt(*last, 10))})
		if err == nil {
			r.Header.Set("Accept", "text/event-stream, application/problem+json")
		}
		return r, err
	}})
	if err != nil {
		return attempt{sent: sent}, because(ctx, err)
	}
	defer resp.Body.Close() //nolint:errcheck // it has been read
	if resp.StatusCode != http.StatusOK {
		a = attempt{status: resp.StatusCode, sent: true, after: retryAfter(resp.Header.Get("Retry-After"), c.o.World.Now())}
		body, err := c.read(resp.Body)
		p, ok := ParseProblem(body)
		if err != nil || !ok {
			return a, errors.Join(strange(resp.StatusCode), err)
		}
		p.Status, a.code, a.retryable = resp.StatusCode, p.Code, p.Retryable
		return a, p
	}
	err = events(resp.Body, func() { silence.Reset(c.o.Quiet) }, last, yield)
	a.sent = true
	if why := new(Ended); errors.As(err, &why) && why.Reason == string(Unauthorized) {
		a.status, a.code = http.StatusUnauthorized, Unauthorized // the key has ended
	}
	return a, because(ctx, err)
}

var errQuiet = errors.New("nothing was heard in time")

// because names the cause of an end by our own hand.
func because(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), errQuiet) {
		return fmt.Errorf("%w: %w", errQuiet, err)
	}
	return err
}

// hand yields the change behind last; false: no more.
func hand(raw []byte, last *int64, yield func(Change, error) bool) bool {
	ch, err := parseChange(raw)
	if err == nil && ch.Seq != *last+1 {
		err = fmt.Errorf("%w: %d follows %d", ErrGap, ch.Seq, *last)
	}
	if err == nil {
		*last = ch.Seq
	}
	return yield(ch, err) && err == nil
}

// Ended says that the node has ended a stream, and why.
type Ended struct {
	Reason string `json:"reason"`
}

func (e *Ended) Error() string { return "the node has ended the stream: " + e.Reason }

// events reads a stream of server-sent events.
func events(from io.Reader, heard func(), last *int64, yield func(Change, error) bool) error {
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
			why := &Ended{"it does not say why"}
			_ = parse(data, why) // then it does not
			return why
		case len(lines.Bytes()) == 0:
			if name == "change" && !hand(data, last, yield) {
				return errStop
			}
			name, data = "", nil
		case string(field) == "event":
			name = string(value)
		case string(field) == "data":
			data = append(data, value...) // ours have one line each
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("the stream broke off: %w", err)
	}
	return fmt.Errorf("the stream broke off: %w", io.ErrUnexpectedEOF)
}
