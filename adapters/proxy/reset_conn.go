package proxy

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
)

// A resetConn is a connection to an endpoint on which the reader, not the writer, ends an
// exchange. An endpoint may answer before it has read the request and then reset the connection.
// The response is still readable, but HTTP clients close a connection after a failed write. So a
// write after a reset does not fail, and the reader gets the received data first, then the reset.
type resetConn struct {
	net.Conn
	discards bool // a write after a reset succeeds: for HTTP/2, whose reader writes as well
	lost     atomic.Bool

	closing sync.Once
	closed  chan struct{}

	mu    sync.Mutex // serialises writes to the socket
	reset error      // met by a write before the reader has reached the end
}

func newResetConn(conn net.Conn, discards bool) *resetConn {
	return &resetConn{Conn: conn, discards: discards, closed: make(chan struct{})}
}

// dialFunc opens a connection.
type dialFunc = func(ctx context.Context, network, address string) (net.Conn, error)

// withResetConn returns a dial function for HTTP/1.1: a write after a reset blocks.
func withResetConn(dial dialFunc) dialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return newResetConn(conn, false), nil
	}
}

// Write blocks after a reset until Close, or discards the data. The reader gets the reset too and
// closes the connection.
func (c *resetConn) Write(p []byte) (int, error) {
	n, err := c.write(p)
	if !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.EPIPE) {
		return n, err
	}
	c.lost.Store(true)
	if c.discards {
		return len(p), nil
	}
	<-c.closed
	return n, err
}

func (c *resetConn) write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, err := c.Conn.Write(p)
	if errors.Is(err, syscall.ECONNRESET) {
		c.reset = err
	}
	return n, err
}

// Read returns a reset that a write has met. The system reports a reset once, and end of input
// from then on. A regular end of input stays one, because a later write meets EPIPE.
func (c *resetConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if errors.Is(err, io.EOF) && c.isReset() {
		c.mu.Lock() // waits for a write that has just met it; writes do not block on a reset connection
		defer c.mu.Unlock()
		if c.reset != nil {
			err = c.reset
		}
	}
	return n, err
}

// isReset reports whether the socket is not connected any more.
func (c *resetConn) isReset() bool {
	socket, ok := c.Conn.(syscall.Conn)
	if !ok {
		return true
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return true
	}
	closed := raw.Control(func(fd uintptr) { _, err = syscall.Getpeername(int(fd)) })
	return closed != nil || err != nil
}

// CloseWrite closes the sending side, if the connection supports it.
func (c *resetConn) CloseWrite() error {
	half, ok := c.Conn.(interface{ CloseWrite() error })
	if !ok {
		return errors.ErrUnsupported
	}
	return half.CloseWrite()
}

// Close closes the connection and unblocks Write.
func (c *resetConn) Close() error {
	c.closing.Do(func() { close(c.closed) })
	return c.Conn.Close()
}
