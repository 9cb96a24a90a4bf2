package proxy_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"macronode/adapters/proxy"
	"macronode/core/event"
)

// followed is a house that tells the course of each request.
func followed(t *testing.T, change func(*proxy.Config), to ...string) (*house, <-chan *proxy.Course) {
	h, courses := build(t, change, to...), make(chan *proxy.Course, 16)
	h.front.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m, _ := h.proxy.Match(r)
		c := new(proxy.Course)
		defer func() { courses <- c }()
		h.proxy.Serve(w, r, m, c)
	})
	return h, courses
}

// told is a leg in a line: each try, and why there was no other.
func told(l *proxy.Leg) string {
	var all []string
	for _, t := range l.Tries {
		one := fmt.Sprint(t.Ending, " ", string(t.Symptom), " ", t.Status)
		if t.Out {
			one += " out"
		}
		all = append(all, one)
	}
	return strings.Join(append(all, l.Halt.String()), ", ")
}

// TestCourses: however a request ends, its course tells it in a few words.
func TestCourses(t *testing.T) {
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	defer secure.Close()
	hangs := speaks(t, func(_ net.Conn, r *bufio.Reader) { _, _ = r.ReadByte() })
	soon := func(c *proxy.Config) { c.Deadline, c.Silence = 100*time.Millisecond, 100*time.Millisecond }
	for _, c := range []struct {
		what, to, want string
		change         func(*proxy.Config)
		header         []string
		method         string
	}{
		{"well", says(t, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"), "completed  200, ", nil, nil, "GET"},
		{"refused", refuses(t), "unsent connection_refused 0, unsent connection_refused 0, unsent connection_refused 0, max_attempts", nil, nil, "GET"},
		{"refused once", refuses(t), "unsent connection_refused 0, method_not_idempotent", nil, nil, "POST"},
		{"no such name", "http://nowhere.invalid", "unsent dns_error 0, method_not_idempotent", nil, nil, "POST"},
		{"not trusted", secure.URL, "failed tls_error 0, method_not_idempotent", nil, nil, "POST"},
		{"no TLS", strings.Replace(serves(t, func(http.ResponseWriter, *http.Request) {}), "http:", "https:", 1), "failed tls_error 0, method_not_idempotent", nil, nil, "POST"},
		{"no HTTP", says(t, "220 mail\r\n\r\n"), "failed protocol_error 0, method_not_idempotent", nil, nil, "POST"},
		{"closed", says(t, ""), "failed connection_reset 0, method_not_idempotent", nil, nil, "POST"},
		{"turned", says(t, "HTTP/1.1 503 No\r\nContent-Length: 2\r\n\r\nno"), "completed status 503, method_not_idempotent", nil, nil, "POST"},
		{"says too much first", says(t, strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", 6)), "failed protocol_error 0, response_started", nil, nil, "GET"},
		{"cut", says(t, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhi"), "truncated connection_reset 200, ", nil, nil, "GET"},
		{"late", hangs, "timed_out deadline 0, deadline", soon, nil, "GET"},
		{"hurried", hangs, "abandoned client_deadline 0, ", nil, []string{proxy.DeadlineHeader, "20"}, "GET"},
		{"silent", speaks(t, func(c net.Conn, r *bufio.Reader) {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhi")
			_, _ = r.ReadByte()
		}), "truncated response_stalled 200, ", soon, nil, "GET"},
	} {
		h, courses := followed(t, c.change, c.to)
		h.do(h.request(c.method, "/", nil, c.header...))
		course := <-courses
		leg := &course.Legs[0]
		if got := told(leg); got != c.want || len(course.Legs) != 1 || leg.Count != len(leg.Tries) || leg.Stop != event.EndpointPicked {
			t.Errorf("%s: %q of %+v, wants %q", c.what, got, course.Legs, c.want)
		}
		if answered := leg.Tries[len(leg.Tries)-1].Status != 0; answered != (course.First > 0) || leg.Tries[0].Endpoint != c.to || leg.Tries[0].Took <= 0 {
			t.Errorf("%s: %+v, the first byte after %v", c.what, leg.Tries, course.First)
		}
	}
}

// TestCoursesCount: bodies are counted both ways, in a tunnel as well.
func TestCoursesCount(t *testing.T) {
	h, courses := followed(t, nil, serves(t, echo)) // it reads before it answers
	h.do(h.request("POST", "/", strings.NewReader("eight...")))
	if c := <-courses; c.Up.Load() != 8 || c.Down.Load() != 8 {
		t.Errorf("%d up, %d down", c.Up.Load(), c.Down.Load())
	}
	h, courses = followed(t, nil, shouts(t))
	conn, in := h.opens()
	_ = conn.(*net.TCPConn).CloseWrite()
	_, _ = io.ReadAll(in)
	if c := <-courses; c.Up.Load() != uint64(len("early\n")) || c.Down.Load() != uint64(len("hello\nEARLY\nbye\n")) || told(&c.Legs[0]) != "completed  101, " {
		t.Errorf("%d up, %d down: %s", c.Up.Load(), c.Down.Load(), told(&c.Legs[0]))
	}
}

// TestCoursesOfTunnels: who ended a tunnel is told.
func TestCoursesOfTunnels(t *testing.T) {
	h, courses := followed(t, nil, shouts(t))
	h.opens()
	ctx, over := context.WithCancel(t.Context())
	over()
	h.tunnels.Drain(ctx)
	if got := told(&(<-courses).Legs[0]); got != "completed shutdown 101, " {
		t.Error(got)
	}
	h, courses = followed(t, func(c *proxy.Config) { c.Idle = 50 * time.Millisecond }, shouts(t))
	h.opens()
	if got := told(&(<-courses).Legs[0]); got != "completed idle_timeout 101, " {
		t.Error(got)
	}
}

// begins is a client that says when an answer begins.
type begins struct {
	*httptest.ResponseRecorder
	came chan<- bool
}

func (b begins) WriteHeader(status int) {
	b.ResponseRecorder.WriteHeader(status)
	if status == http.StatusOK {
		b.came <- true
	}
}

// endsWith is a body that does not come, of a connection that is cut.
type endsWith struct{ context.Context }

func (b endsWith) Read([]byte) (int, error) {
	<-b.Done()
	return 0, io.ErrUnexpectedEOF
}

func (endsWith) Close() error { return nil }

// TestCoursesOfTheCut: whom the server ended did not leave, whether his answer had begun or not.
func TestCoursesOfTheCut(t *testing.T) {
	ends := errors.New("the end")
	came, over := make(chan bool, 1), make(chan struct{})
	h, _ := followed(t, func(c *proxy.Config) { c.Cut = ends }, serves(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/begun" {
			_ = http.NewResponseController(w).Flush() // and the client says when it has come
		} else {
			came <- true
		}
		<-over
	}))
	t.Cleanup(func() { close(over) })
	for _, c := range []struct {
		path, want string
		cause      error
	}{{"/begun", "abandoned shutdown 200, ", ends}, {"/waits", "abandoned shutdown 0, ", ends}, {"/begun", "abandoned client_disconnected 200, ", nil}, {"/waits", "abandoned client_disconnected 0, ", nil},
		{"/sent", "abandoned shutdown 0, ", ends}, {"/sent", "abandoned request_body_error 0, ", nil}} {
		r := httptest.NewRequestWithContext(t.Context(), "GET", c.path, http.NoBody)
		if c.path == "/sent" {
			r = httptest.NewRequestWithContext(t.Context(), "PUT", c.path, http.NoBody)
			r.ContentLength = 9
		}
		ctx, cut := context.WithCancelCause(r.Context())
		go func() { <-came; cut(c.cause) }()
		course := new(proxy.Course)
		func() {
			defer func() { _ = recover() }()
			if r = r.WithContext(ctx); c.path == "/sent" {
				r.Body = endsWith{ctx}
			}
			m, _ := h.proxy.Match(r)
			h.proxy.Serve(begins{httptest.NewRecorder(), came}, r, m, course)
		}()
		if got := told(&course.Legs[0]); got != c.want || course.Cut() != (c.cause != nil) {
			t.Errorf("%s, %v: %q, wants %q", c.path, c.cause, got, c.want)
		}
	}
}

// TestCoursesAreBounded: of many tries the first ones are told, and the last.
func TestCoursesAreBounded(t *testing.T) {
	var down []string
	for range 6 {
		down = append(down, refuses(t))
	}
	h, courses := followed(t, func(c *proxy.Config) { c.Deadline = time.Minute }, down...)
	h.port.allow(6)
	h.get("/")
	l := &(<-courses).Legs[0]
	if len(l.Tries) != proxy.MaxTries || l.Count != 6 || l.Tries[0].Endpoint != down[0] || l.Tries[proxy.MaxTries-1].Endpoint != down[5] {
		t.Errorf("%d: %+v", l.Count, l.Tries)
	}
}
