package httpserver

import (
	"io"
	"net/http"
	"testing"
	"time"

	"golang.org/x/net/http2"
)

// opened returns by how much the server has opened the window of the connection.
func (f *frames) opened() (by int) {
	f.must(f.WritePing(false, [8]byte{1}))
	f.must(f.until(func(frame http2.Frame) bool {
		switch frame := frame.(type) {
		case *http2.WindowUpdateFrame:
			if frame.StreamID == 0 {
				by += int(frame.Increment)
			}
		case *http2.PingFrame:
			return frame.IsAck()
		}
		return false
	}))
	return by
}

// TestUnreadBodyDelaysNoOtherOfItsConnection: while a body fills its window because its handler does not read, another one on the same
// connection arrives as a whole.
func TestUnreadBodyDelaysNoOtherOfItsConnection(t *testing.T) {
	let := make(chan struct{})
	r, client := h2Server(t, nil, http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.Header.Get("X-Stall") != "" {
			<-let
			return
		}
		_, _ = io.Copy(io.Discard, q.Body)
	}), nil)
	defer close(let)
	f := r.frames(t, client)
	window := 65535 + f.opened()
	send := func(stream uint32, size int, ends bool) {
		if window -= size; window < 0 {
			t.Fatalf("stream %d waits for a window", stream)
		}
		for n := 0; size > 0; size -= n {
			n = min(size, 16<<10)
			f.must(f.WriteData(stream, ends && size == n, make([]byte, n)))
		}
	}
	f.must(f.asks(1, false, "x-stall", "1"))
	send(1, 64<<10, false)
	f.must(f.asks(3, false))
	send(3, 20<<10, true)
	f.must(f.until(beginsResponse(3)))
}

// TestUnreadDataOfAllIsBounded: however many requests with unread bodies clients send, the server holds at most the window for each of
// Config.MaxConns. Those above the limit are reset, and what was received of them is dropped.
func TestUnreadDataOfAllIsBounded(t *testing.T) {
	const most, streams, window = 4, 3, 64 << 10
	in, let := make(chan struct{}, most+1), make(chan struct{})
	k := startShared(t, 0, func(c *Config) {
		c.MaxConns, c.Streams, c.Window = most, streams, window
		c.Read, c.Request, c.Write = time.Hour, time.Hour, time.Hour
	}, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { in <- struct{}{}; <-let }))
	defer close(let)
	held, served := 0, 0
	for range most { // a connection each, with as many requests as it may have
		f := k.stalled(t, "127.0.0.9", 0)
		resets, returned := 0, 0
		note := func(frame http2.Frame) {
			switch frame := frame.(type) {
			case *http2.RSTStreamFrame:
				if frame.ErrCode == http2.ErrCodeInternal || frame.ErrCode == http2.ErrCodeCancel { // not of data that came after the end
					resets++
				}
			case *http2.WindowUpdateFrame:
				if frame.StreamID == 0 {
					returned += int(frame.Increment)
				}
			case *http2.GoAwayFrame:
				t.Fatalf("the connection ends: %v", frame)
			}
		}
		if got := 65535 + f.opened(); got != streams*window {
			t.Fatalf("the window is %d bytes, want %d", got, streams*window)
		}
		for i := range uint32(streams) {
			f.must(f.asks(2*i+1, false))
			for range window / (16 << 10) {
				f.must(f.WriteData(2*i+1, false, make([]byte, 16<<10)))
			}
			if served < most {
				<-in
				served++
			}
		}
		fits := min(streams, max(0, served-held/window)) // requests of this connection
		for resets < streams-fits || returned < (streams-fits)*window {
			f.must(f.until(func(frame http2.Frame) bool { note(frame); return true }))
		}
		held += streams*window - returned
	}
	if held != most*window || len(in) > 0 || k.refused.Load() != most*streams-most {
		t.Errorf("%d bytes are held, want %d; %d requests were reset", held, most*window, k.refused.Load())
	}
}
