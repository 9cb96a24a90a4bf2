package httpserver

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
)

// A guard follows the framing of what a server reads from an HTTP/1 connection. The server reads
// on undisturbed. The invalid request is rejected when it reaches its handler, and so is
// everything after it.
type guard struct {
	net.Conn
	framing  framing       // used by the reader only
	rejected atomic.Uint64 // number of the request to reject; 0: none
	reason   error         // set before rejected
	served   uint64        // requests that reached the handler
}

func (g *guard) guards() *guard { return g }

func (g *guard) Read(b []byte) (int, error) {
	n, err := g.Conn.Read(b)
	if n > 0 && !g.spoilt() {
		take := g.framing.follow(b[:n])
		if g.framing.state == stopped {
			g.reason = g.framing.failure
			g.rejected.Store(g.framing.requests)
		}
		if take < n {
			return take, g.reason
		}
	}
	return n, err
}

func (g *guard) spoilt() bool { return g.rejected.Load() > 0 }

// rejectReason returns why the request with that number is rejected, or nil.
func (g *guard) rejectReason(request uint64) error {
	if wrong := g.rejected.Load(); wrong > 0 && request >= wrong {
		return g.reason
	}
	return nil
}

// CloseWrite closes the sending side, so that a client can read a response although its body was
// not read.
func (g *guard) CloseWrite() error {
	if half, ok := g.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// SetLinger sets how the connection closes.
func (g *guard) SetLinger(sec int) error {
	if l, ok := g.Conn.(interface{ SetLinger(int) error }); ok {
		return l.SetLinger(sec)
	}
	return nil
}

// tlsConn is an HTTP/1 connection with TLS.
type tlsConn struct {
	guard
	tls   *tls.Conn
	below *conn
	reset atomic.Bool
}

func seal(t *tls.Conn, below *conn) *tlsConn {
	s := &tlsConn{guard: guard{Conn: t}, tls: t, below: below}
	below.awaitsHeader.Store(true)
	return s
}

// ConnectionState returns the TLS state for each request of the connection.
func (s *tlsConn) ConnectionState() tls.ConnectionState { return s.tls.ConnectionState() }

func (s *tlsConn) Read(b []byte) (int, error) {
	n, err := s.guard.Read(b)
	if n > 0 {
		s.below.noteReceived()
	}
	return n, err
}

// SetLinger with 0 closes the connection without close_notify.
func (s *tlsConn) SetLinger(sec int) error {
	s.reset.Store(sec == 0)
	return s.below.SetLinger(sec)
}

func (s *tlsConn) Close() error {
	if s.reset.Load() {
		return s.below.Close()
	}
	return s.tls.Close()
}

type guardKey struct{}

type connKey struct{}

// MarkAuthenticated records that a request had a valid credential: when a connection must be
// closed for a new one, those without such a request are closed first.
func MarkAuthenticated(request context.Context) {
	if c, ok := request.Value(connKey{}).(*conn); ok && !c.isAuthenticated.Load() {
		c.isAuthenticated.Store(true)
		c.of.keep(c)
	}
}

// isHTTP2 reports whether net/http serves HTTP/2 on a connection.
func isHTTP2(c net.Conn) bool {
	switch c.(type) {
	case *tls.Conn, *frameGuard:
		return true
	}
	return false
}

// below returns the connection of the listener under the one that net/http serves, or nil.
func below(c net.Conn) *conn {
	switch c := c.(type) {
	case *tls.Conn: // with HTTP/2
		under, _ := c.NetConn().(*conn)
		return under
	case *frameGuard:
		return below(c.Conn)
	case *tlsConn:
		return c.below
	case *guard:
		under, _ := c.Conn.(*conn)
		return under
	}
	return nil
}

// guarded lets a handler find its connection and the guard.
func guarded(ctx context.Context, c net.Conn) context.Context {
	if under := below(c); under != nil {
		ctx = context.WithValue(ctx, connKey{}, under)
	}
	if g, ok := c.(interface{ guards() *guard }); ok {
		return context.WithValue(ctx, guardKey{}, g.guards())
	}
	return ctx
}

// admit counts an HTTP/1 request and returns why it is rejected, or nil. The body of an accepted
// request ends only if its framing is valid.
func admit(r *http.Request) error {
	g, ok := r.Context().Value(guardKey{}).(*guard)
	if !ok {
		return checkH2Framing(r)
	}
	g.served++
	if why := g.rejectReason(g.served); why != nil {
		return why
	}
	if r.ContentLength < 0 {
		r.Body = &chunkedBody{r.Body, g, g.served}
	}
	return nil
}

// checkH2Framing returns why an HTTP/2 request is rejected, or nil. Its frames determine its end,
// and its fields may contradict them when they are forwarded: net/http takes the first of several
// lengths, ignores an invalid one, and accepts any if the header ends the stream. It removes an Expect with
// 100-continue, which it handles.
func checkH2Framing(r *http.Request) error {
	lengths, hosts := r.Header["Content-Length"], r.Header["Host"]
	switch {
	case len(r.Header) > maxFields, len(r.Trailer) > maxFields:
		return errFields
	case len(lengths) > 1:
		return errTwice
	case len(hosts) > 1 || len(hosts) == 1 && hosts[0] != r.Host:
		return errHost
	case r.Header.Get("Expect") != "":
		return errExpect
	case len(lengths) == 0:
		return nil
	}
	n, err := strconv.ParseUint(lengths[0], 10, 63)
	switch {
	case err != nil || len(lengths[0]) > maxLengthDigits:
		return errLength
	case int64(n) != r.ContentLength:
		return errShort
	case n == 0 && !isEmptyBody(r.Body):
		return errLong
	}
	return nil
}

// isEmptyBody reads a body whose length is declared to be 0, and reports whether it ends without
// data. A client of HTTP/2 may end the body in a later frame; the server's read timeout bounds
// how long this waits.
func isEmptyBody(body io.Reader) bool {
	var one [1]byte
	n, err := body.Read(one[:])
	return n == 0 && errors.Is(err, io.EOF)
}

// chunkedBody is a body in chunks.
type chunkedBody struct {
	io.ReadCloser
	of      *guard
	request uint64
}

func (f *chunkedBody) Read(b []byte) (int, error) {
	n, err := f.ReadCloser.Read(b)
	if why := f.of.rejectReason(f.request); why != nil {
		return 0, why
	}
	return n, err
}
