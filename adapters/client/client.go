// Package client calls the API of a node: a method for each operation of the OpenAPI document.
//
//	call ─► one key, one body ─► attempt ─┬─► response ────────────► receipt, Problem
//	                               ▲      ├─► busy, not ready ───┐
//	                               │      └─► cut, 504: unknown ─┤
//	                               └──────── delay, same request ◄┘
//	                                         no more attempts ─► ErrUnknown with the key
//
// A write uses one idempotency key and the same bytes in all attempts. A caller that may crash chooses the key with WithIdempotencyKey and stores it with the request before the call. When it repeats the call after a restart, the node returns the same bytes.
package client

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"macronode/adapters/httpcheck"
)

// Defaults of Options.
const (
	DefaultMaxAttempts       = 3
	DefaultAttemptTimeout    = 10 * time.Second
	DefaultStreamIdleTimeout = time.Minute
	DefaultMaxResponseBytes  = 16 << 20
)

// ErrAddress reports an invalid address of a node.
var ErrAddress = errors.New("client: must be http://host:port, https://host:port or unix:path")

// Options configures a Client. Zero fields have defaults.
type Options struct {
	MaxAttempts       int           // of one request; negative: no limit but time
	AttemptTimeout    time.Duration // of one attempt
	RetryTimeout      time.Duration // no attempt begins later than this after the first; 0: no limit but the context
	StreamIdleTimeout time.Duration // time without data after which a stream counts as broken
	MaxResponseBytes  int64         // of a response
	TLS               *tls.Config
	Proxy             func(*http.Request) (*url.URL, error) // nil: no proxy, whatever the environment contains
	Executed          func(Execution)                       // is called when the node has answered a write with success; nil: nothing is called
	Environment       Environment
}

// An Execution is a write that the node has executed, in this call or in an earlier one with the same idempotency key.
type Execution struct {
	Method, Path   string
	IdempotencyKey string // empty: the operation has none
	Response       []byte
}

// Environment replaces clock and randomness, for tests.
type Environment struct {
	Now               func() time.Time
	Sleep             func(context.Context, time.Duration) error
	Rand              func() float64 // in [0, 1)
	NewIdempotencyKey func() string  // returns a unique key
}

// A Client calls one node. It is safe for concurrent use and reuses its connections.
type Client struct {
	options   Options
	base      string // ends in a slash
	key       string
	http      *http.Client
	transport *http.Transport // of http
}

// New returns a client of the node at an address, with an API key. It sends nothing.
func New(address, key string, o Options) (*Client, error) {
	c := &Client{options: o.withDefaults(), base: address, key: key}
	c.transport = &http.Transport{Proxy: o.Proxy, TLSClientConfig: o.TLS, DisableCompression: true, // the raw bytes are kept
		MaxIdleConnsPerHost: 64, IdleConnTimeout: 30 * time.Second, TLSHandshakeTimeout: 5 * time.Second,
		DialContext: (&net.Dialer{Timeout: 5 * time.Second}).DialContext, ForceAttemptHTTP2: true}
	if path, ok := strings.CutPrefix(address, "unix:"); ok && path != "" {
		c.base = "http://localhost"
		c.transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", path)
		}
	}
	at, err := url.Parse(c.base)
	if err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Host == "" || at.User != nil || at.RawQuery != "" || at.Fragment != "" {
		return nil, fmt.Errorf("%w, not %q", ErrAddress, address)
	}
	c.base = strings.TrimSuffix(c.base, "/") + "/"
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse } // the key is not sent to another host
	c.http = &http.Client{Transport: httpcheck.Unswitched(c.transport), CheckRedirect: stay}
	return c, nil
}

// Close closes idle connections.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

// String returns the address of the node, without the key.
func (c *Client) String() string { return "client of " + c.base }

// GoString is String, so that %#v does not print the key either.
func (c *Client) GoString() string { return c.String() }

func (o Options) withDefaults() Options {
	set(&o.MaxAttempts, DefaultMaxAttempts)
	set(&o.AttemptTimeout, DefaultAttemptTimeout)
	set(&o.StreamIdleTimeout, DefaultStreamIdleTimeout)
	set(&o.MaxResponseBytes, DefaultMaxResponseBytes)
	w := &o.Environment
	if w.Now == nil {
		w.Now = time.Now
	}
	if w.Sleep == nil {
		w.Sleep = sleep
	}
	if w.Rand == nil {
		w.Rand = mathrand.Float64
	}
	if w.NewIdempotencyKey == nil {
		w.NewIdempotencyKey = rand.Text
	}
	return o
}

func set[T comparable](to *T, value T) {
	var none T
	if *to == none {
		*to = value
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// RequestOption configures one request.
type RequestOption func(*request)

// WithIdempotencyKey sets the idempotency key of a request, which is executed once for each key.
// By default each call has a random key.
func WithIdempotencyKey(key string) RequestOption { return func(r *request) { r.key = key } }

// UntilNext repeats a request whose nonce is ahead of the account's next one, because a request
// with that nonce is in flight.
func UntilNext() RequestOption { return func(r *request) { r.waitsForNonce = true } }
