package httpserver

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// plainListener accepts connections without TLS.
type plainListener struct{ *listener }

func (d plainListener) Accept() (net.Conn, error) {
	c, err := d.take()
	if err != nil {
		return nil, err
	}
	return &guard{Conn: c}, nil
}

// handshakeTimeout limits the time of a TLS handshake.
const handshakeTimeout = 2 * time.Second

// tlsListener accepts connections after their TLS handshake: HTTP/2 connections as they are,
// HTTP/1 connections with a guard that sees their plain text. Handshakes run concurrently, one
// for each connection.
type tlsListener struct {
	*listener
	config   *tls.Config
	patience time.Duration // timeout of a handshake
	done     func(HandshakeResult)
	ready    chan arrival
	over     chan struct{} // closed when no more connections are accepted
}

type arrival struct {
	conn net.Conn
	err  error
}

// A HandshakeResult is the result of a TLS handshake.
type HandshakeResult uint8

// Results of a handshake.
const (
	HandshakeCompleted HandshakeResult = iota
	HandshakeTimeout                   // timeout
	HandshakeFailed                    // client and server did not agree, or the client closed the connection
	NumHandshakeResults
)

func (g HandshakeResult) String() string {
	return [NumHandshakeResults]string{"done", "timeout", "failed"}[g]
}

func secure(l *listener, config *tls.Config, patience time.Duration, done func(HandshakeResult)) *tlsListener {
	return &tlsListener{listener: l, config: config, patience: min(patience, handshakeTimeout), done: done,
		ready: make(chan arrival), over: make(chan struct{})}
}

// Accept returns the next connection whose handshake is complete, also during a shutdown.
func (s *tlsListener) Accept() (net.Conn, error) {
	select {
	case a := <-s.ready:
		return a.conn, a.err
	case <-s.over:
		return nil, net.ErrClosed
	}
}

// Run accepts connections until the listener is closed, and performs their handshakes. It returns when all
// handshakes have ended. The end of ctx aborts them.
func (s *tlsListener) Run(ctx context.Context) error {
	defer close(s.over)
	var hands sync.WaitGroup
	defer hands.Wait()
	for {
		c, err := s.take()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			s.give(ctx, arrival{err: err})
			if ctx.Err() != nil {
				return nil
			}
			continue
		}
		hands.Go(func() { s.handshake(ctx, c) })
	}
}

// give passes a to Accept. It returns false if ctx ends first.
func (s *tlsListener) give(ctx context.Context, a arrival) bool {
	select {
	case s.ready <- a:
		return true
	case <-ctx.Done():
		return false
	}
}

// handshake performs the handshake of one connection.
func (s *tlsListener) handshake(ctx context.Context, c *conn) {
	c.isTLS = true
	c.awaitsHeader.Store(false) // it may become an HTTP/2 connection
	c.awaitStart(ctx.Done())
	t := tls.Server(c, s.config)
	limited, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	err := t.HandshakeContext(limited)
	if s.done != nil && ctx.Err() == nil {
		s.done(greeting(err, limited.Err()))
	}
	if err != nil {
		explain(err)
		c.of.takeCredit(c)
		_ = c.Close()
		return
	}
	a := arrival{conn: t}
	if t.ConnectionState().NegotiatedProtocol == "h2" {
		c.hadRequest.Store(true)
		c.noteReceived() // an HTTP/2 client sends its preface at once, and net/http accepts no wrapped tls.Conn
		c.idle.Store(true)
	} else {
		a.conn = seal(t, c)
	}
	if !s.give(ctx, a) {
		_ = c.Close()
	}
}

func greeting(err, limit error) HandshakeResult {
	switch {
	case err == nil:
		return HandshakeCompleted
	case limit != nil:
		return HandshakeTimeout
	}
	return HandshakeFailed
}

// explain answers a plain HTTP request on a TLS listener.
func explain(err error) {
	var is tls.RecordHeaderError
	if errors.As(err, &is) && is.Conn != nil {
		switch string(is.RecordHeader[:]) {
		case "GET /", "HEAD ", "POST ", "PUT /", "OPTIO", "DELET", "PATCH":
			_, _ = io.WriteString(is.Conn, "HTTP/1.0 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n400 Bad Request: this is a listener of https\n")
		}
	}
}
