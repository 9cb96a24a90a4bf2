package httpapi_test

import (
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"macronode/adapters/httpapi"
)

// TestLargeBodiesAreCounted: one too many is told to come back before any of it is
// read, what is small is not counted, and a place that was taken is given back.
func TestLargeBodiesAreCounted(t *testing.T) {
	small := issue
	large := issue + strings.Repeat(" ", httpapi.Small)
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
		api := httpapi.New(httpapi.Config{Large: c.places, Node: h, Books: h, Meter: still{}, Log: slog.New(slog.DiscardHandler), Deadline: time.Minute})
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

// TestAFrameThatCannotBeReadIsNo404: it would deny a payment that was made.
func TestAFrameThatCannotBeReadIsNo404(t *testing.T) {
	h := build(t)
	s := serve(t, h)
	made := s.send(s.post("issue", "k1", issue))
	txid := made.body[strings.Index(made.body, "tx_"):][:35]
	if got := s.send(s.get("/v1/tx/" + txid)); got.status != http.StatusOK {
		t.Fatalf("%d %s", got.status, got.body)
	}
	h.unread = errors.New("read: input/output error")
	if got := s.send(s.get("/v1/tx/" + txid)); got.status != http.StatusInternalServerError || !strings.Contains(s.lines.String(), "input/output error") {
		t.Fatalf("%d %s; the log: %s", got.status, got.body, s.lines)
	}
}
