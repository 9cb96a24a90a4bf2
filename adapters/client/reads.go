package client

import (
	"context"
	"errors"
	"net/http"
	"time"

	"macronode/adapters/client/wire"
)

// A Balance is what an account has of an asset.
type Balance struct {
	wire.Balance
	Told
}

// Balance is what an account has of an asset, with at least the movement atLeast
// counted; 0: as it is. An account that was never used has nothing, and a NextNonce
// of 1.
func (c *Client) Balance(ctx context.Context, account, asset string, atLeast int64) (*Balance, error) {
	p := &wire.BalanceParams{Account: account, Asset: asset, MinSeq: said(atLeast)}
	raw, err := c.look(ctx, func() (*http.Request, error) { return wire.NewBalanceRequest(c.base, p) })
	if err != nil {
		return nil, err
	}
	b := &Balance{Told: Told{raw}}
	return b, parse(raw, &b.Balance)
}

// A PastBalance is what an account had.
type PastBalance struct {
	wire.PastBalance
	Told
}

// At is a point in the past: one of the two.
type At struct {
	Seq  int64
	Time time.Time
}

// BalanceAt is what an account had of an asset, with all movements counted up to a
// point, and none after it.
func (c *Client) BalanceAt(ctx context.Context, account, asset string, at At) (*PastBalance, error) {
	p := &wire.BalanceAtParams{Asset: asset, Seq: &at.Seq}
	if !at.Time.IsZero() {
		p.Seq, p.Time = nil, &at.Time
	}
	raw, err := c.look(ctx, func() (*http.Request, error) { return wire.NewBalanceAtRequest(c.base, account, p) })
	if err != nil {
		return nil, err
	}
	b := &PastBalance{Told: Told{raw}}
	return b, parse(raw, &b.PastBalance)
}

// Tx is what the operation with a txid was answered with: the same bytes.
func (c *Client) Tx(ctx context.Context, txid string) (*Outcome, error) {
	return c.outcome(ctx, func() (*http.Request, error) { return wire.NewTxRequest(c.base, txid, nil) })
}

// TxByRef is what the operation with a ref was answered with.
func (c *Client) TxByRef(ctx context.Context, ref string) (*Outcome, error) {
	return c.outcome(ctx, func() (*http.Request, error) { return wire.NewLookupTxRequest(c.base, &wire.LookupTxParams{Ref: &ref}) })
}

// TxByKey is what became of the request that was sent under an idempotency key.
// NotFound says that there is nothing yet: it may still be on its way, so it is no
// licence to ask again under another key.
func (c *Client) TxByKey(ctx context.Context, key string) (*Outcome, error) {
	return c.outcome(ctx, func() (*http.Request, error) {
		return wire.NewLookupTxRequest(c.base, &wire.LookupTxParams{IdempotencyKey: &key})
	})
}

// outcome tells a refusal that is shown again from one of the look-up itself: of that
// a key keeps none.
func (c *Client) outcome(ctx context.Context, build func() (*http.Request, error)) (*Outcome, error) {
	raw, err := c.look(ctx, build)
	var p *Problem
	if errors.As(err, &p) && !p.Retryable && (p.Code.kept() || p.Code == LimitsExceeded) {
		return &Outcome{Told: p.Told, Problem: p}, nil
	}
	if err != nil {
		return nil, err
	}
	return parseOutcome(raw)
}

// GetHold is one hold.
func (c *Client) GetHold(ctx context.Context, id string) (*Hold, error) {
	raw, err := c.look(ctx, func() (*http.Request, error) { return wire.NewGetHoldRequest(c.base, id, nil) })
	if err != nil {
		return nil, err
	}
	h, err := parseHold(raw)
	return &h, err
}

// said is a parameter, unless it is zero.
func said[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}
