package httpserver

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"testing"
	"time"

	"golang.org/x/net/http2"
)

// endless writes until the client stops reading, and reports the error.
func endless(ended chan<- error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		part := make([]byte, 64<<10)
		for {
			if _, err := w.Write(part); err != nil {
				ended <- err
				return
			}
		}
	})
}

// TestUnreadResponseTimesOut: a response that is not read ends with its timeout, over HTTP/1 and
// HTTP/2.
func TestUnreadResponseTimesOut(t *testing.T) {
	ended := make(chan error, 1)
	hasty := func(write time.Duration) func(*Config) {
		return func(c *Config) { c.Read, c.Request, c.Write = 20*time.Millisecond, 20*time.Millisecond, write }
	}
	c := local()
	hasty(20 * time.Millisecond)(&c)
	conn := start(t, c, endless(ended), nil).dial(t)
	if _, err := io.WriteString(conn, hello); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("of HTTP/1: %v", err)
	}

	r, client := h2Server(t, hasty(time.Second), endless(ended), nil) // each write of a frame has this time, too
	f := r.frames(t, client)
	f.must(f.asks(1, true))
	if err := f.until(func(frame http2.Frame) bool {
		s, ok := frame.(*http2.RSTStreamFrame)
		return ok && s.StreamID == 1
	}); err != nil {
		t.Errorf("of HTTP/2: %v", err)
	}
	if err := <-ended; err == nil { // its windows are full: 64 KiB
		t.Error("of HTTP/2: all was taken")
	}
}

// TestSlowBodyTimesOut: a slow body ends with its timeout, whatever its length.
func TestSlowBodyTimesOut(t *testing.T) {
	ended := make(chan error, 1)
	h := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, err := io.Copy(io.Discard, r.Body)
		ended <- err
	})
	c := local()
	c.Read = 50 * time.Millisecond
	conn := start(t, c, h, nil).dial(t)
	if _, err := io.WriteString(conn, "POST / HTTP/1.1\r\nHost: node\r\nTransfer-Encoding: chunked\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	drip(conn, []byte("1\r\na\r\n"))
	if err := <-ended; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("of HTTP/1: %v", err)
	}

	r, client := h2Server(t, func(to *Config) { to.Read = c.Read }, h, nil)
	f := r.frames(t, client)
	f.must(f.asks(1, false))
	go func() {
		for f.WriteData(1, false, []byte("a")) == nil {
			<-time.After(time.Millisecond)
		}
	}()
	if err := <-ended; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("of HTTP/2: %v", err)
	}
	_ = f.conn.Close()
}

// TestSlowHeaderFieldsTimeOut: a header that arrives field by field ends with its timeout.
func TestSlowHeaderFieldsTimeOut(t *testing.T) {
	c := local()
	c.Header, c.Read = 50*time.Millisecond, 50*time.Millisecond
	conn := start(t, c, respondWith("here"), nil).dial(t)
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: node\r\n"); err != nil {
		t.Fatal(err)
	}
	drip(conn, []byte("a: b\r\n"))
	if b, _ := io.ReadAll(bufio.NewReader(conn)); len(b) > 0 {
		t.Errorf("answered %q", b)
	}
}

// drip writes a part repeatedly and slowly until it fails.
func drip(to net.Conn, part []byte) {
	go func() {
		for {
			if _, err := to.Write(part); err != nil {
				return
			}
			<-time.After(time.Millisecond)
		}
	}()
}
