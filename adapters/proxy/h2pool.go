package proxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"golang.org/x/net/http2"

	"macronode/core/share"
	"macronode/core/types"
)

// MaxStreams is the limit of concurrent requests on one connection, unless the endpoint announces
// a lower one; further requests use another connection. H2ConnBytes is the memory of a
// connection, and StreamBytes that of a request.
const (
	MaxStreams  = 30
	H2ConnBytes = 48 << 10
	StreamBytes = 2*streamWindow + 64<<10 // received data is stored in chunks that are not full
)

const (
	streamWindow = 128 << 10 // bytes of a response that were not read by the client

	// connWindow is the window of a connection for the responses of all requests. It bounds no memory: each
	// request has a window of its own. It is twice what the requests of a connection can take from it, so that
	// hasReceiveWindow rejects no connection before maxAbortedRequests.
	connWindow = 2 * (MaxStreams + maxAbortedRequests) * streamWindow

	http1AssumedFor = time.Minute // after the endpoint has chosen HTTP/1.1, it is not offered HTTP/2 for this time
	maxResends      = 3           // if connections end just before a request
)

// Errors of connecting.
var (
	errHTTP1Chosen    = errors.New("proxy: the endpoint has chosen HTTP/1.1")
	errNotHTTP2       = errors.New("proxy: the endpoint does not speak HTTP/2")
	errConnEndsAtOnce = errors.New("proxy: the endpoint closes connections at once, or accepts no request on them")
)

// h2pool holds the HTTP/2 connections to one endpoint. It opens one connection at a time for all
// requests: those that arrive meanwhile wait for it. A body that fits no connection with those of
// others, see share.Bodies, waits for one that is opened for its flow, also one at a time.
type h2pool struct {
	scheme         string
	address        string
	dialer         *dialer
	mayChooseHTTP1 bool          // the endpoint may choose HTTP/1.1
	maxSilence     time.Duration // of a connection when a request over it is aborted: the time in which a new one connects
	idleTotal      *idleConns    // idle connections to all endpoints

	mu         sync.Mutex // never held over I/O
	conns      []*h2conn  // the oldest first
	pending    map[connUse]*pendingConn
	waiters    int       // requests that wait for any of pending
	http1Until time.Time // until when HTTP/1.1 is assumed
	sweep      *time.Timer
	retired    bool // connections are not kept any more
}

// A pendingConn is a connection that is being opened.
type pendingConn struct {
	use  connUse
	done chan struct{} // closed when it is open or has failed
	conn *h2conn
	err  error

	waiters int // requests that have not looked at it since; guarded by h2pool.mu
}

// A connUse is for which requests a connection is opened: for all, or for the bodies of one flow. Once those
// that have waited for it use it, or have left, others may use it as well.
type connUse struct {
	ofFlow bool
	flow   types.Flow
}

// h2PoolOf returns the pool of an endpoint, or nil if HTTP/1.1 is used.
func (p *Proxy) h2PoolOf(to *endpoint) *h2pool {
	if to.protocol == HTTP1 || to.protocol == Auto && to.Scheme == "http" {
		return nil
	}
	key := poolKey{to.Scheme, to.Host, to.protocol}
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.h2Pools[key]
	if s == nil { // an endpoint of a later configuration gets a pool, too
		s = newH2Pool(to, p.dialers[to.protocol], p.config.DialTimeout, &p.idleConns)
		s.retired = p.retired
		p.h2Pools[key] = s
	}
	return s
}

// A poolKey identifies a pool.
type poolKey struct {
	scheme, host string
	protocol     Protocol
}

func newH2Pool(to *endpoint, by *dialer, doubt time.Duration, all *idleConns) *h2pool {
	port := to.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[to.Scheme]
	}
	return &h2pool{scheme: to.Scheme, address: net.JoinHostPort(to.Hostname(), port), dialer: by, mayChooseHTTP1: to.protocol == Auto, maxSilence: doubt, idleTotal: all,
		pending: make(map[connUse]*pendingConn)}
}

