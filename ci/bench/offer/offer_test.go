package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"macronode/ci/bench/flow"
)

// offered runs a plan against a handler that gets the connection.
func offered(t *testing.T, warm, span time.Duration, play func(n int64, c net.Conn), flows ...flow.Flow) []flow.Seen {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var requests atomic.Int64
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				for in := bufio.NewReader(c); ; {
					r, err := http.ReadRequest(in)
					if err != nil {
						return
					}
					if r.URL.Path == "/end" {
						l.Close()
						return
					}
					play(requests.Add(1), c)
				}
			}()
		}
	}()
	o, err := prepare(&flow.Plan{Addr: l.Addr().String(), Warm: warm, Time: span, Flows: flows})
	if err != nil {
		t.Fatal(err)
	}
	defer o.poll.Close()
	if err := o.drive(); err != nil {
		t.Fatal(err)
	}
	var seen []flow.Seen
	for _, s := range o.flows {
		seen = append(seen, s.saw())
	}
	return seen
}

func respond(c net.Conn, status int, more string, size int) {
	_, _ = fmt.Fprintf(c, "HTTP/1.1 %d Said\r\ncontent-length: %d\r\n%s\r\n%s", status, size, more, strings.Repeat("x", size))
}

// TestAnswersAreCountedByStatus: each within the time, and once.
func TestAnswersAreCountedByStatus(t *testing.T) {
	s := offered(t, 0, 100*time.Millisecond, func(n int64, c net.Conn) {
		switch n % 3 {
		case 0:
			respond(c, 200, "", 7)
		case 1:
			respond(c, 429, "", 3)
		default:
			respond(c, 503, "", 0)
		}
	}, flow.Flow{Path: "/", Size: 7, Conns: 1})[0]
	a, b, c := s.Served.All, s.Refused.All, s.Other
	if a == 0 || b < a || b > a+1 || c > b || c+1 < a || s.Lost+s.Again+s.Barred > 0 || s.Served.P50 == 0 || s.Served.Counted > a || s.Offered < a+b {
		t.Errorf("%+v", s)
	}
}

// TestLatencyCountsFromDueTime: a request without a free connection is measured from its due
// time, and finally dropped.
func TestLatencyCountsFromDueTime(t *testing.T) {
	const answer = 40 * time.Millisecond
	s := offered(t, 0, 600*time.Millisecond, func(_ int64, c net.Conn) {
		time.Sleep(answer) // a slow server
		respond(c, 200, "", 1)
	}, flow.Flow{Path: "/", Size: 1, Conns: 1, Rate: 100})[0]
	if s.Served.P50 < 2*answer || s.Unsent == 0 || s.Offered < s.Served.All+s.Unsent-1 || s.Lost > 0 {
		t.Errorf("%+v", s)
	}
}

// TestClosedConnectionIsReopened: a connection with "close" is reopened without a loss; one that
// ends without an answer loses its request.
func TestClosedConnectionIsReopened(t *testing.T) {
	s := offered(t, 0, 50*time.Millisecond, func(_ int64, c net.Conn) {
		respond(c, 200, "Connection: close\r\n", 1)
		c.Close()
	}, flow.Flow{Path: "/", Size: 1, Conns: 2})[0]
	if s.Lost > 0 || s.Again == 0 || s.Served.All == 0 {
		t.Errorf("%+v", s)
	}
	s = offered(t, 0, 50*time.Millisecond, func(_ int64, c net.Conn) {
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf")
		c.Close()
	}, flow.Flow{Path: "/", Size: 9, Conns: 2})[0]
	if s.Lost == 0 || s.Served.All > 0 {
		t.Errorf("%+v", s)
	}
}

// TestUnaskedAnswerEndsItsConnection: a server may send 408 on a connection that it considers
// idle, before the next request or right after an answer. That does not end the run.
func TestUnaskedAnswerEndsItsConnection(t *testing.T) {
	for name, more := range map[string]func(c net.Conn){
		"behind an answer": func(c net.Conn) { respond(c, 200, "Content-Type: a\r\n", 1) },
		"408":              func(c net.Conn) { respond(c, 408, "Connection: close\r\n", 5) },
	} {
		s := offered(t, 0, 100*time.Millisecond, func(n int64, c net.Conn) {
			respond(c, 200, "", 1)
			if n == 1 {
				more(c)
				c.Close()
			}
		}, flow.Flow{Path: "/", Size: 1, Conns: 1, Rate: 20})[0]
		if s.Again != 1 || s.Unasked != 1 || s.Served.All < 2 {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

// TestClosedListenerEndsTheRun: before its time.
func TestClosedListenerEndsTheRun(t *testing.T) {
	s := offered(t, 0, time.Hour, nil, flow.Flow{Path: "/end", Size: 1, Conns: 4})[0]
	if s.Lost == 0 || s.Barred == 0 || s.Served.All > 0 {
		t.Errorf("%+v", s)
	}
}

// TestHead: field names in any case; a header without a length is an error.
func TestHead(t *testing.T) {
	for text, want := range map[string]string{
		"HTTP/1.1 200 OK\r\nContent-Length: 12":                            "200 12 false <nil>",
		"HTTP/1.1 429 No\r\nCONNECTION: Close\r\ncontent-length:3\r\nX: 1": "429 3 true <nil>",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked":                    "200 -1 false an answer that does not say how long it is",
		"HTTP/1.0 200 OK\r\nContent-Length: 12":                            "0 0 false no answer of HTTP/1.1",
	} {
		status, size, last, err := head([]byte(text))
		if got := fmt.Sprint(status, size, last, err); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

// TestWrongSizeEndsTheRun: an answer of another size.
func TestWrongSizeEndsTheRun(t *testing.T) {
	c := &conn{stream: &stream{offer: &offer{}, of: &flow.Flow{Size: 5}}, state: asking}
	c.in = []byte("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nhere")
	if c.held = len(c.in); c.answer() == nil {
		t.Error("it is taken")
	}
}
