package httpserver

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
)

// manyFrames is far more frames than a client may send without progress in the time of a test.
const manyFrames = 200_000

// floods are clients of HTTP/2 that keep a connection busy without making progress. Each
// sends its n-th frames, from 0.
var floods = []struct {
	name  string
	begin func(f *frames)
	next  func(f *frames, n uint32) error
}{
	{"resets", nil, func(f *frames, n uint32) error {
		if err := f.asks(2*n+1, true); err != nil {
			return err
		}
		return f.WriteRSTStream(2*n+1, http2.ErrCodeCancel)
	}},
	{"requests that are none", nil, func(f *frames, n uint32) error { return f.asks(2*n+1, true, "X-Upper-Case", "") }},
	{"empty continuations", func(f *frames) {
		f.must(f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: f.header(), EndStream: true}))
	}, func(f *frames, _ uint32) error { return f.WriteContinuation(1, false, nil) }},
	{"settings", nil, func(f *frames, _ uint32) error { return f.WriteSettings() }},
	{"settings of many values", nil, func(f *frames, _ uint32) error {
		return f.WriteRawFrame(http2.FrameSettings, 0, 0, []byte(strings.Repeat("\x00\x04\x00\x00\xff\xff", 2000)))
	}},
	{"confirmed settings", nil, func(f *frames, _ uint32) error { return f.WriteSettingsAck() }},
	{"pings", nil, func(f *frames, _ uint32) error { return f.WritePing(false, [8]byte{}) }},
	{"answers to no ping", nil, func(f *frames, _ uint32) error { return f.WritePing(true, [8]byte{}) }},
	{"priorities", nil, func(f *frames, _ uint32) error { return f.WritePriority(1, http2.PriorityParam{StreamDep: 3}) }},
	{"frames of no type", nil, func(f *frames, _ uint32) error { return f.WriteRawFrame(0xee, 0, 0, nil) }},
	{"empty data", func(f *frames) { f.must(f.asks(1, false)) }, func(f *frames, _ uint32) error { return f.WriteData(1, false, nil) }},
	{"data of padding", func(f *frames) { f.must(f.asks(1, false)) }, func(f *frames, _ uint32) error {
		return f.WriteDataPadded(1, false, nil, make([]byte, 100))
	}},
	{"data for a stream that has ended", func(f *frames) { f.must(f.asks(1, true)) }, func(f *frames, _ uint32) error {
		return f.WriteData(1, false, make([]byte, 64))
	}},
	{"windows that grow", func(f *frames) { f.must(f.asks(1, false)) }, func(f *frames, n uint32) error { return f.WriteWindowUpdate(n%2, 1) }},
	{"windows of one byte", func(f *frames) {
		f.must(f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1}))
		f.must(f.asks(1, true))
	}, func(f *frames, _ uint32) error { return f.WriteWindowUpdate(1, 1) }},
}

// flooded starts a server with long responses, which counts the floods it ends.
func flooded(t *testing.T, h http.Handler, later *atomic.Int64) (r *running, client func() *frames, ended *atomic.Int64) {
	t.Helper()
	c := local()
	server, trust := shows(t, false)
	c.TLS, ended = server, new(atomic.Int64)
	up := make(chan net.Addr, 1)
	r = &running{Server: New(c, h, Hooks{Listening: func(a net.Addr) { up <- a }, Flooded: func() { ended.Add(1) }}, quietly), ended: make(chan error, 1)}
	if later != nil {
		r.now = func() time.Time { return time.Now().Add(time.Duration(later.Load())) }
	}
	go func() { r.ended <- r.Run(context.Background()) }()
	t.Cleanup(r.Kill)
	r.addr = <-up
	return r, func() *frames { return r.frames(t, trust) }, ended
}

