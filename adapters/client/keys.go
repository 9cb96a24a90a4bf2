package client

import (
	"context"
	"io"
	"net/http"

	"macronode/adapters/client/wire"
)

// KeyRequest says what a new API key may do.
type (
	KeyRequest = wire.KeyRequest
	Scope      = wire.Scope
)

// A NewKey is an API key with its secret, which is told this once.
type NewKey struct {
	wire.NewKey
	Told
}

// CreateKey makes an API key. Asked twice it makes two, so it is not sent again once it
// may have been done: after ErrUnknown, look for its name among Keys, and revoke it.
func (c *Client) CreateKey(ctx context.Context, o KeyRequest) (*NewKey, error) {
	body, err := encode(o)
	if err != nil {
		return nil, err
	}
	q := request{body: body, effect: each, build: func(body io.Reader) (*http.Request, error) {
		return wire.NewCreateKeyRequestWithBody(c.base, nil, jsonType, body)
	}}
	got, err := c.ask(ctx, q)
	if err != nil {
		return nil, err
	}
	k := &NewKey{Told: Told{got.body}}
	if err := parse(got.body, &k.NewKey); err != nil {
		return nil, q.end(true, 1, err)
	}
	return k, nil
}

// RevokeKey ends an API key. Asked again, it is revoked still.
func (c *Client) RevokeKey(ctx context.Context, id string) (*Key, error) {
	q := request{effect: onceFor, build: func(io.Reader) (*http.Request, error) { return wire.NewRevokeKeyRequest(c.base, id, nil) }}
	got, err := c.ask(ctx, q)
	if err != nil {
		return nil, err
	}
	k, err := parseKey(got.body)
	if err != nil {
		return nil, q.end(true, 1, err)
	}
	return &k, nil
}
