package client

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"macronode/adapters/client/wire"
)

// What is asked, as the document says it.
type (
	IssueRequest    = wire.IssueRequest
	TransferRequest = wire.TransferRequest
	BurnRequest     = wire.BurnRequest
	HoldRequest     = wire.HoldRequest
	CaptureRequest  = wire.CaptureRequest
	BatchRequest    = wire.BatchRequest
	BatchItem       = wire.BatchItem
)

// Issue brings money into being.
func (c *Client) Issue(ctx context.Context, o IssueRequest, how ...How) (*Receipt, error) {
	return c.order(ctx, o, how, func(key string, body io.Reader) (*http.Request, error) {
		return wire.NewIssueRequestWithBody(c.base, &wire.IssueParams{IdempotencyKey: key}, jsonType, body)
	})
}

// Transfer moves money between accounts.
func (c *Client) Transfer(ctx context.Context, o TransferRequest, how ...How) (*Receipt, error) {
	return c.order(ctx, o, how, func(key string, body io.Reader) (*http.Request, error) {
		return wire.NewTransferRequestWithBody(c.base, &wire.TransferParams{IdempotencyKey: key}, jsonType, body)
	})
}

// Burn takes money out of being.
func (c *Client) Burn(ctx context.Context, o BurnRequest, how ...How) (*Receipt, error) {
	return c.order(ctx, o, how, func(key string, body io.Reader) (*http.Request, error) {
		return wire.NewBurnRequestWithBody(c.base, &wire.BurnParams{IdempotencyKey: key}, jsonType, body)
	})
}

// Hold keeps money for somebody; the receipt's HoldID names the hold.
func (c *Client) Hold(ctx context.Context, o HoldRequest, how ...How) (*Receipt, error) {
	return c.order(ctx, o, how, func(key string, body io.Reader) (*http.Request, error) {
		return wire.NewHoldRequestWithBody(c.base, &wire.HoldParams{IdempotencyKey: key}, jsonType, body)
	})
}

// Capture pays of a hold, and lets go of the rest.
func (c *Client) Capture(ctx context.Context, hold string, o CaptureRequest, how ...How) (*Receipt, error) {
	return c.order(ctx, o, how, func(key string, body io.Reader) (*http.Request, error) {
		return wire.NewCaptureRequestWithBody(c.base, hold, &wire.CaptureParams{IdempotencyKey: key}, jsonType, body)
	})
}

// Release lets go of a hold.
func (c *Client) Release(ctx context.Context, hold string, how ...How) (*Receipt, error) {
	return c.order(ctx, struct{}{}, how, func(key string, body io.Reader) (*http.Request, error) {
		return wire.NewReleaseRequestWithBody(c.base, hold, &wire.ReleaseParams{IdempotencyKey: key}, jsonType, body)
	})
}

// Freeze lets nothing leave an account; Unfreeze ends that.
func (c *Client) Freeze(ctx context.Context, account, reason string, how ...How) (*Receipt, error) {
	return c.order(ctx, wire.FreezeRequest{Reason: reason}, how, func(key string, body io.Reader) (*http.Request, error) {
		return wire.NewFreezeRequestWithBody(c.base, account, &wire.FreezeParams{IdempotencyKey: key}, jsonType, body)
	})
}

// Unfreeze ends a freeze.
func (c *Client) Unfreeze(ctx context.Context, account, reason string, how ...How) (*Receipt, error) {
	return c.order(ctx, wire.FreezeRequest{Reason: reason}, how, func(key string, body io.Reader) (*http.Request, error) {
		return wire.NewUnfreezeRequestWithBody(c.base, account, &wire.UnfreezeParams{IdempotencyKey: key}, jsonType, body)
	})
}

// Batch does up to 1,000 operations in order: all of them or none where it is atomic,
// else each for itself. The Index of a *Problem is the item that was in the way.
func (c *Client) Batch(ctx context.Context, o BatchRequest, how ...How) (*Batch, error) {
	got, q, err := c.post(ctx, o, how, func(key string, body io.Reader) (*http.Request, error) {
		return wire.NewBatchRequestWithBody(c.base, &wire.BatchParams{IdempotencyKey: key}, jsonType, body)
	})
	if err != nil {
		return nil, err
	}
	b, err := parseBatch(got.body)
	if err == nil && len(b.Receipts)+len(b.Results) != len(o.Items) {
		err = fmt.Errorf("%w: %d items were asked, %d answered", ErrStranger, len(o.Items), len(b.Receipts)+len(b.Results))
	}
	if err != nil {
		return nil, q.end(true, 1, err)
	}
	b.Replayed = got.replayed
	return b, nil
}

// build makes a request under a key.
type build = func(key string, body io.Reader) (*http.Request, error)

// order asks for one operation.
func (c *Client) order(ctx context.Context, o any, how []How, make build) (*Receipt, error) {
	got, q, err := c.post(ctx, o, how, make)
	if err != nil {
		return nil, err
	}
	r, err := parseReceipt(got.body)
	if err != nil {
		return nil, q.end(true, 1, err)
	}
	r.Replayed = got.replayed
	return r, nil
}

// post asks for what is done once under its key.
func (c *Client) post(ctx context.Context, o any, how []How, make build) (answer, *request, error) {
	body, err := encode(o)
	if err != nil {
		return answer{}, nil, err
	}
	q := request{body: body, effect: onceFor}
	for _, say := range how {
		say(&q)
	}
	if q.key == "" {
		q.key = c.o.World.Draw()
	}
	q.build = func(body io.Reader) (*http.Request, error) { return make(q.key, body) }
	got, err := c.ask(ctx, q)
	return got, &q, err
}
