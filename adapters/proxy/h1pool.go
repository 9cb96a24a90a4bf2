package proxy

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"net/url"
	"sync"
	"syscall"
	"time"
)

// MaxIdleConns is the limit of idle connections to all endpoints. It may be exceeded by a few if
// many requests end at once. H1ConnBytes is the memory of a connection, idle or in use.
const (
	MaxIdleConns = 1024
	H1ConnBytes  = readBufferSize + maxKeptRequestBytes + 4<<10
)

const (
	maxIdlePerEndpoint = 256              // to one endpoint
	idleConnTimeout    = 30 * time.Second // a connection may be idle for up to twice as long
	readBufferSize     = 20 << 10         // most responses with their header fit
)

// h1pool holds the idle connections to one endpoint. The most recently used one is the last.
type h1pool struct {
	address   string
	dial      func(ctx context.Context, network, address string) (net.Conn, error)
	idleTotal *idleConns // idle connections to all endpoints

	mu      sync.Mutex // never held over I/O
	idle    []*h1conn
	sweep   *time.Timer // closes expired connections; nil: none is idle
	retired bool        // connections are not kept any more
}

// newH1Pool returns a pool for an endpoint with the scheme http.
func newH1Pool(to *url.URL, dial func(ctx context.Context, network, address string) (net.Conn, error), all *idleConns) *h1pool {
	port := to.Port()
	if port == "" {
		port = "80"
	}
	return &h1pool{address: net.JoinHostPort(to.Hostname(), port), dial: dial, idleTotal: all}
}

// get returns an idle connection that is usable, or a new one.
func (s *h1pool) get(ctx context.Context) (*h1conn, error) {
	for {
		l := s.pop()
		if l == nil {
			return s.dialNew(ctx)
		}
		if time.Since(l.idleSince) < idleConnTimeout && l.isUsable() {
			return l, nil
		}
		l.close()
	}
}

// dialNew opens a connection.
func (s *h1pool) dialNew(ctx context.Context) (*h1conn, error) {
	conn, err := s.dial(ctx, "tcp", s.address)
	if err != nil {
		return nil, err
	}
	l := &h1conn{conn: conn, pool: s, header: make(http.Header)}
	l.reader = bufio.NewReaderSize(l, readBufferSize)
	if c, ok := conn.(syscall.Conn); ok {
		l.raw, _ = c.SyscallConn() // without it, a closed connection is found only by a request
	}
	l.peek = func(fd uintptr) bool {
		var one [1]byte
		_, _, err := syscall.Recvfrom(int(fd), one[:], syscall.MSG_PEEK)
		l.isSilent = err == syscall.EAGAIN
		return true
	}
	return l, nil
}

func (s *h1pool) pop() *h1conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.idle)
	if n == 0 {
		return nil
	}
	l := s.idle[n-1]
	s.idle[n-1] = nil
	s.idle = s.idle[:n-1]
	s.idleTotal.Add(-1)
	return l
}

// put returns a connection to the pool, or closes it.
func (s *h1pool) put(l *h1conn) {
	if !s.keep(l) {
		l.close()
	}
}

func (s *h1pool) keep(l *h1conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.retired || len(s.idle) >= maxIdlePerEndpoint || s.idleTotal.isFull() {
		return false
	}
	s.idleTotal.Add(1)
	l.isReused, l.idleSince = true, time.Now()
	s.idle = append(s.idle, l)
	if s.sweep == nil {
		s.sweep = time.AfterFunc(idleConnTimeout, s.closeExpired)
	}
	return true
}

// closeExpired closes connections that were idle for too long. It runs again while any is left.
func (s *h1pool) closeExpired() {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := 0
	for old < len(s.idle) && time.Since(s.idle[old].idleSince) >= idleConnTimeout {
		s.idle[old].close()
		old++
	}
	s.idleTotal.Add(-int64(old))
	s.idle = append(s.idle[:0], s.idle[old:]...)
	s.sweep = nil
	if len(s.idle) > 0 {
		s.sweep = time.AfterFunc(idleConnTimeout, s.closeExpired)
	}
}

// retire closes the idle connections. Later ones are closed instead of kept.
func (s *h1pool) retire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.retired = true
	for _, l := range s.idle {
		l.close()
	}
	s.idleTotal.Add(-int64(len(s.idle)))
	s.idle = nil
	if s.sweep != nil {
		s.sweep.Stop()
	}
}
