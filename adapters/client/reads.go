package client

import (
	"context"
	"errors"
	"net/http"
	"time"

	"macronode/adapters/client/wire"
)

// A Balance is the balance of an account in an asset.
type Balance struct {
	wire.Balance
	RawResponse
}

// Balance returns the balance of an account in an asset. If atLeast is not 0, it includes at
// least this movement. An unused account has a balance of 0 and a NextNonce of 1.
func (c *Client) Balance(ctx context.Context, account, asset string, atLeast int64) (*Balance, error) {
	p := &wire.BalanceParams{Account: account, Asset: asset, MinSeq: optional(atLeast)}
	raw, err := c.get(ctx, func() (*http.Request, error) { return wire.NewBalanceRequest(c.base, p) })
	if err != nil {
		return nil, err
	}
	b := &Balance{RawResponse: RawResponse{raw}}
	return b, parse(raw, &b.Balance)
}

// A PastBalance is a balance at a point in the past.
type PastBalance struct {
	wire.PastBalance
	RawResponse
}

// At is a point in the past: a seq or a time.
type At struct {
	Seq  int64
	Time time.Time
}

// BalanceAt returns the balance of an account in an asset, including exactly the movements up to
// a point.
func (c *Client) BalanceAt(ctx context.Context, account, asset string, at At) (*PastBalance, error) {
	p := &wire.BalanceAtParams{Asset: asset, Seq: &at.Seq}
	if !at.Time.IsZero() {
		p.Seq, p.Time = nil, &at.Time
	}
	raw, err := c.get(ctx, func() (*http.Request, error) { return wire.NewBalanceAtRequest(c.base, account, p) })
	if err != nil {
		return nil, err
	}
	b := &PastBalance{RawResponse: RawResponse{raw}}
	return b, parse(raw, &b.PastBalance)
}

// Tx returns the response of the operation with a txid: the same bytes.
func (c *Client) Tx(ctx context.Context, txid string) (*Outcome, error) {
	return c.outcome(ctx, func() (*http.Request, error) { return wire.NewTxRequest(c.base, txid, nil) })
}

// TxByRef returns the response of the operation with a ref.
func (c *Client) TxByRef(ctx context.Context, ref string) (*Outcome, error) {
	return c.outcome(ctx, func() (*http.Request, error) { return wire.NewLookupTxRequest(c.base, &wire.LookupTxParams{Ref: &ref}) })
}

// TxByKey returns the outcome of the request with an idempotency key. NotFound means that there
// is no outcome yet: the request may still be in flight, so do not repeat it with another key.
func (c *Client) TxByKey(ctx context.Context, key string) (*Outcome, error) {
	return c.outcome(ctx, func() (*http.Request, error) {
		return wire.NewLookupTxRequest(c.base, &wire.LookupTxParams{IdempotencyKey: &key})
	})
}

// outcome distinguishes a stored rejection from one of the look-up itself, which is not stored.
func (c *Client) outcome(ctx context.Context, build func() (*http.Request, error)) (*Outcome, error) {
	raw, err := c.get(ctx, build)
	var p *Problem
	if errors.As(err, &p) && !p.Retryable && (p.Code.isFinal() || p.Code == LimitsExceeded) {
		return &Outcome{RawResponse: p.RawResponse, Problem: p}, nil
	}
	if err != nil {
		return nil, err
	}
	return parseOutcome(raw)
}

// GetHold returns one hold.
func (c *Client) GetHold(ctx context.Context, id string) (*Hold, error) {
	raw, err := c.get(ctx, func() (*http.Request, error) { return wire.NewGetHoldRequest(c.base, id, nil) })
	if err != nil {
		return nil, err
	}
	h, err := parseHold(raw)
	return &h, err
}

// optional returns a pointer to a parameter, or nil if it is zero.
func optional[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}
