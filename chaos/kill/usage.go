package kill

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"syscall"
	"time"

	"macronode/core/types"
)

// A usageBatch is a request of a UsageClient, which is sent until its outcome is known.
type usageBatch struct {
	body   []byte
	events int
	value  uint64
	sent   bool // at least once
}

// A UsageClient reports usage with a subject of its own. It knows the sum of everything that it reported.
type UsageClient struct {
	Subject string
	dice    types.Rand
	next    int
	open    *usageBatch   // without a known outcome
	done    []*usageBatch // acknowledged; some are sent again

	Value, Events                  uint64 // that were acknowledged
	Batches, Repeats, Cut, Unknown int

	PaidFrom string // account that the client fills when it cannot pay; empty: the tenant is postpaid
	Rejected int    // batches, because the account could not pay
	refills  int
}

// NewUsageClient returns a client with a number.
func NewUsageClient(number uint64) *UsageClient {
	return &UsageClient{Subject: fmt.Sprintf("client-%d", number), dice: types.NewRand(number)}
}

// batch makes a request of new events. Many of them are late.
func (c *UsageClient) batch() *usageBatch {
	b := &usageBatch{events: 1 + int(c.dice.Uint64n(20))}
	type data struct {
		Dimension string            `json:"dimension"`
		Value     uint64            `json:"value"`
		Labels    map[string]string `json:"labels"`
	}
	type event struct {
		Version string `json:"specversion"`
		ID      string `json:"id"`
		Source  string `json:"source"`
		Type    string `json:"type"`
		Time    string `json:"time"`
		Subject string `json:"subject"`
		Data    data   `json:"data"`
	}
	all := make([]event, b.events)
	for i := range all {
		c.next++
		value := c.dice.Uint64n(1000)
		at := time.Now().Add(-time.Duration(c.dice.Uint64n(180)) * time.Second).UTC()
		all[i] = event{"1.0", fmt.Sprint(c.next), c.Subject, "test", at.Format(time.RFC3339), c.Subject,
			data{[...]string{"requests", "bytes_in"}[c.dice.Uint64n(2)], value, map[string]string{"route": fmt.Sprint("r", c.dice.Uint64n(3))}}}
		b.value += value
	}
	b.body, _ = json.Marshal(all) // of these types it does not fail
	return b
}

// Run sends batches until the node stops answering. A response that contradicts what the client knows is an error.
func (c *UsageClient) Run(ctx context.Context, n *Node) error {
	for ctx.Err() == nil {
		if c.open == nil && len(c.done) > 0 && c.dice.Uint64n(4) == 0 {
			if err := c.repeat(ctx, n); err != nil {
				return errOrEnd(err, &c.Cut)
			}
			continue
		}
		if c.open == nil {
			c.open = c.batch()
		}
		if err := c.settle(ctx, n); err != nil {
			return errOrEnd(err, &c.Cut)
		}
	}
	return nil
}

// errOrEnd returns nil if the node has ended, which it counts if a request was cut.
func errOrEnd(err error, cut *int) error {
	var wrong *wrongAnswer
	if errors.As(err, &wrong) {
		return err
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		*cut++
	}
	return nil
}

type wrongAnswer struct{ what string }

func (w *wrongAnswer) Error() string { return w.what }

