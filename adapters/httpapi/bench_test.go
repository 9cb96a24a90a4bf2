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

// yes is a node that has always done it already, as fast as can be: what is measured
// is the HTTP stack, this package and the rendering of a receipt.
type yes struct{ node }

func (yes) Submit(context.Context, *event.Request) (event.Reply, bool) {
	return event.Reply{Position: types.Position{LSN: 2}}, true
}
func (y yes) Status() event.Status { return y.house.status }

// still counts nothing.
type still struct{}

func (still) Endpoint(string, string) (func(time.Duration, int, []byte), func()) {
	return func(time.Duration, int, []byte) {}, func() {}
}
func (still) Refused(types.Facet, event.Problem)     {}
func (still) Barred(types.Class, event.RejectReason) {}
func (still) Decided(time.Duration)                  {}
func (still) Replayed()                              {}
func (still) TimedOut(event.Problem)                 {}
func (still) Panicked()                              {}

// served is an API whose node says yes.
func served(b *testing.B) http.Handler {
	h := build(b)
	for i, text := range []string{issue, transfer} {
		r := httptest.NewRequest("POST", "/v1/"+[]string{"issue", "transfer"}[i], strings.NewReader(text))
		r.Header = http.Header{"Authorization": {bearer(1)}, "Content-Type": {"application/json"}, "Idempotency-Key": {fmt.Sprint("k", i)}}
		w := httptest.NewRecorder()
		httpapi.New(httpapi.Config{Large: 2, Node: node{h}, Gate: open{}, Books: h, Meter: still{}, Log: slog.New(slog.DiscardHandler), Deadline: time.Second}).ServeHTTP(w, r)
		if w.Code != 200 {
			b.Fatalf("%d %s", w.Code, w.Body)
		}
	}
	return httpapi.New(httpapi.Config{Large: 2, Node: yes{node{h}}, Gate: open{}, Books: h, Meter: still{}, Log: slog.New(slog.DiscardHandler), Deadline: 5 * time.Second})
}

// BenchmarkTransferHandler is one transfer through the listener, net/http, echo and
// this package, by 64 keep-alive clients on the same machine, which cost too.
func BenchmarkTransferHandler(b *testing.B) { drive(b, served(b)) }

// BenchmarkBareHandler is what the same costs where nothing is done: the body is
// read, and an answer of the same length written.
func BenchmarkBareHandler(b *testing.B) {
	receipt := bytes.Repeat([]byte("r"), 580)
	drive(b, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = w.Write(receipt)
	}))
}

func drive(b *testing.B, h http.Handler) {
	up := make(chan net.Addr, 1)
	s := httpserver.New(httpserver.Default("127.0.0.1:0"), h, httpserver.Hooks{Up: func(a net.Addr) { up <- a }}, slog.New(slog.DiscardHandler))
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
			if err := drop(from); err != nil {
				b.Error(err)
				return
			}
			n.Add(1)
		}
	})
	b.ReportMetric(float64(n.Load())/b.Elapsed().Seconds(), "transfers/s")
	b.ReportMetric(float64(cpu(b)-before)/float64(n.Load()), "cpu-ns/op") // holds under noise
	s.Kill()
	if err := <-ended; err != nil {
		b.Fatal(err)
	}
}

// cpu is what this process has used.
func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// drop reads one answer of status 200 and forgets it.
func drop(from *bufio.Reader) error {
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

// BenchmarkTransferAlone is this package alone, echo included, without net/http.
func BenchmarkTransferAlone(b *testing.B) {
	h := served(b)
	header := http.Header{"Authorization": {bearer(1)}, "Content-Type": {"application/json"}, "Idempotency-Key": {"0123456789abcdef"}}
	w := &nowhere{header: make(http.Header)}
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

type nowhere struct {
	header http.Header
	status int
}

func (w *nowhere) Header() http.Header         { return w.header }
func (w *nowhere) Write(b []byte) (int, error) { return len(b), nil }
func (w *nowhere) WriteHeader(status int)      { w.status = status }

// open is a gate that keeps nobody.
type open struct{}

func (open) Arrive(context.Context, event.Admit) (event.Decision, bool) {
	return event.Decision{}, true
}
func (open) Stream(_ context.Context, t types.Ticket, bytes uint64) (event.Decision, bool) {
	return event.Decision{Ticket: t, Bytes: bytes}, true
}
func (open) Settle(types.Ticket, uint64, event.Completion) {}
