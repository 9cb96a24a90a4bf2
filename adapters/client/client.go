// Package client speaks to a node: a method for each operation of its document.
//
//	intention ─► one key, one body ─► try ─┬─► an answer ─────────────► receipt, Problem
//	                                  ▲    ├─► busy, not ready ──────┐
//	                                  │    └─► cut, 504: in doubt ───┤
//	                                  └─────── a pause, the same ◄───┘
//	                                           no more tries, in doubt ─► ErrUnknown, and the key
//
// What moves money is sent under one idempotency key, with the same bytes, however
// often it is sent. A caller who may die in the middle names the key himself, with
// Under, and keeps it and the request before he asks: asked again after that, in
// another life, the node shows the same bytes.
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
)

// What is used where Options say nothing.
const (
	DefaultTries     = 3
	DefaultTry       = 10 * time.Second
	DefaultQuiet     = time.Minute
	DefaultMaxAnswer = 16 << 20
)

// ErrAddress says that an address is none.
var ErrAddress = errors.New("client: must be http://host:port, https://host:port or unix:path")

// Options say how a node is spoken to. Zero fields have defaults.
type Options struct {
	Tries     int           // of one request, at most; less than 0: as many as time allows
	Try       time.Duration // at most, of one of them
	Patience  time.Duration // no try begins later after the first; 0: the context alone says
	Quiet     time.Duration // how long a stream may say nothing at all before it counts as dead
	MaxAnswer int64         // bytes of an answer that are read
	TLS       *tls.Config
	Proxy     func(*http.Request) (*url.URL, error) // nil: none stands between, whatever the environment says
	World     World
}

// World is what a client has of the world beside the network.
type World struct {
	Now   func() time.Time
	Sleep func(context.Context, time.Duration) error
	Roll  func() float64 // in [0, 1)
	Draw  func() string  // an idempotency key that nobody draws twice
}

// A Client speaks to one node. It may be used by many goroutines at a time, and keeps
// its connections for the next request.
type Client struct {
	o    Options
	base string // ends in a slash
	key  string
	http *http.Client
	wire *http.Transport // of http
}

// New is a client of the node at an address, which is let in by an API key. Nothing is
// sent yet.
func New(address, key string, o Options) (*Client, error) {
	c := &Client{o: o.filled(), base: address, key: key}
	c.wire = &http.Transport{Proxy: o.Proxy, TLSClientConfig: o.TLS, DisableCompression: true, // bytes as they came
		MaxIdleConnsPerHost: 64, IdleConnTimeout: 30 * time.Second, TLSHandshakeTimeout: 5 * time.Second,
		DialContext: (&net.Dialer{Timeout: 5 * time.Second}).DialContext, ForceAttemptHTTP2: true}
	if path, ok := strings.CutPrefix(address, "unix:"); ok && path != "" {
		c.base = "http://localhost"
		c.wire.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", path)
		}
	}
	at, err := url.Parse(c.base)
	if err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Host == "" || at.User != nil || at.RawQuery != "" || at.Fragment != "" {
		return nil, fmt.Errorf("%w, not %q", ErrAddress, address)
	}
	c.base = strings.TrimSuffix(c.base, "/") + "/"
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse } // a key goes nowhere else
	c.http = &http.Client{Transport: c.wire, CheckRedirect: stay}
	return c, nil
}

// Close lets idle connections go.
func (c *Client) Close() { c.wire.CloseIdleConnections() }

// String names the node, and not the key.
func (c *Client) String() string { return "client of " + c.base }

// GoString is String: a key is not printed by way of %#v either.
func (c *Client) GoString() string { return c.String() }

func (o Options) filled() Options {
	set(&o.Tries, DefaultTries)
	set(&o.Try, DefaultTry)
	set(&o.Quiet, DefaultQuiet)
	set(&o.MaxAnswer, DefaultMaxAnswer)
	w := &o.World
	if w.Now == nil {
		w.Now = time.Now
	}
	if w.Sleep == nil {
		w.Sleep = sleep
	}
	if w.Roll == nil {
		w.Roll = mathrand.Float64
	}
	if w.Draw == nil {
		w.Draw = rand.Text
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

// How says how one request is asked.
type How func(*request)

// Under names the idempotency key of a request: the same key is done once. Without
// it, one is drawn for each call.
func Under(key string) How { return func(r *request) { r.key = key } }

// UntilNext lets a request wait for its turn where its nonce is ahead of the one that
// the account must use next, for another is on its way that uses that one.
func UntilNext() How { return func(r *request) { r.patient = true } }