// Settle sends the batch without a known outcome until it has one.
func (c *UsageClient) Settle(ctx context.Context, n *Node) error {
	for c.open != nil && ctx.Err() == nil {
		if err := c.settle(ctx, n); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// settle sends the open batch once. All of its events are new, or none: a frame is durable as a whole.
func (c *UsageClient) settle(ctx context.Context, n *Node) error {
	b := c.open
	was := b.sent
	b.sent = true
	got, known, err := c.send(ctx, n, b)
	if err != nil || !known {
		return err
	}
	all := got.Recorded == b.events && got.Duplicate == 0
	none := got.Recorded == 0 && got.Duplicate == b.events
	if !all && !(none && was) {
		return &wrongAnswer{fmt.Sprintf("%s: %+v of %d events, sent before: %v", c.Subject, got, b.events, was)}
	}
	if was {
		c.Unknown++
	}
	c.open, c.done = nil, append(c.done, b)
	c.Batches++
	c.Value += b.value
	c.Events += uint64(b.events)
	return nil
}

// repeat sends an acknowledged batch again: it has no effect.
func (c *UsageClient) repeat(ctx context.Context, n *Node) error {
	b := c.done[c.dice.Uint64n(uint64(len(c.done)))]
	got, known, err := c.send(ctx, n, b)
	if err != nil || !known {
		return err
	}
	if got.Recorded > 0 || got.Duplicate != b.events {
		return &wrongAnswer{fmt.Sprintf("%s: an acknowledged batch of %d events, sent again: %+v", c.Subject, b.events, got)}
	}
	c.Repeats++
	return nil
}

type usageReport struct{ Recorded, Duplicate, Late int }

// send sends a batch. known is false if the node took no decision, or did not say which.
func (c *UsageClient) send(ctx context.Context, n *Node, b *usageBatch) (got usageReport, known bool, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, n.HTTP+"/v1/usage-events", bytes.NewReader(b.body))
	if err != nil {
		return got, false, err
	}
	r.Header.Set("Content-Type", "application/cloudevents-batch+json")
	status, body, err := n.do(r, n.Key)
	switch {
	case err != nil:
		return got, false, err
	case status == http.StatusServiceUnavailable, status == http.StatusTooManyRequests, status == http.StatusGatewayTimeout:
		return got, false, nil
	case status == http.StatusPaymentRequired && c.PaidFrom != "":
		c.Rejected++
		return got, false, c.refill(ctx, n)
	case status != http.StatusAccepted:
		return got, false, &wrongAnswer{fmt.Sprintf("%s: %d %.200s", c.Subject, status, body)}
	}
	if err := json.Unmarshal(body, &got); err != nil {
		return got, false, &wrongAnswer{fmt.Sprintf("%s: %.200s", c.Subject, body)}
	}
	return got, true, nil
}

// refill issues money for a few batches. If its outcome is unknown, the next batch that is rejected issues more.
func (c *UsageClient) refill(ctx context.Context, n *Node) error {
	c.refills++
	return issue(ctx, n, fmt.Sprint(c.Subject, "-", c.refills), c.PaidFrom, 40_000)
}

// issue issues cents to an account. A response that is not retryable is an error.
func issue(ctx context.Context, n *Node, key, to string, amount int) error {
	status, body, err := n.Post(ctx, "/v1/issue", key, fmt.Sprintf(`{"to":%q,"asset":"EUR/2","amount_minor":"%d"}`, to, amount))
	if err == nil && status >= http.StatusBadRequest && status < http.StatusInternalServerError && status != http.StatusTooManyRequests {
		err = &wrongAnswer{fmt.Sprintf("%s: issue: %d %.200s", key, status, body)}
	}
	return err
}

// A UsageSum is the usage of a value of a label, as the node sums it.
type UsageSum struct {
	Value, Open, Prepaid uint64
	Events               uint64
}

// SumUsage returns the usage by the value of a label: of a dimension, or of all if it is empty.
func SumUsage(ctx context.Context, n *Node, label, dimension string) (map[string]UsageSum, error) {
	at := func(d time.Duration) string { return time.Now().Add(d).UTC().Format(time.RFC3339) }
	query := "/v1/usage?group=" + label + "&from=" + at(-24*time.Hour) + "&to=" + at(time.Hour)
	if dimension != "" {
		query += "&dimension=" + dimension
	}
	status, body, err := n.GetIndexed(ctx, query)
	if err != nil || status != http.StatusOK {
		return nil, fmt.Errorf("usage: %d %.200s, %w", status, body, err)
	}
	var page struct {
		Usage []struct {
			Labels  map[string]string `json:"labels"`
			Value   uint64            `json:"value,string"`
			Open    uint64            `json:"open,string"`
			Prepaid uint64            `json:"prepaid,string"`
			Events  uint64            `json:"events"`
		} `json:"usage"`
	}
	if err := json.Unmarshal(body, &page); err != nil {
		return nil, err
	}
	sums := map[string]UsageSum{}
	for _, u := range page.Usage {
		s := sums[u.Labels[label]]
		sums[u.Labels[label]] = UsageSum{s.Value + u.Value, s.Open + u.Open, s.Prepaid + u.Prepaid, s.Events + u.Events}
	}
	return sums, nil
}
