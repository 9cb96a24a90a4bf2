// Package soak runs the real binary for a long time under everything at once: a certified wallet, a gateway in
// front of an upstream with changing behaviour, clients that cancel, send slowly, read slowly and use tunnels,
// reloads, drains and kills. It checks what does not show in a short run: nothing grows, nothing is lost, no
// permit is leaked.
package soak

import (
	"bufio"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// A Mood is how an upstream responds.
type Mood uint32

// The moods. Well is the most frequent.
const (
	Well  Mood = iota
	Slow       // it takes its time
	Hangs      // it does not answer
	Cuts       // it breaks off in the middle of an answer
	Gone       // it ends the connection
	Turns      // it says that it is too busy
	Moods
)

// A Service is the upstream behind the gateway.
type Service struct {
	*httptest.Server
	mood atomic.Uint32
}

// NewService returns a service in the mood Well.
func NewService() *Service {
	s := &Service{}
	s.Server = httptest.NewServer(http.HandlerFunc(s.answer))
	return s
}

// SetMood changes the mood.
func (s *Service) SetMood(m Mood) { s.mood.Store(uint32(m)) }

// chunk is the repeated content of bodies.
var chunk = strings.Repeat("macronode", 1024)

func (s *Service) answer(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Upgrade") == "echo" {
		s.echo(w)
		return
	}
	_, _ = io.Copy(io.Discard, r.Body) // endless for a client that cancels
	switch Mood(s.mood.Load()) {
	case Slow:
		pause(r, 20*time.Millisecond)
	case Hangs:
		pause(r, time.Second)
	case Gone:
		panic(http.ErrAbortHandler)
	case Turns:
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	default: // it answers
	}
	n, _ := strconv.Atoi(r.URL.Query().Get("chunks"))
	w.Header().Set("Content-Length", strconv.Itoa(n*len(chunk)))
	for i := range n {
		if i > 0 && Mood(s.mood.Load()) == Cuts {
			panic(http.ErrAbortHandler)
		}
		if _, err := io.WriteString(w, chunk); err != nil {
			return
		}
	}
}

// pause waits, at most until the client disconnects.
func pause(r *http.Request, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-r.Context().Done():
	}
}

// echo sends everything back until the other end closes.
func (s *Service) echo(w http.ResponseWriter) {
	conn, with, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	_, _ = io.Copy(conn, bufio.NewReader(with))
}
