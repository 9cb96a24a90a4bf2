package httpapi_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"macronode/adapters/httpapi"
	"macronode/core/event"
	"macronode/core/types"
)

// TestLargeBodiesAreLimited: without a free slot a large body is rejected before it is read. Small bodies need no
// slot, and slots are returned.
func TestLargeBodiesAreLimited(t *testing.T) {
	small := issue
	large := issue + strings.Repeat(" ", httpapi.SmallBody)
	for _, c := range []struct {
		name   string
		places int
		body   string
		length int64
		want   int
	}{
		{"small, no place", 0, small, int64(len(small)), http.StatusOK},
		{"large, no place", 0, large, int64(len(large)), http.StatusTooManyRequests},
		{"small and does not say, no place", 0, small, -1, http.StatusTooManyRequests},
		{"large, one place", 1, large, int64(len(large)), http.StatusOK},
		{"small and does not say, one place", 1, small, -1, http.StatusOK},
	} {
		h := build(t)
		api := httpapi.New(httpapi.Config{MaxLargeBodies: c.places, Node: node{h}, Admission: h, ReadModel: h, Meter: noMeter{}, Log: slog.New(slog.DiscardHandler), Deadline: time.Minute})
		for _, key := range []string{"k1", "k2"} {
			r := httptest.NewRequest(http.MethodPost, "/v1/issue", strings.NewReader(c.body))
			r.ContentLength = c.length
			r.Header.Set("Authorization", bearer(1))
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Idempotency-Key", key)
			w := httptest.NewRecorder()
			if api.ServeHTTP(w, r); w.Code != c.want {
				t.Errorf("%s, %s: %d %s", c.name, key, w.Code, w.Body)
			}
		}
	}
}

// TestTenantsLeaveLargeSlots: a tenant whose bodies do not come has at most half of the slots, and another tenant gets one.
func TestTenantsLeaveLargeSlots(t *testing.T) {
	h := build(t)
	api := httpapi.New(httpapi.Config{MaxLargeBodies: 4, Node: node{h}, Admission: h, ReadModel: h, Meter: noMeter{}, Log: slog.New(slog.DiscardHandler), Deadline: time.Minute})
	send := func(key types.KeyID, body io.Reader) int {
		r := httptest.NewRequest(http.MethodPost, "/v1/issue", body)
		r.ContentLength = httpapi.SmallBody + 1
		r.Header.Set("Authorization", bearer(key))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Idempotency-Key", "k")
		w := httptest.NewRecorder()
		api.ServeHTTP(w, r)
		return w.Code
	}
	var held []*io.PipeWriter
	var ended sync.WaitGroup
	for range 2 {
		body, to := io.Pipe()
		held = append(held, to)
		ended.Go(func() { send(1, body) })
		_, _ = io.WriteString(to, " ") // it is read: the request has its slot
	}
	if got := send(1, strings.NewReader("{}")); got != http.StatusTooManyRequests {
		t.Errorf("a third one of the tenant: %d", got)
	}
	if got := send(4, strings.NewReader("{}")); got == http.StatusTooManyRequests {
		t.Errorf("one of another tenant: %d", got)
	}
	for _, to := range held {
		_ = to.CloseWithError(io.ErrUnexpectedEOF)
	}
	ended.Wait()
	if n, _ := api.LargeBodies(); n != 0 {
		t.Errorf("%d slots are still taken", n)
	}
}

// TestUnreadableFrameIsNot404: 404 would deny a payment that was made.
func TestUnreadableFrameIsNot404(t *testing.T) {
	h := build(t)
	s := serve(t, h)
	made := s.send(s.post("issue", "k1", issue))
	txid := made.body[strings.Index(made.body, "tx_"):][:35]
	if got := s.send(s.get("/v1/tx/" + txid)); got.status != http.StatusOK {
		t.Fatalf("%d %s", got.status, got.body)
	}
	h.readError = errors.New("read: input/output error")
	if got := s.send(s.get("/v1/tx/" + txid)); got.status != http.StatusInternalServerError || !strings.Contains(s.lines.String(), "input/output error") {
		t.Fatalf("%d %s; the log: %s", got.status, got.body, s.lines)
	}
}

// blockingNode replies only after out.
type blockingNode struct {
	node
	in, out chan struct{}
}

func (p blockingNode) Submit(ctx context.Context, in *event.Request) (event.Reply, bool) {
	p.in <- struct{}{}
	<-p.out
	return p.node.Submit(ctx, in)
}

// TestLargeBodySlotIsHeldUntilResponse: what is built from a large body is as large as the body.
func TestLargeBodySlotIsHeldUntilResponse(t *testing.T) {
	h := build(t)
	p := blockingNode{node{h}, make(chan struct{}), make(chan struct{})}
	api := httpapi.New(httpapi.Config{MaxLargeBodies: 1, Node: p, Admission: h, ReadModel: h, Meter: noMeter{}, Log: slog.New(slog.DiscardHandler), Deadline: time.Minute})
	send := func(key string) int {
		r := httptest.NewRequest(http.MethodPost, "/v1/issue", strings.NewReader(issue+strings.Repeat(" ", httpapi.SmallBody)))
		r.Header.Set("Authorization", bearer(1))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Idempotency-Key", key)
		w := httptest.NewRecorder()
		api.ServeHTTP(w, r)
		return w.Code
	}
	first := make(chan int, 1)
	go func() { first <- send("k1") }()
	<-p.in
	if n, most := api.LargeBodies(); n != 1 || most != 1 {
		t.Errorf("%d of %d places are taken", n, most)
	}
	second := make(chan int, 1)
	go func() { second <- send("k2") }()
	select {
	case got := <-second:
		if got != http.StatusTooManyRequests {
			t.Errorf("a second one meanwhile: %d", got)
		}
	case <-p.in:
		t.Error("a second one got in meanwhile")
		p.out <- struct{}{}
	}
	p.out <- struct{}{}
	if got := <-first; got != http.StatusOK {
		t.Errorf("the first one: %d", got)
	}
	if n, _ := api.LargeBodies(); n != 0 {
		t.Errorf("%d places are still taken", n)
	}
}
