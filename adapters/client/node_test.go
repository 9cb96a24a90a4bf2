package client_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"macronode/adapters/client"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*conn).closeWriteAndWait"), goleak.Cleanup(stop))

}

// A script sends scripted responses in order and records the requests. A response is "status
// body", "cut" (none), "torn" (half of one), "long" or "switch" (to another protocol). The last one is repeated.
type script struct {
	*httptest.Server
	header  http.Header
	answers []string

	mu       sync.Mutex
	requests []string // "method path key body"
	conns    map[string]bool
}

func play(t testing.TB, answers ...string) *script {
	s := &script{answers: answers, header: http.Header{}, conns: map[string]bool{}}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *script) asked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

func (s *script) connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns[r.RemoteAddr] = true
	s.requests = append(s.requests, fmt.Sprintf("%s %s %s %s", r.Method, r.URL, r.Header.Get("Idempotency-Key"), body))
	answer := s.answers[0]
	if len(s.answers) > 1 {
		s.answers = s.answers[1:]
	}
	for name, v := range s.header {
		w.Header()[name] = v
	}
	switch answer {
	case "cut":
		panic(http.ErrAbortHandler)
	case "switch":
		conn, _, _ := http.NewResponseController(w).Hijack()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n")
		_, _ = io.Copy(io.Discard, conn) // until the client closes it
		_ = conn.Close()
		return
	case "torn":
		w.Header().Set("Content-Length", "1000")
		_, _ = io.WriteString(w, receipt[4:40])
		panic(http.ErrAbortHandler)
	case "long":
		_, _ = io.WriteString(w, strings.Repeat(" ", 2000)+receipt[4:])
		return
	}
	var status int
	if _, err := fmt.Sscanf(answer, "%d", &status); err != nil {
		panic(err)
	}
	w.WriteHeader(status)
	_, _ = io.WriteString(w, strings.TrimPrefix(answer[3:], " "))
}

// A clock advances when the client sleeps.
type clock struct {
	mu    sync.Mutex
	at    time.Time
	waits []time.Duration
}

func (c *clock) world() client.Environment {
	return client.Environment{
		Now:               func() time.Time { c.mu.Lock(); defer c.mu.Unlock(); return c.at },
		Rand:              func() float64 { return 0.5 },
		NewIdempotencyKey: func() string { return "drawn" },
		Sleep: func(ctx context.Context, d time.Duration) error {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.waits, c.at = append(c.waits, d), c.at.Add(d)
			return ctx.Err()
		}}
}

// dial returns a client of a script with a simulated clock.
func dial(t testing.TB, s *script, o client.Options) (*client.Client, *clock) {
	t.Helper()
	c := &clock{at: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	if o.Environment.Now == nil {
		o.Environment = c.world()
	}
	k, err := client.New(s.URL, "secret", o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.Close)
	return k, c
}

const (
	receipt  = `200 {"txid":"tx_1","op":"issue","to":"ann","asset":"EUR/2","amount_minor":"5","idem":"drawn","seq":1}`
	busy     = `429 {"code":"busy","detail":"Full.","retryable":true}`
	late     = `503 {"code":"unavailable","detail":"Draining.","retryable":true}`
	full     = `429 {"code":"idempotency_capacity","detail":"No room.","retryable":true}`
	unclear  = `504 {"code":"outcome_unknown","detail":"Not known yet.","retryable":true}`
	running  = `409 {"code":"in_progress","detail":"At it.","retryable":true}`
	internal = `500 {"code":"internal","detail":"A bug.","retryable":true}`
	poor     = `409 {"code":"insufficient_funds","detail":"Too little.","retryable":false}`
	ahead    = `409 {"code":"nonce_conflict","detail":"Ahead.","retryable":true,"expected_nonce":3,"decision_id":"d_1"}`
	usedUp   = `409 {"code":"nonce_conflict","detail":"Used.","retryable":false,"expected_nonce":3}`
	barred   = `403 {"code":"forbidden","detail":"May not.","retryable":false}`
	frozen   = `403 {"code":"account_frozen","detail":"Frozen.","retryable":false}`
	other    = `422 {"code":"idempotency_conflict","detail":"Another.","retryable":false}`
)

var five = client.IssueRequest{To: "ann", Asset: "EUR/2", AmountMinor: "5"}
