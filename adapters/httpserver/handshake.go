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

// direct gives out connections as they come.
type direct struct{ *listener }

func (d direct) Accept() (net.Conn, error) {
	c, err := d.take()
	if err != nil {
		return nil, err
	}
	return &guard{Conn: c}, nil
}

// shaking is how long a handshake may take at most.
const shaking = 2 * time.Second

// secured gives out connections that have shaken hands: those of HTTP/2 as they are, those
// of HTTP/1 with a guard, who must see what is said in them. Handshakes wait for nobody
// else's, and there are as many as connections.
type secured struct {
	*listener
	config   *tls.Config
	patience time.Duration // with a handshake
	done     func(Greeting)
	ready    chan arrival
	over     chan struct{} // nobody comes any more
}

type arrival struct {
	conn net.Conn
	err  error
}

// A Greeting is how a handshake ended.
type Greeting uint8

// How they end.
const (
	Greeted     Greeting = iota
	GreetedLate          // it was not over in time
	Ungreeted            // client and server did not agree, or the client left
	Greetings
)

func (g Greeting) String() string { return [Greetings]string{"done", "timeout", "failed"}[g] }

func secure(l *listener, config *tls.Config, patience time.Duration, done func(Greeting)) *secured {
	return &secured{listener: l, config: config, patience: min(patience, shaking), done: done,
		ready: make(chan arrival), over: make(chan struct{})}
}

// Accept is the next who has shaken hands. When the door is shut, those who have begun are
// still let in.
func (s *secured) Accept() (net.Conn, error) {
	select {
	case a := <-s.ready:
		return a.conn, a.err
	case <-s.over:
		return nil, net.ErrClosed
	}
}

// Run takes connections until the listener is closed, and shakes hands with each. It
// returns when all of that is over, which an end of ctx makes soon.
func (s *secured) Run(ctx context.Context) error {
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
		hands.Go(func() { s.shake(ctx, c) })
	}
}

// give waits for who takes it; false when nobody does.
func (s *secured) give(ctx context.Context, a arrival) bool {
	select {
	case s.ready <- a:
		return true
	case <-ctx.Done():
		return false
	}
}

// shake hands with one.
func (s *secured) shake(ctx context.Context, c *conn) {
	c.veiled = true
	c.waits.Store(false) // for a request: it may never be of HTTP/1
	t := tls.Server(c, s.config)
	limited, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	err := t.HandshakeContext(limited)
	if s.done != nil && ctx.Err() == nil {
		s.done(greeting(err, limited.Err()))
	}
	if err != nil {
		explain(err)
		_ = c.Close()
		return
	}
	a := arrival{conn: t}
	if t.ConnectionState().NegotiatedProtocol == "h2" {
		c.speaks() // who has greeted so speaks at once, and net/http takes no wrapped one
		c.idle.Store(true)
	} else {
		a.conn = seal(t, c)
	}
	if !s.give(ctx, a) {
		_ = c.Close()
	}
}

func greeting(err, limit error) Greeting {
	switch {
	case err == nil:
		return Greeted
	case limit != nil:
		return GreetedLate
	}
	return Ungreeted
}

// explain tells who speaks HTTP that TLS is spoken here.
func explain(err error) {
	var is tls.RecordHeaderError
	if errors.As(err, &is) && is.Conn != nil {
		switch string(is.RecordHeader[:]) {
		case "GET /", "HEAD ", "POST ", "PUT /", "OPTIO", "DELET", "PATCH":
			_, _ = io.WriteString(is.Conn, "HTTP/1.0 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n400 Bad Request: this is a listener of https\n")
		}
	}
}
