package httpapi_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"macronode/adapters/httpapi"
	"macronode/adapters/httpserver"
	"macronode/core/event"
	"macronode/core/types"
)

// replayingNode replies to every request with the same record. The benchmark measures the HTTP stack, this package
// and the rendering of a receipt.
type replayingNode struct{ node }

func (replayingNode) Submit(context.Context, *event.Request) (event.Reply, bool) {
	return event.Reply{Position: types.Position{LSN: 2}}, true
}
func (y replayingNode) Status() event.Status { return y.backend.status }

// noMeter counts nothing.
type noMeter struct{}

func (noMeter) Endpoint(string, string) (func(time.Duration, int, []byte), func()) {
	return func(time.Duration, int, []byte) {}, func() {}
}
func (noMeter) Refused(types.Facet, event.Problem)       {}
func (noMeter) Rejected(types.Class, event.RejectReason) {}
func (noMeter) Decided(time.Duration)                    {}
func (noMeter) Replayed()                                {}
func (noMeter) TimedOut(event.Problem)                   {}
func (noMeter) Panicked()                                {}
func (noMeter) PrepaidRejected()                         {}
func (noMeter) Usage(uint64, uint64, uint64)             {}

// newReplayHandler returns an API whose node is a replayingNode.
func newReplayHandler(b *testing.B) http.Handler {
	h := build(b)
	for i, text := range []string{issue, transfer} {
		r := httptest.NewRequest("POST", "/v1/"+[]string{"issue", "transfer"}[i], strings.NewReader(text))
		r.Header = http.Header{"Authorization": {bearer(1)}, "Content-Type": {"application/json"}, "Idempotency-Key": {fmt.Sprint("k", i)}}
		w := httptest.NewRecorder()
		httpapi.New(httpapi.Config{MaxLargeBodies: 2, Node: node{h}, Admission: admitAll{}, ReadModel: h, Meter: noMeter{}, Log: slog.New(slog.DiscardHandler), Deadline: time.Second}).ServeHTTP(w, r)
		if w.Code != 200 {
			b.Fatalf("%d %s", w.Code, w.Body)
		}
	}
	return httpapi.New(httpapi.Config{MaxLargeBodies: 2, Node: replayingNode{node{h}}, Admission: admitAll{}, ReadModel: h, Meter: noMeter{}, Log: slog.New(slog.DiscardHandler), Deadline: 5 * time.Second})
}

// BenchmarkTransferHandler is one transfer through the listener, net/http, echo and this package, by 64 keep-alive
// clients on the same machine, whose time is included.
func BenchmarkTransferHandler(b *testing.B) { drive(b, newReplayHandler(b)) }

// BenchmarkBareHandler reads the same body and writes a response of the same length, without this package.
func BenchmarkBareHandler(b *testing.B) {
	receipt := bytes.Repeat([]byte("r"), 580)
	drive(b, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = w.Write(receipt)
	}))
}

func drive(b *testing.B, h http.Handler) {
	up := make(chan net.Addr, 1)
	s := httpserver.New(httpserver.Default("127.0.0.1:0"), h, httpserver.Hooks{Listening: func(a net.Addr) { up <- a }}, slog.New(slog.DiscardHandler))
	ended := make(chan error, 1)
	go func() { ended <- s.Run(context.Background()) }()
	addr := (<-up).String()
	request := fmt.Appendf(nil, "POST /v1/transfer HTTP/1.1\r\nHost: node\r\nAuthorization: %s\r\nContent-Type: application/json\r\n"+
		"Idempotency-Key: 0123456789abcdef\r\nContent-Length: %d\r\n\r\n%s", bearer(1), len(transfer), transfer)
	var n atomic.Int64
	b.SetParallelism(32)
	before := cpu(b)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			b.Error(err)
			return
		}
		defer func() { _ = c.Close() }()
		from := bufio.NewReader(c)
		for pb.Next() {
			if _, err := c.Write(request); err != nil {
				b.Error(err)
				return
			}
			if err := discardResponse(from); err != nil {
				b.Error(err)
				return
			}
			n.Add(1)
		}
	})
	b.ReportMetric(float64(n.Load())/b.Elapsed().Seconds(), "transfers/s")
	b.ReportMetric(float64(cpu(b)-before)/float64(n.Load()), "cpu-ns/op") // steady on a busy machine
	s.Kill()
	if err := <-ended; err != nil {
		b.Fatal(err)
	}
}

// cpu returns the CPU time of this process.
func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// discardResponse reads one response and requires status 200.
func discardResponse(from *bufio.Reader) error {
	length := 0
	for first := true; ; first = false {
		line, err := from.ReadSlice('\n')
		if err != nil {
			return err
		}
		if first && !bytes.Contains(line, []byte(" 200 ")) {
			return fmt.Errorf("answered %s", line)
		}
		if text, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); ok {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(text))); err != nil {
				return err
			}
		}
		if len(line) == 2 {
			_, err = io.CopyN(io.Discard, from, int64(length))
			return err
		}
	}
}

// BenchmarkTransferAlone is this package with echo, without net/http.
func BenchmarkTransferAlone(b *testing.B) {
	h := newReplayHandler(b)
	header := http.Header{"Authorization": {bearer(1)}, "Content-Type": {"application/json"}, "Idempotency-Key": {"0123456789abcdef"}}
	w := &nullWriter{header: make(http.Header)}
	body := strings.NewReader(transfer)
	r := httptest.NewRequest("POST", "/v1/transfer", body)
	r.Header = header
	b.ReportAllocs()
	for b.Loop() {
		body.Reset(transfer)
		clear(w.header)
		h.ServeHTTP(w, r)
		if w.status != 200 {
			b.Fatal(w.status)
		}
	}
}

type nullWriter struct {
	header http.Header
	status int
}

func (w *nullWriter) Header() http.Header         { return w.header }
func (w *nullWriter) Write(b []byte) (int, error) { return len(b), nil }
func (w *nullWriter) WriteHeader(status int)      { w.status = status }

// admitAll admits every request.
type admitAll struct{}

func (admitAll) Admit(context.Context, event.Admit, httpapi.Holder) (event.Decision, bool) {
	return event.Decision{}, true
}
func (admitAll) ReserveBytes(_ context.Context, t types.Ticket, bytes uint64) (event.Decision, bool) {
	return event.Decision{Ticket: t, Bytes: bytes}, true
}
func (admitAll) Finish(types.Ticket, uint64, event.Completion) {}
