package httpapi_test

import (
	"context"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"macronode/adapters/httpapi"
	"macronode/core/event"
)

// lastHolder returns the holder of the last permit.
func (h *backend) lastHolder() httpapi.Holder {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.holder
}

// losingNode is a node that ends the key of a request while it decides that request.
type losingNode struct{ node }

func (n losingNode) Submit(ctx context.Context, in *event.Request) (event.Reply, bool) {
	n.lastHolder().LosePermit(event.RejectKeyEnded)
	if err := ctx.Err(); err != nil {
		return event.Reply{Problem: event.OutcomeUnknown}, true
	}
	return n.node.Submit(ctx, in)
}

// TestDecidedRequestIsAnswered: a request whose key ends while the node decides it is answered, and that is no rejection. Its connection
// serves no other request.
func TestDecidedRequestIsAnswered(t *testing.T) {
	h, kept := build(t), new(decisionLog)
	s := serve(t, h, func(c *httpapi.Config) { c.Node, c.Decisions = losingNode{node{h}}, kept })
	for n := range 3 {
		r := s.post("issue", "k"+string(rune('0'+n)), issue)
		if a := s.send(r); a.status != http.StatusOK {
			t.Fatalf("%d %s", a.status, a.body)
		}
		if d := kept.all[n]; d.Verdict.Reason != event.Admitted || d.Truncated {
			t.Errorf("%+v", d)
		}
	}
	if n := s.count.of["barred internal key_ended"]; n != 0 {
		t.Errorf("%d requests count as rejected", n)
	}
}

// TestEndedKeyIsNotSubmitted: a request whose key ends while its body arrives gets 401, and the node does not see it.
func TestEndedKeyIsNotSubmitted(t *testing.T) {
	h, kept := build(t), new(decisionLog)
	s := serve(t, h, func(c *httpapi.Config) { c.Decisions = kept })
	body, end := io.Pipe()
	r := s.post("issue", "k1", "")
	r.Body, r.ContentLength = body, int64(len(issue))
	s.client.Transport = http.DefaultTransport // the checker reads the whole body first
	t.Cleanup(s.client.CloseIdleConnections)
	asked := make(chan answer, 1)
	go func() { asked <- s.send(r) }()
	_, err := io.WriteString(end, issue[:5])
	noError(t, err)
	for end := time.Now().Add(time.Minute); s.lastHolder() == nil; runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatal("it is not admitted")
		}
	}
	s.lastHolder().LosePermit(event.RejectKeyEnded)
	a := <-asked
	_ = end.Close()
	if a.status != http.StatusUnauthorized || len(h.requests) > 0 || !strings.Contains(a.body, "unauthorized") {
		t.Errorf("%d %s; the node saw %d requests", a.status, a.body, len(h.requests))
	}
	if d := kept.all[0]; d.Verdict.Reason != event.RejectKeyEnded || s.count.of["barred internal key_ended"] != 1 {
		t.Errorf("%+v, counted %v", d.Verdict, s.count.of)
	}
}

// TestEndedKeyAtAdmission: the node may know of the end of a key before the read model, which verified it. The client gets 401.
func TestEndedKeyAtAdmission(t *testing.T) {
	h := build(t)
	s := serve(t, h)
	h.verdict = &event.Decision{Reason: event.RejectKeyEnded, Problem: event.RejectKeyEnded.Problem()}
	a := s.send(s.post("issue", "k1", issue))
	if a.status != http.StatusUnauthorized || a.header.Get("Www-Authenticate") != "Bearer" || len(h.requests) > 0 {
		t.Errorf("%d %v %s", a.status, a.header, a.body)
	}
}

// TestEndedKeyEndsWait: a long poll ends when its key does, long before its time.
func TestEndedKeyEndsWait(t *testing.T) {
	h := withMovements(t, true)
	s := serve(t, h, func(c *httpapi.Config) { c.Deadline = time.Hour })
	for _, path := range []string{"/v1/changes?after_seq=3&wait=60000", "/v1/accounts?min_seq=9"} {
		asked, before := make(chan answer, 1), h.waits.Load()
		go func() { asked <- s.send(s.get(path)) }()
		for end := time.Now().Add(time.Minute); h.waits.Load() == before; runtime.Gosched() {
			if time.Now().After(end) {
				t.Fatal("nothing has waited for a minute")
			}
		}
		s.lastHolder().LosePermit(event.RejectKeyEnded)
		select {
		case a := <-asked:
			if a.status != http.StatusUnauthorized {
				t.Errorf("%s: %d %s", path, a.status, a.body)
			}
		case <-time.After(time.Minute):
			t.Fatalf("%s goes on", path)
		}
	}
}

// TestEndedKeyEndsStream: a stream ends when the node takes its permit, and counts as rejected. The read model may know of the end of the
// key before.
func TestEndedKeyEndsStream(t *testing.T) {
	h, kept := build(t), new(decisionLog)
	s := serve(t, h, func(c *httpapi.Config) { c.HeartbeatInterval, c.Decisions = time.Millisecond, kept })
	e := s.listen(t, 1, "")
	key, _ := h.Find(1)
	key.Revoked = true
	h.putKey(key)
	for range 5 {
		if got := e.next(); got != ":" {
			t.Fatalf("it ends before it has lost its permit: %q", got)
		}
	}
	s.lastHolder().LosePermit(event.RejectKeyEnded)
	if got := e.change(); got != `event: end|data: {"reason":"unauthorized"}` {
		t.Errorf("got %q", got)
	}
	if got := e.next(); got != "EOF" {
		t.Errorf("then %q", got)
	}
	if d := kept.all[0]; d.Verdict.Reason != event.RejectKeyEnded || s.count.of["barred internal key_ended"] != 1 {
		t.Errorf("%+v, counted %v", d.Verdict, s.count.of)
	}
}
