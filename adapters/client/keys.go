package client

import (
	"context"
	"io"
	"net/http"

	"macronode/adapters/client/wire"
)

// KeyRequest describes a new API key.
type (
	KeyRequest = wire.KeyRequest
	Scope      = wire.Scope
)

// A NewKey is an API key with its secret, which the node returns only once.
type NewKey struct {
	wire.NewKey
	RawResponse
}

// CreateKey creates an API key. It is not idempotent, so it is not repeated if its outcome is
// unknown: after ErrUnknown, look for the name in Keys and revoke that key.
func (c *Client) CreateKey(ctx context.Context, o KeyRequest) (*NewKey, error) {
	body, err := encode(o)
	if err != nil {
		return nil, err
	}
	q := request{body: body, effect: repeatedEffect, newRequest: func(body io.Reader) (*http.Request, error) {
		return wire.NewCreateKeyRequestWithBody(c.base, nil, jsonType, body)
	}}
	got, err := c.do(ctx, q)
	if err != nil {
		return nil, err
	}
	k := &NewKey{RawResponse: RawResponse{got.body}}
	if err := parse(got.body, &k.NewKey); err != nil {
		return nil, q.result(true, 1, err)
	}
	return k, nil
}

// S3Credentials are what an S3 client signs its requests with.
type S3Credentials struct {
	wire.S3Credentials
	RawResponse
}

// S3Credentials returns the S3 credentials of the API key. Its error is NotFound if the node has no S3 interface.
func (c *Client) S3Credentials(ctx context.Context) (*S3Credentials, error) {
	body, err := c.get(ctx, func() (*http.Request, error) { return wire.NewS3CredentialsRequest(c.base, nil) })
	if err != nil {
		return nil, err
	}
	s := &S3Credentials{RawResponse: RawResponse{body}}
	return s, parse(body, &s.S3Credentials)
}

// WithKey returns a client of the same node with another API key.
func (c *Client) WithKey(key string) *Client {
	other := *c
	other.key = key
	return &other
}

// RevokeKey revokes an API key. It is idempotent.
func (c *Client) RevokeKey(ctx context.Context, id string) (*Key, error) {
	q := request{effect: idempotentEffect, newRequest: func(io.Reader) (*http.Request, error) { return wire.NewRevokeKeyRequest(c.base, id, nil) }}
	got, err := c.do(ctx, q)
	if err != nil {
		return nil, err
	}
	k, err := parseKey(got.body)
	if err != nil {
		return nil, q.result(true, 1, err)
	}
	return &k, nil
}