// TestFloodsAreClosed: the server closes a connection that sends many frames without progress.
func TestFloodsAreClosed(t *testing.T) {
	let := make(chan struct{})
	defer close(let)
	_, client, ended := flooded(t, http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		_, _ = io.WriteString(w, strings.Repeat("x", 1<<20))
		if q.Method == http.MethodPost && q.ContentLength != 0 {
			select {
			case <-let:
			case <-q.Context().Done():
			}
		}
	}), nil)
	for _, flood := range floods {
		f, before := client(), ended.Load()
		if flood.begin != nil {
			flood.begin(f)
		}
		go func() { _, _ = io.Copy(io.Discard, f.conn) }() // it reads all responses
		sent := uint32(0)
		for sent < manyFrames && flood.next(f, sent) == nil {
			sent++
		}
		if sent == manyFrames {
			t.Fatalf("%s: all frames were sent", flood.name)
		}
		until(func() bool { return ended.Load() != before }) // the client may see the end first
		_ = f.conn.Close()
	}
}

// TestProgressPaysForFrames: a client that sends bodies and reads responses may send any number
// of frames around them.
func TestProgressPaysForFrames(t *testing.T) {
	_, client, ended := flooded(t, http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		_, _ = io.Copy(w, q.Body)
	}), nil)
	f := client()
	for n := range uint32(3 * MaxIdleFrames) {
		stream := 2*n + 1
		f.must(f.asks(stream, false))
		f.must(f.WriteWindowUpdate(0, 2*frameCost))
		f.must(f.WriteData(stream, false, make([]byte, frameCost)))
		f.must(f.WriteData(stream, true, make([]byte, frameCost)))
		if err := f.until(func(got http2.Frame) bool {
			d, ok := got.(*http2.DataFrame)
			return ok && d.StreamEnded()
		}); err != nil {
			t.Fatalf("request %d: %v", n, err)
		}
	}
	if ended.Load() > 0 {
		t.Error("it was closed for a flood")
	}
}

// TestIdleFramesAreCreditedByTime: frames without progress within the rate close nothing.
func TestIdleFramesAreCreditedByTime(t *testing.T) {
	later := new(atomic.Int64)
	_, client, ended := flooded(t, respondWith("here"), later)
	f := client()
	pings := func(n int) error {
		for range n {
			f.must(f.WritePing(false, [8]byte{}))
			if err := f.until(func(got http2.Frame) bool {
				p, ok := got.(*http2.PingFrame)
				return ok && p.IsAck()
			}); err != nil {
				return err
			}
		}
		return nil
	}
	const each = MaxIdleFrames * 3 / 4 // a ping costs a little more than a frame without payload
	for range 4 {
		if err := pings(each); err != nil || ended.Load() > 0 {
			t.Fatalf("at their pace: %v, %d closed", err, ended.Load())
		}
		later.Add(int64(MaxIdleFrames / IdleFramesPerSecond * time.Second))
	}
}

// TestFrameScan: the scan finds the same frames as a framer, however the bytes are split.
func TestFrameScan(t *testing.T) {
	var text bytes.Buffer
	f := http2.NewFramer(&text, nil)
	for _, err := range []error{
		f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1}), f.WriteData(1, false, nil), f.WriteData(1, false, make([]byte, 300)),
		f.WriteDataPadded(1, false, []byte("abc"), make([]byte, 200)), f.WriteDataPadded(1, true, nil, nil), f.WritePing(false, [8]byte{}),
		f.WriteRawFrame(http2.FrameData, http2.FlagDataPadded, 1, nil), f.WriteRawFrame(http2.FrameData, http2.FlagDataPadded, 1, []byte{9, 1}),
		f.WriteWindowUpdate(0, 1), f.WriteContinuation(1, true, make([]byte, 1<<10)),
		f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1<<31 - 1, EndStream: true}), f.WriteRSTStream(7, http2.ErrCodeCancel),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	const want = "4:0:6:false 0:1:0:false 0:1:300:false 0:1:3:false 0:1:0:true 6:0:8:false 0:1:0:false 0:1:0:false 8:0:4:false 9:1:1024:false 1:2147483647:0:true 3:7:4:true "
	for _, piece := range []int{1, 2, 7, 9, 10, 100, text.Len()} {
		var s frameScan
		got := ""
		for rest := text.Bytes(); len(rest) > 0; {
			n := min(piece, len(rest))
			s.follow(rest[:n], func(f frame) { got += fmt.Sprintf("%d:%d:%d:%v ", f.kind, f.stream, f.payload, f.endsStream()) })
			rest = rest[n:]
		}
		if got != want {
			t.Errorf("in pieces of %d: %q, want %q", piece, got, want)
		}
	}
}
