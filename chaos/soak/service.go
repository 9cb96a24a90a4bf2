// Package soak lets the real binary live for long, under everything at once: money that is
// certified, a gateway before a service that has moods, clients that give up, pour, sip and
// tunnel, changes of its configuration, drains and kills. It is held to what does not show
// in a short life: nothing grows, nothing is lost, nothing stays taken.
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

// A Mood is how a service answers.
type Mood uint32

// The moods. Well is the most common.
const (
	Well  Mood = iota
	Slow       // it takes its time
	Hangs      // it does not answer
	Cuts       // it breaks off in the middle of an answer
	Gone       // it ends the connection
	Turns      // it says that it is too busy
	Moods
)

// A Service stands behind the gateway.
type Service struct {
	*httptest.Server
	mood atomic.Uint32
}

// NewService is well.
func NewService() *Service {
	s := &Service{}
	s.Server = httptest.NewServer(http.HandlerFunc(s.answer))
	return s
}

// Feel changes its mood.
func (s *Service) Feel(m Mood) { s.mood.Store(uint32(m)) }

// chunk is what bodies are made of.
var chunk = strings.Repeat("macronode", 1024)

func (s *Service) answer(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Upgrade") == "echo" {
		s.echo(w)
		return
	}
	_, _ = io.Copy(io.Discard, r.Body) // of who gives up there is no end
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

// pause waits, no longer than who asked.
func pause(r *http.Request, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-r.Context().Done():
	}
}

// echo says everything again, until the other end has nothing to say.
func (s *Service) echo(w http.ResponseWriter) {
	conn, with, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	_, _ = io.Copy(conn, bufio.NewReader(with))
}