// roundTripH2 sends a request over HTTP/2. If nothing of it was sent, it is sent over another
// connection. If a connection that was used before ends, and the request may be repeated, it is
// sent once more. That is not a failure of the endpoint.
func (p *Proxy) roundTripH2(s *h2pool, out *http.Request, e h2Request) (*http.Response, error) {
	var after time.Time
	for n := 0; ; n++ {
		t, err := p.acquireH2(out.Context(), s, e.body, after)
		if err != nil {
			return nil, err
		}
		e.upstream.setHTTP2()
		wasUsed := t.hasAnswered.Load()
		res, sent, err := t.roundTrip(out, e)
		code, _ := streamResetCode(err)
		connEnded := t.ended.Load()
		switch {
		case err == nil:
			return res, nil
		case out.Context().Err() != nil:
			return nil, err
		case isHeaderTooLarge(err): // the header or the trailer
			return nil, errHeaderTooLarge
		case !sent && isUnsendable(err):
			return nil, fmt.Errorf("%w: %w", errUnsendable, err)
		case code == http2.ErrCodeHTTP11Required && s.mayChooseHTTP1:
			if s.assumeHTTP1(); e.canRepeat() {
				return nil, errHTTP1Chosen
			}
			return nil, err
		case !wasUsed || n >= maxResends:
		case !sent, after.IsZero() && (connEnded || isGoAway(err)) && e.canRepeat():
			after = time.Now()
			continue
		case isGoAway(err) && !e.canRepeat():
			return nil, errConnWentAway
		}
		if code == http2.ErrCodeRefusedStream || isGoAway(err) {
			return nil, errStreamRefused
		}
		return nil, err
	}
}

// acquireH2 reserves a stream, and room for the body, on a connection that was created after a time.
func (p *Proxy) acquireH2(ctx context.Context, s *h2pool, body bodyToSend, after time.Time) (*h2conn, error) {
	for m := (*pendingConn)(nil); ; {
		t, next, err := p.reserveH2(s, body, after, m)
		if t != nil || err != nil {
			return t, err
		}
		m = next
		select {
		case <-m.done:
			err = m.err
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
		if err != nil {
			s.stopWaiting(m)
			return nil, err
		}
	}
}

// reserveH2 reserves a stream, or returns the connection that is being opened. If the caller has
// waited for a connection without requests that takes none, errConnEndsAtOnce is returned.
func (p *Proxy) reserveH2(s *h2pool, body bodyToSend, after time.Time, waited *pendingConn) (*h2conn, *pendingConn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if waited != nil {
		s.waiters--
		waited.waiters--
	}
	if time.Now().Before(s.http1Until) {
		return nil, nil, errHTTP1Chosen
	}
	for _, t := range s.conns {
		t.isRetiring = t.isRetiring || !t.hasReceiveWindow()
		if t.isRetiring || t.requests >= MaxStreams || t.createdAt.Before(after) || t.ended.Load() || !t.mayCarry(body) || !t.conn.ReserveNewRequest() {
			continue
		}
		if t.requests++; t.requests == 1 {
			s.idleTotal.Add(-1)
		}
		if body.exists {
			t.bodies.Begin(body.flow, body.length)
		}
		return t, nil, nil
	}
	if waited != nil && waited.conn.requests == 0 && !waited.conn.hasAnswered.Load() && waited.conn.abortedAt.IsZero() && waited.conn.mayCarry(body) {
		return nil, nil, errConnEndsAtOnce
	}
	use := s.useFor(body, waited != nil)
	pending := s.pending[use]
	if pending == nil {
		pending = &pendingConn{use: use, done: make(chan struct{})}
		s.pending[use] = pending
		go p.connectH2(s, pending)
	}
	s.waiters++
	pending.waiters++
	return nil, pending, nil
}

// useFor returns for what a connection is opened for which a request waits. One with a body waits first with all
// others, if the body is small or nothing is known of the endpoint, and else for a connection of its flow.
func (s *h2pool) useFor(body bodyToSend, hasWaited bool) connUse {
	if !body.exists || !hasWaited && (share.IsSmall(body.length) || len(s.conns) == 0) {
		return connUse{}
	}
	return connUse{ofFlow: true, flow: body.flow}
}

// mayCarry reports whether a body may be sent on a connection without a wait for bodies of others, nor they for
// it. Requests without a body may always be sent. The caller holds pool.mu.
func (t *h2conn) mayCarry(body bodyToSend) bool {
	if !body.exists {
		return true
	}
	if t.dial.waiters > 0 && t.dial.use.ofFlow && t.dial.use.flow != body.flow { // others wait for it
		return false
	}
	return t.bodies.Fits(body.flow, body.length, t.conn.sendWindow())
}

// isWindowShut reports whether the endpoint has not opened the window again although the bodies have ended: it
// will not. The caller holds pool.mu.
func (t *h2conn) isWindowShut(patience time.Duration) bool {
	return t.bodies.InProgress() == 0 && t.conn.sendWindow() < share.MinWindow && time.Since(t.bodyEnded) >= patience
}

// hasReceiveWindow reports whether the window for responses suffices for one more request. Each request in
// progress can take one streamWindow from now on. So can an aborted one: golang.org/x/net may still store its
// data, and never opens the window for that. See
// specs/decisions/0075-size-the-receive-window-for-aborted-requests.md. The caller holds pool.mu.
func (t *h2conn) hasReceiveWindow() bool {
	return t.conn.receiveWindow() >= int64(t.requests+t.aborted+1)*streamWindow
}

// stopWaiting removes a request that does not wait any more.
func (s *h2pool) stopWaiting(m *pendingConn) {
	s.mu.Lock()
	s.waiters--
	m.waiters--
	unused := s.removeUnused()
	s.mu.Unlock()
	closeAll(unused)
}

// connectH2 opens a connection.
func (p *Proxy) connectH2(s *h2pool, m *pendingConn) {
	conn, err := s.connect(context.Background())
	if err == nil && conn == nil {
		if err = errNotHTTP2; s.mayChooseHTTP1 { // further requests use HTTP/1.1 over other connections
			err = errHTTP1Chosen
			s.assumeHTTP1()
		}
	}
	s.mu.Lock()
	if err == nil {
		m.conn = &h2conn{conn: conn, pool: s, dial: m, createdAt: time.Now()}
		s.conns = append(s.conns, m.conn)
		s.markIdle(m.conn)
	}
	delete(s.pending, m.use)
	m.err = err
	unused := s.removeUnused()
	s.mu.Unlock()
	close(m.done)
	closeAll(unused)
}

// connect opens a connection. It returns nil if it does not use HTTP/2.
func (s *h2pool) connect(ctx context.Context) (*h2ClientConn, error) {
	return s.dialer.connect(ctx, s.scheme, s.address)
}

// assumeHTTP1 records that the endpoint has chosen HTTP/1.1.
func (s *h2pool) assumeHTTP1() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.http1Until = time.Now().Add(http1AssumedFor)
}

