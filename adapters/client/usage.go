package client

import (
	"context"
	"errors"
	"io"
	"iter"
	"net/http"
	"strconv"
	"strings"
	"time"

	"macronode/adapters/client/wire"
	"macronode/core/types"
)

// MaxUsageEvents is the largest number of events of one request.
const MaxUsageEvents = 1024

const batchType = "application/cloudevents-batch+json"

// UsageEvent is usage that was observed once: a CloudEvent. Its source and ID identify it for ever.
type (
	UsageEvent = wire.UsageEvent
	UsageData  = wire.UsageData
	Labels     = wire.Labels
)

// NewUsageEvent returns an event with a value in units of a dimension. Without a time, that of its arrival decides.
func NewUsageEvent(source, id, dimension string, value uint64, l Labels) UsageEvent {
	return UsageEvent{Specversion: "1.0", Type: "usage", Source: source, ID: id,
		Data: UsageData{Dimension: dimension, Labels: l, Value: strconv.AppendQuote(nil, strconv.FormatUint(value, 10))}}
}

// UsageRecorded is the number of events that were new, that were recorded before, and that were new and late.
type UsageRecorded struct{ Recorded, Duplicate, Late int }

// RecordUsage records events, in as many requests as they need. Each event counts once, so the same call can be
// repeated after any error. A request is recorded as a whole or not at all. If one fails, the result counts the
// requests before it, and the Index of a *Problem is the event that caused it.
func (c *Client) RecordUsage(ctx context.Context, events []UsageEvent) (sum UsageRecorded, err error) {
	for first := 0; first < len(events); {
		body, n, err := usageBody(events[first:])
		if err != nil {
			return sum, err
		}
		var one wire.UsageRecorded
		if err := c.sendUsage(ctx, body, &one); err != nil {
			if p := new(Problem); errors.As(err, &p) && p.Index != nil {
				*p.Index += first
			}
			return sum, err
		}
		sum.Recorded += int(one.Recorded)
		sum.Duplicate += int(one.Duplicate)
		sum.Late += int(one.Late)
		first += n
	}
	return sum, nil
}

// usageBody returns the body of a request with as many of the events as it takes, at least one.
func usageBody(events []UsageEvent) (body []byte, n int, err error) {
	for ; n < min(len(events), MaxUsageEvents); n++ {
		one, err := encode(events[n])
		if err != nil {
			return nil, 0, err
		}
		if n > 0 && len(body)+len(one)+len(",]") > types.MaxBody {
			break
		}
		body = append(append(body, ','), one...)
	}
	body[0] = '['
	return append(body, ']'), n, nil
}

// sendUsage sends one request.
func (c *Client) sendUsage(ctx context.Context, body []byte, to *wire.UsageRecorded) error {
	q := request{body: body, effect: idempotentEffect, newRequest: func(body io.Reader) (*http.Request, error) {
		return wire.NewRecordUsageRequestWithBody(c.base, nil, batchType, body)
	}}
	got, err := c.do(ctx, q)
	if err != nil {
		return err
	}
	return q.result(true, 1, parse(got.body, to))
}

// A UsageQuery selects usage and how it is summed.
type UsageQuery struct {
	From, To  time.Time // windows that begin in [From, To)
	Dimension string    // empty: all
	Group     []string  // of window, service, region, method, route, subject
	AsOf      time.Time // of sums: what was due to be sealed by then, the same for ever; zero: all, also what is open
}

// A UsagePage is sums of usage.
type UsagePage struct {
	wire.UsagePage
	RawResponse
}

// Usage returns sums of usage, by dimension and the groups.
func (c *Client) Usage(ctx context.Context, q UsageQuery) (*UsagePage, error) {
	raw, err := c.UsageText(ctx, q, "json")
	if err != nil {
		return nil, err
	}
	p := &UsagePage{RawResponse: RawResponse{raw}}
	return p, parse(raw, &p.UsagePage)
}

// UsageText is Usage as json, ndjson or csv.
func (c *Client) UsageText(ctx context.Context, q UsageQuery, format string) ([]byte, error) {
	p := &wire.UsageParams{From: q.From, To: q.To, Dimension: optional(q.Dimension), Group: optional(strings.Join(q.Group, ",")), AsOf: optional(q.AsOf),
		Format: optional(wire.UsageParamsFormat(format))}
	return c.get(ctx, func() (*http.Request, error) { return wire.NewUsageRequest(c.base, p) })
}

// A UsageSlice is a sealed slice of usage.
type UsageSlice struct {
	wire.UsageSlice
	RawResponse
}

// UsageSlices returns the sealed slices of the windows that a query selects, in the order of dimension, window and
// seq. Without From or To there is no bound. An error is the last item.
func (c *Client) UsageSlices(ctx context.Context, q UsageQuery, l ListOptions) iter.Seq2[UsageSlice, error] {
	return pages(ctx, c, l, listing[UsageSlice]{items: "slices", next: "next_cursor",
		read: func(raw []byte) (s UsageSlice, err error) { s.Raw = raw; return s, parse(raw, &s.UsageSlice) },
		ask: func(from string, n int) (*http.Request, error) {
			return wire.NewUsageSlicesRequest(c.base, &wire.UsageSlicesParams{From: optional(q.From), To: optional(q.To), Dimension: optional(q.Dimension),
				Cursor: optional(from), Limit: &n})
		}})
}
