package client

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"macronode/adapters/client/wire"
)

// The requests, as in the OpenAPI document.
type (
	IssueRequest    = wire.IssueRequest
	TransferRequest = wire.TransferRequest
	BurnRequest     = wire.BurnRequest
	HoldRequest     = wire.HoldRequest
	CaptureRequest  = wire.CaptureRequest
	BatchRequest    = wire.BatchRequest
	BatchItem       = wire.BatchItem
)

// Issue issues money.
func (c *Client) Issue(ctx context.Context, o IssueRequest, how ...RequestOption) (*Receipt, error) {
	return c.order(ctx, o, how, func(key string, body io.Reader) (*http.Request, error) {
		return wire.NewIssueRequestWithBody(c.base, &wire.IssueParams{IdempotencyKey: key}, jsonType, body)
	})
}

// Transfer transfers money between accounts.
func (c *Client) Transfer(ctx context.Context, o TransferRequest, how ...RequestOption) (*Receipt, error) {
	return c.order(ctx, o, how, func(key string, body io.Reader) (*http.Request, error) {
		return wire.NewTransferRequestWithBody(c.base, &wire.TransferParams{IdempotencyKey: key}, jsonType, body)
	})
}

// Burn burns money.
func (c *Client) Burn(ctx context.Context, o BurnRequest, how ...RequestOption) (*Receipt, error) {
	return c.order(ctx, o, how, func(key string, body io.Reader) (*http.Request, error) {
		return wire.NewBurnRequestWithBody(c.base, &wire.BurnParams{IdempotencyKey: key}, jsonType, body)
	})
}

// Hold reserves money for a beneficiary. HoldID of the receipt identifies the hold.
func (c *Client) Hold(ctx context.Context, o HoldRequest, how ...RequestOption) (*Receipt, error) {
	return c.order(ctx, o, how, func(key string, body io.Reader) (*http.Request, error) {
		return wire.NewHoldRequestWithBody(c.base, &wire.HoldParams{IdempotencyKey: key}, jsonType, body)
	})
}

// Capture captures a part of a hold and releases the remainder.
func (c *Client) Capture(ctx context.Context, hold string, o CaptureRequest, how ...RequestOption) (*Receipt, error) {
	return c.order(ctx, o, how, func(key string, body io.Reader) (*http.Request, error) {
		return wire.NewCaptureRequestWithBody(c.base, hold, &wire.CaptureParams{IdempotencyKey: key}, jsonType, body)
	})
}

// Release releases a hold.
func (c *Client) Release(ctx context.Context, hold string, how ...RequestOption) (*Receipt, error) {
	return c.order(ctx, struct{}{}, how, func(key string, body io.Reader) (*http.Request, error) {
		return wire.NewReleaseRequestWithBody(c.base, hold, &wire.ReleaseParams{IdempotencyKey: key}, jsonType, body)
	})
}

// Freeze blocks debits of an account.
func (c *Client) Freeze(ctx context.Context, account, reason string, how ...RequestOption) (*Receipt, error) {
	return c.order(ctx, wire.FreezeRequest{Reason: reason}, how, func(key string, body io.Reader) (*http.Request, error) {
		return wire.NewFreezeRequestWithBody(c.base, account, &wire.FreezeParams{IdempotencyKey: key}, jsonType, body)
	})
}

// Unfreeze allows debits of an account again.
func (c *Client) Unfreeze(ctx context.Context, account, reason string, how ...RequestOption) (*Receipt, error) {
	return c.order(ctx, wire.FreezeRequest{Reason: reason}, how, func(key string, body io.Reader) (*http.Request, error) {
		return wire.NewUnfreezeRequestWithBody(c.base, account, &wire.UnfreezeParams{IdempotencyKey: key}, jsonType, body)
	})
}

// Batch executes up to 1,000 operations in order: all or none if it is atomic, otherwise each by
// itself. The Index of a *Problem is the item that caused it.
func (c *Client) Batch(ctx context.Context, o BatchRequest, how ...RequestOption) (*Batch, error) {
	got, q, err := c.post(ctx, o, how, func(key string, body io.Reader) (*http.Request, error) {
		return wire.NewBatchRequestWithBody(c.base, &wire.BatchParams{IdempotencyKey: key}, jsonType, body)
	})
	if err != nil {
		return nil, err
	}
	b, err := parseBatch(got.body)
	if err == nil && len(b.Receipts)+len(b.Results) != len(o.Items) {
		err = fmt.Errorf("%w: %d items were asked, %d answered", ErrWrongNode, len(o.Items), len(b.Receipts)+len(b.Results))
	}
	if err != nil {
		return nil, q.result(true, 1, err)
	}
	b.Replayed = got.replayed
	return b, nil
}

// build returns a request with a key.
type build = func(key string, body io.Reader) (*http.Request, error)

// order sends one operation.
func (c *Client) order(ctx context.Context, o any, how []RequestOption, make build) (*Receipt, error) {
	got, q, err := c.post(ctx, o, how, make)
	if err != nil {
		return nil, err
	}
	r, err := parseReceipt(got.body)
	if err != nil {
		return nil, q.result(true, 1, err)
	}
	r.Replayed = got.replayed
	return r, nil
}

// post sends a request that is executed once for its key.
func (c *Client) post(ctx context.Context, o any, how []RequestOption, make build) (response, *request, error) {
	body, err := encode(o)
	if err != nil {
		return response{}, nil, err
	}
	q := request{body: body, effect: idempotentEffect}
	for _, say := range how {
		say(&q)
	}
	if q.key == "" {
		q.key = c.options.Environment.NewIdempotencyKey()
	}
	q.newRequest = func(body io.Reader) (*http.Request, error) { return make(q.key, body) }
	got, err := c.do(ctx, q)
	return got, &q, err
}