// release ends a request of a connection, and its body. givenUp: the request was reset without a response, mostly
// by timeout or disconnection. cut: it ended by timeout or disconnection, or the response was not read to its end.
func (s *h2pool) release(t *h2conn, body bodyToSend, givenUp, cut bool) {
	s.mu.Lock()
	if body.exists {
		t.bodies.End(body.length)
		t.bodyEnded = time.Now()
	}
	if cut {
		t.abortedAt = time.Now()
	}
	if givenUp {
		t.aborted++
		t.isRetiring = t.isRetiring || t.aborted >= maxAbortedRequests || t.isDoubtful(s.maxSilence)
	}
	var unused []*h2conn
	if t.requests--; t.requests == 0 {
		s.markIdle(t)
		unused = s.removeUnused()
	}
	s.mu.Unlock()
	closeAll(unused)
}

// markIdle keeps a connection without requests for the next one.
func (s *h2pool) markIdle(t *h2conn) {
	t.idleSince = time.Now()
	s.idleTotal.Add(1)
	if s.sweep == nil {
		s.sweep = time.AfterFunc(idleConnTimeout, s.closeExpired)
	}
}

// removeUnused removes connections without requests that take no more, have ended, were idle for
// too long, or exceed the limits. A connection that is full because the endpoint has not
// confirmed aborted requests, or has not opened the window again, is kept as long as opening a
// new one may take.
func (s *h2pool) removeUnused() (unused []*h2conn) {
	kept := 0
	s.conns = slices.DeleteFunc(s.conns, func(t *h2conn) bool {
		if t.requests > 0 {
			return false
		}
		kept++
		fits := kept <= maxIdlePerEndpoint && !s.idleTotal.isOver() && !s.retired && time.Since(t.idleSince) < idleConnTimeout
		if !t.isRetiring && !t.ended.Load() && !t.isWindowShut(s.maxSilence) && (t.conn.CanTakeNewRequest() || time.Since(t.abortedAt) < s.maxSilence) && (fits || s.waiters > 0) {
			return false
		}
		s.idleTotal.Add(-1)
		unused = append(unused, t)
		return true
	})
	return unused
}

// closeAll closes connections, which may block for a moment.
func closeAll(unused []*h2conn) {
	for _, t := range unused {
		_ = t.conn.Close() // its error changes nothing
	}
}

// closeExpired closes connections that were idle for too long. It runs again while any is left.
func (s *h2pool) closeExpired() {
	s.mu.Lock()
	unused := s.removeUnused()
	s.sweep = nil
	if len(s.conns) > 0 {
		s.sweep = time.AfterFunc(idleConnTimeout, s.closeExpired)
	}
	s.mu.Unlock()
	closeAll(unused)
}

// retire closes the connections without requests, and the others after their last request.
func (s *h2pool) retire() {
	s.mu.Lock()
	s.retired = true
	unused := s.removeUnused()
	s.mu.Unlock()
	closeAll(unused)
}
