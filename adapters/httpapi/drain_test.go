package httpapi_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"macronode/adapters/httpapi"
	"macronode/adapters/httpserver"
)

// While the public listener shuts down under load, each request that was sent gets its whole receipt, and each
// receipt is of an operation that was done.
func TestDrainCutsNoOperation(t *testing.T) {
	h := build(t)
	api := httpapi.New(httpapi.Config{MaxLargeBodies: 2, Node: node{h}, Admission: h, ReadModel: h, Meter: &count{of: make(map[string]int)}, Log: slog.New(slog.DiscardHandler),
		Boot: 1, Deadline: time.Minute})
	up := make(chan net.Addr, 1)
	c := httpserver.Default("127.0.0.1:0")
	c.Grace = time.Second // more than a busy machine delays a client
	server := httpserver.New(c, api, httpserver.Hooks{Listening: func(a net.Addr) { up <- a }}, slog.New(slog.DiscardHandler))
	ended := make(chan error, 1)
	go func() { ended <- server.Run(context.Background()) }()
	url := "http://" + (<-up).String() + "/v1/issue"

	const clients = 16
	var receipts atomic.Int64
	warm, cut := make(chan struct{}, 1000), make(chan error, clients)
	for i := range clients {
		go func() {
			cut <- issueUntilRefused(url, i, func() {
				receipts.Add(1)
				select {
				case warm <- struct{}{}:
				default:
				}
			})
		}()
	}
	for range cap(warm) / 4 {
		<-warm
	}
	server.Stop()
	for range clients {
		if err := <-cut; err != nil {
			t.Errorf("an operation was cut: %v", err)
		}
	}
	if err := <-ended; err != nil {
		t.Errorf("ended with %v", err)
	}
	if done := len(h.frames); int64(done) != receipts.Load() {
		t.Errorf("%d done, %d receipts", done, receipts.Load())
	}
}

func issueUntilRefused(url string, client int, got func()) error {
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	for n := 0; ; n++ {
		r, err := http.NewRequest(http.MethodPost, url, strings.NewReader(issue))
		if err != nil {
			return err
		}
		r.GetBody = nil // otherwise the transport would send it twice, with the same key
		r.Header = http.Header{"Authorization": {bearer(1)}, "Content-Type": {"application/json"}, "Idempotency-Key": {fmt.Sprintf("%d-%d", client, n)}}
		resp, err := transport.RoundTrip(r)
		if errors.Is(err, syscall.ECONNREFUSED) {
			return nil // nothing was sent
		}
		if err != nil {
			return err
		}
		b, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || resp.StatusCode != 200 || !strings.HasSuffix(string(b), `"}`) {
			return fmt.Errorf("%d %s: %w", resp.StatusCode, b, err)
		}
		got()
	}
}
