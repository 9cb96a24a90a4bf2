package proxy

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Connections to endpoints that have no request are kept, so many at most (a few more where
// many requests end at once). LineBytes is what one takes in memory, with a request or without.
const (
	Kept      = 1024
	LineBytes = inSize + outMost + 4<<10
)

const (
	keptEach = 256              // to one
	keptFor  = 30 * time.Second // at most twice that, where nobody asks any more
	inSize   = 20 << 10         // what is read at once: most answers, with their header
)

// lines are the connections to one endpoint that are kept for the next request, the one
// that was used last at the end.
type lines struct {
	address string
	dial    func(ctx context.Context, network, address string) (net.Conn, error)
	all     *atomic.Int64 // kept, to all endpoints

	mu    sync.Mutex // nothing blocks under it
	kept  []*line
	sweep *time.Timer // closes those that nobody took; nil: none is kept
	over  bool        // none is kept any more
}

// newLines is of an endpoint of http.
func newLines(to *url.URL, dial func(ctx context.Context, network, address string) (net.Conn, error), all *atomic.Int64) *lines {
	port := to.Port()
	if port == "" {
		port = "80"
	}
	return &lines{address: net.JoinHostPort(to.Hostname(), port), dial: dial, all: all}
}

// take is a kept line that its endpoint has not ended, or else a new one.
func (s *lines) take(ctx context.Context) (*line, error) {
	for {
		l := s.pop()
		if l == nil {
			return s.open(ctx)
		}
		if time.Since(l.since) < keptFor && l.quiet() {
			return l, nil
		}
		l.close()
	}
}

// open is a new line.
func (s *lines) open(ctx context.Context) (*line, error) {
	conn, err := s.dial(ctx, "tcp", s.address)
	if err != nil {
		return nil, err
	}
	l := &line{conn: conn, of: s, header: make(http.Header)}
	l.in = bufio.NewReaderSize(l, inSize)
	if c, ok := conn.(syscall.Conn); ok {
		l.raw, _ = c.SyscallConn() // without it nothing is known before it is asked
	}
	l.look = func(fd uintptr) bool {
		var one [1]byte
		_, _, err := syscall.Recvfrom(int(fd), one[:], syscall.MSG_PEEK)
		l.silent = err == syscall.EAGAIN
		return true
	}
	return l, nil
}

func (s *lines) pop() *line {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.kept)
	if n == 0 {
		return nil
	}
	l := s.kept[n-1]
	s.kept[n-1] = nil
	s.kept = s.kept[:n-1]
	s.all.Add(-1)
	return l
}

// put keeps a line for the next request, or closes it.
func (s *lines) put(l *line) {
	if !s.keep(l) {
		l.close()
	}
}

func (s *lines) keep(l *line) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over || len(s.kept) >= keptEach || s.all.Load() >= Kept {
		return false
	}
	s.all.Add(1)
	l.used, l.since = true, time.Now()
	s.kept = append(s.kept, l)
	if s.sweep == nil {
		s.sweep = time.AfterFunc(keptFor, s.tidy)
	}
	return true
}

// tidy closes what nobody took for long, and comes again while any is left.
func (s *lines) tidy() {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := 0
	for old < len(s.kept) && time.Since(s.kept[old].since) >= keptFor {
		s.kept[old].close()
		old++
	}
	s.all.Add(-int64(old))
	s.kept = append(s.kept[:0], s.kept[old:]...)
	s.sweep = nil
	if len(s.kept) > 0 {
		s.sweep = time.AfterFunc(keptFor, s.tidy)
	}
}

// end closes all that are kept, and keeps none any more.
func (s *lines) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	for _, l := range s.kept {
		l.close()
	}
	s.all.Add(-int64(len(s.kept)))
	s.kept = nil
	if s.sweep != nil {
		s.sweep.Stop()
	}
}
