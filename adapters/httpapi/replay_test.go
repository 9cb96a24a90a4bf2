package httpapi_test

import (
	"testing"

	"macronode/adapters/httpapi"
	"macronode/core/accounting"
	"macronode/core/event"
)

// A node without writes still answers replays. It rejects new requests itself.
func TestReplaysWithoutWrites(t *testing.T) {
	s := serve(t, build(t))
	s.send(s.post("issue", "k1", issue))
	first := s.send(s.post("transfer", "k2", transfer))
	s.set(func(st *event.Status) { st.Writes, st.Ready = false, false })
	again := s.send(s.post("transfer", "k2", transfer))
	if first.status != 200 || again.status != 200 || again.body != first.body || again.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("got %d %s, and then %d %s", first.status, first.body, again.status, again.body)
	}
	other := s.send(s.post("transfer", "k2", `{"from":"a","to":"b","asset":"USD/2","amount_minor":"8","nonce":1}`))
	if other.status != 422 {
		t.Errorf("another question under its key: %d %s", other.status, other.body)
	}
}

// A replay is no usage: the request was counted when it had its effect.
func TestReplaysAreNotCounted(t *testing.T) {
	m := &meteredRequests{usage: make(chan accounting.Request, 9)}
	s := serve(t, build(t), func(c *httpapi.Config) { c.Metering = m })
	for i, want := range []string{"", "true", "true"} {
		if a := s.send(s.post("issue", "k", issue)); a.status != 200 || a.header.Get("Idempotency-Replayed") != want {
			t.Fatalf("request %d: %d %v %s", i, a.status, a.header, a.body)
		}
	}
	if n := len(m.usage); n != 1 || m.canceled != 2 {
		t.Errorf("counted %d, canceled %d", n, m.canceled)
	}
}
