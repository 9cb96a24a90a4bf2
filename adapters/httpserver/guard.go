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

// A guard follows the framing of what a server reads of a connection of HTTP/1. The server
// reads on undisturbed; the request in which something is wrong is refused when it comes to
// its handler, and so is all that a reader might find behind it.
type guard struct {
	net.Conn
	framing framing       // of who reads, which is one at a time
	wrong   atomic.Uint64 // the request that is to be refused; 0: none
	why     error         // set before wrong
	served  uint64        // requests that came to the handler, one at a time
}

func (g *guard) guards() *guard { return g }

func (g *guard) Read(b []byte) (int, error) {
	n, err := g.Conn.Read(b)
	if n > 0 && !g.spoilt() {
		take := g.framing.follow(b[:n])
		if g.framing.at == nowhere {
			g.why = g.framing.wrong
			g.wrong.Store(g.framing.requests)
		}
		if take < n {
			return take, g.why
		}
	}
	return n, err
}

func (g *guard) spoilt() bool { return g.wrong.Load() > 0 }

// refuses says why a request is not served, by its number.
func (g *guard) refuses(request uint64) error {
	if wrong := g.wrong.Load(); wrong > 0 && request >= wrong {
		return g.why
	}
	return nil
}

// CloseWrite lets an answer to a body that was not read be read by its client.
func (g *guard) CloseWrite() error {
	if half, ok := g.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// SetLinger passes on how a connection is to end.
func (g *guard) SetLinger(sec int) error {
	if l, ok := g.Conn.(interface{ SetLinger(int) error }); ok {
		return l.SetLinger(sec)
	}
	return nil
}

// sealed is a connection of HTTP/1 within TLS.
type sealed struct {
	guard
	tls   *tls.Conn
	below *conn
	reset atomic.Bool
}

func seal(t *tls.Conn, below *conn) *sealed {
	s := &sealed{guard: guard{Conn: t}, tls: t, below: below}
	below.waits.Store(true)
	return s
}

// ConnectionState is what each request of the connection says of TLS.
func (s *sealed) ConnectionState() tls.ConnectionState { return s.tls.ConnectionState() }

func (s *sealed) Read(b []byte) (int, error) {
	n, err := s.guard.Read(b)
	if n > 0 {
		s.below.speaks()
	}
	return n, err
}

// SetLinger(0) has a connection end without the word that all was said.
func (s *sealed) SetLinger(sec int) error {
	s.reset.Store(sec == 0)
	return s.below.SetLinger(sec)
}

func (s *sealed) Close() error {
	if s.reset.Load() {
		return s.below.Close()
	}
	return s.tls.Close()
}

type guardKey struct{}

type connKey struct{}

// Keyed notes that a request had a valid API key: when room is made for a new connection, its
// connection gives way after those that never had such a request.
func Keyed(request context.Context) {
	if c, ok := request.Value(connKey{}).(*conn); ok && !c.keyed.Load() {
		c.keyed.Store(true)
	}
}

// below returns the connection of the listener under the one that net/http serves, or nil.
func below(c net.Conn) *conn {
	switch c := c.(type) {
	case *tls.Conn: // of HTTP/2
		under, _ := c.NetConn().(*conn)
		return under
	case *sealed:
		return c.below
	case *guard:
		under, _ := c.Conn.(*conn)
		return under
	}
	return nil
}

// guarded lets a handler find its connection, and the guard of it.
func guarded(ctx context.Context, c net.Conn) context.Context {
	if under := below(c); under != nil {
		ctx = context.WithValue(ctx, connKey{}, under)
	}
	if g, ok := c.(interface{ guards() *guard }); ok {
		return context.WithValue(ctx, guardKey{}, g.guards())
	}
	return ctx
}

// admit counts a request of HTTP/1, and says why one is not to be served. The body of one
// that is has an end only if nothing is wrong with it.
func admit(r *http.Request) error {
	g, ok := r.Context().Value(guardKey{}).(*guard)
	if !ok {
		return agrees(r)
	}
	g.served++
	if why := g.refuses(g.served); why != nil {
		return why
	}
	if r.ContentLength < 0 {
		r.Body = &followed{r.Body, g, g.served}
	}
	return nil
}

// agrees says why a request of HTTP/2 is not to be served. Its frames say where it ends, and
// its fields may say it otherwise, to whoever is sent them: net/http takes the first of several
// lengths, none for one that is no number, and any where the header is the end.
func agrees(r *http.Request) error {
	lengths, hosts := r.Header["Content-Length"], r.Header["Host"]
	switch {
	case len(r.Header) > mostFields, len(r.Trailer) > mostFields:
		return errFields
	case len(lengths) > 1:
		return errTwice
	case len(hosts) > 1 || len(hosts) == 1 && hosts[0] != r.Host:
		return errHost
	case len(lengths) == 0:
		return nil
	}
	n, err := strconv.ParseUint(lengths[0], 10, 63)
	switch {
	case err != nil || len(lengths[0]) > mostDigits:
		return errLength
	case int64(n) != r.ContentLength:
		return errShort
	case n == 0 && !endsEmpty(r.Body):
		return errLong
	}
	return nil
}

// endsEmpty reads a body whose length is declared to be 0, and reports whether it ends without
// data. A client of HTTP/2 may end the body in a later frame; the server's read timeout bounds
// how long this waits.
func endsEmpty(body io.Reader) bool {
	var one [1]byte
	n, err := body.Read(one[:])
	return n == 0 && errors.Is(err, io.EOF)
}

// followed is a body in chunks.
type followed struct {
	io.ReadCloser
	of      *guard
	request uint64
}

func (f *followed) Read(b []byte) (int, error) {
	n, err := f.ReadCloser.Read(b)
	if why := f.of.refuses(f.request); why != nil {
		return 0, why
	}
	return n, err
}
