package httpapi_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"macronode/adapters/httpapi"
	"macronode/core/event"
	"macronode/core/types"
)

// decisionLog keeps decisions.
type decisionLog struct{ all []httpapi.Decision }

func (d *decisionLog) Keep(of httpapi.Decision) { d.all = append(d.all, of) }

// TestAdmitFields: the class, tenant, key and facet of a request follow from its API key and path.
func TestAdmitFields(t *testing.T) {
	h := build(t)
	h.putKey(event.Key{ID: 9, Tenant: 2, Hash: h.keys[2].Hash, Scopes: event.ScopeRead, Revoked: true})
	s := serve(t, h)
	show := func(auth string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set("Authorization", auth) }
	}
	for _, c := range []struct {
		name   string
		path   string
		change func(*http.Request)
		want   event.Admit
		status int
	}{
		{"an admin key", "/v1/balance?account=a&asset=A", show(bearer(1)), event.Admit{Class: types.ClassInternal, Tenant: 1, Key: 1}, 200},
		{"a key", "/v1/balance?account=a&asset=A", show(bearer(2)), event.Admit{Class: types.ClassAuthed, Tenant: 1, Key: 2}, 200},
		{"a key of another tenant", "/v1/accounts", show(bearer(4)), event.Admit{Class: types.ClassInternal, Tenant: 2, Key: 4, Facet: types.FacetQuery}, 200},
		{"no key", "/openapi.json", func(r *http.Request) { r.Header.Del("Authorization") }, event.Admit{Class: types.ClassAnon}, 200},
		{"a wrong secret", "/v1/accounts", show(strings.Replace(bearer(2), secret(2), secret(3), 1)), event.Admit{Class: types.ClassAnon, Facet: types.FacetQuery}, 401},
		{"a revoked key", "/v1/accounts", show(strings.Replace(bearer(9), secret(9), secret(2), 1)), event.Admit{Class: types.ClassAnon, Facet: types.FacetQuery}, 401},
		{"a claimed priority", "/v1/balance?account=a&asset=A", func(r *http.Request) {
			show(bearer(2))(r)
			r.Header.Set("X-Priority", "internal")
			r.Header.Set("X-Forwarded-For", "10.9.8.7") // a forged peer address, and a priority that the client chose (ron-gate)
		}, event.Admit{Class: types.ClassAuthed, Tenant: 1, Key: 2}, 200},
	} {
		t.Run(c.name, func(t *testing.T) {
			h.admits = nil
			r := s.get(c.path)
			c.change(r)
			if a := s.send(r); a.status != c.status {
				t.Fatalf("%+v", a)
			}
			got := h.admits[0]
			if len(h.admits) != 1 || got.Class != c.want.Class || got.Tenant != c.want.Tenant || got.Key != c.want.Key || got.Facet != c.want.Facet {
				t.Fatalf("%d were admitted, %+v", len(h.admits), got)
			}
			if got.Peer == (types.NameHash{}) || got.TimeLeft != 50*time.Millisecond || got.Route == 0 {
				t.Fatalf("%+v", got)
			}
		})
	}
	peers := []types.NameHash{}
	for range 2 {
		h.admits = nil
		s.send(s.get("/openapi.json"))
		peers = append(peers, h.admits[0].Peer)
	}
	if peers[0] != peers[1] {
		t.Error("another port is another peer")
	}
}

// TestPeer: the client is the other end of the connection, whatever it forwards (ron-gate: forged peer). If that
// is a trusted proxy, the client is the last address that no trusted proxy has.
func TestPeer(t *testing.T) {
	h := build(t)
	s := serve(t, h, func(c *httpapi.Config) {
		c.Snapshot.Trusted = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("10.0.0.0/8")}
	})
	peer := func(s *testServer, forwarded ...string) types.NameHash {
		h.admits = nil
		r := s.get("/openapi.json")
		r.Header["X-Forwarded-For"] = forwarded
		s.send(r)
		return h.admits[0].Peer
	}
	is := func(address string) types.NameHash { return peer(s, address) }
	for _, c := range []struct {
		forwarded []string
		want      types.NameHash
		name      string
	}{
		{[]string{"192.0.2.1"}, is("192.0.2.1"), "behind a trusted proxy"},
		{[]string{"198.51.100.9, 192.0.2.1"}, is("192.0.2.1"), "what an untrusted address forwards is ignored"},
		{[]string{"198.51.100.9", "192.0.2.1, 10.1.1.1"}, is("192.0.2.1"), "through two trusted proxies, in two lines"},
		{[]string{"192.0.2.1, nonsense"}, is("127.0.0.1"), "a malformed address is ignored"},
		{[]string{"10.1.1.1"}, is("10.1.1.1"), "all trusted"},
		{[]string{"2001:db8::1"}, is("2001:db8::ffff"), "one network of IPv6"},
		{[]string{"192.0.2.1:80"}, is("192.0.2.1"), "with a port"},
		{[]string{"[2001:db8::1]:77"}, is("2001:db8::ffff"), "of IPv6, the same"},
		{[]string{"192.0.2.1, "}, is("127.0.0.1"), "an empty address is ignored"},
		{[]string{"::ffff:192.0.2.1"}, is("192.0.2.1"), "one address, written twice"},
	} {
		if got := peer(s, c.forwarded...); got != c.want {
			t.Errorf("%s: %v", c.name, c.forwarded)
		}
	}
	if is("192.0.2.1") == is("192.0.2.2") || is("2001:db8::1") == is("2001:db8:0:1::1") {
		t.Error("two addresses count as one")
	}
	plain := serve(t, h)
	if peer(plain, "192.0.2.1") != peer(plain, "192.0.2.2") || peer(plain) != is("127.0.0.1") {
		t.Error("an untrusted proxy is trusted")
	}
}

// TestAdmissionRejections: a rejected request gets its reason, and the node is not asked.
func TestAdmissionRejections(t *testing.T) {
	h, kept := build(t), new(decisionLog)
	s := serve(t, h, func(c *httpapi.Config) {
		c.Decisions, c.Snapshot.Quotas = kept, []httpapi.Policy{{Name: "all", Quota: 9, Window: time.Second}, {Name: "each", Quota: 1 << 20, Window: time.Minute, Bytes: true}}
	})
	for _, c := range []struct {
		v        event.Decision
		status   int
		code     string
		least    int // seconds
		limit    string
		policy   string
		contains string
	}{
		{event.Decision{Problem: event.RateLimited, Reason: event.RejectQuotaExceeded, Rule: 1, RetryAfter: 12 * time.Second, Reset: 90 * time.Second}, 429, "rate_limited", 12, `"all";r=0;t=90`, `"all";q=9;w=1`, "quota"},
		{event.Decision{Problem: event.RateLimited, Reason: event.RejectQuotaExceeded, Rule: 2, Left: 5}, 429, "rate_limited", 1, `"each";r=5;t=0`, `"each";q=1048576;w=60;qu="content-bytes"`, "quota"},
		{event.Decision{Problem: event.Busy, Reason: event.RejectQueueFull}, 429, "busy", 1, "", "", "queue"},
		{event.Decision{Problem: event.Busy, Reason: event.RejectNoSlots}, 429, "busy", 1, "", "", "too many"},
		{event.Decision{Problem: event.Unavailable, Reason: event.RejectNotServing}, 503, "unavailable", 1, "", "", "was not processed"},
	} {
		kept.all, h.verdict = nil, &c.v
		a := s.send(s.post("issue", "k", issue))
		after, err := strconv.Atoi(a.header.Get("Retry-After"))
		if a.status != c.status || !strings.Contains(a.body, `"code":"`+c.code+`"`) || err != nil || after < c.least || after > c.least+c.least/4+1 || !strings.Contains(a.body, c.contains) {
			t.Errorf("%v: %+v", c.v.Reason, a)
		}
		if s.count.get("barred internal "+c.v.Reason.String()) == 0 {
			t.Errorf("%v is not counted", c.v.Reason)
		}
		if a.header.Get("RateLimit") != c.limit || a.header.Get("RateLimit-Policy") != c.policy {
			t.Errorf("%v: %v", c.v.Reason, a.header)
		}
		if len(kept.all) != 1 || kept.all[0].Verdict.Reason != c.v.Reason || kept.all[0].Status != c.status || !strings.Contains(a.body, kept.all[0].ID) {
			t.Errorf("%v: kept %+v", c.v.Reason, kept.all)
		}
	}
	if len(h.requests) != 0 || len(h.permits) != 0 {
		t.Errorf("the node got %d, %d have permits", len(h.requests), len(h.permits))
	}
	h.verdict, h.rule = nil, 1
	if a := s.send(s.post("issue", "k", issue)); a.status != 200 || a.header.Get("RateLimit") != `"all";r=3;t=2` {
		t.Errorf("%+v", a)
	}
}

// TestClientDisconnectsWhileQueued: a client that disconnects while it waits gets no response and is not counted
// as a timeout.
func TestClientDisconnectsWhileQueued(t *testing.T) {
	h, kept, meter := build(t), new(decisionLog), &count{of: make(map[string]int)}
	h.verdict = &event.Decision{Reason: event.RejectNoSlots} // no slot, so that Admit returns false
	api := httpapi.New(httpapi.Config{Node: node{h}, Admission: h, ReadModel: h, Index: fakeIndex{h}, Meter: meter, Log: slog.New(slog.DiscardHandler), Decisions: kept, Snapshot: httpapi.ConfigSnapshot{Proxy: fakeProxy{}}})
	for _, path := range []string{"/a", "/v1/balance", "/v1/nowhere"} {
		ctx, leave := context.WithCancel(t.Context())
		leave()
		w := httptest.NewRecorder()
		func() {
			defer func() {
				if err, _ := recover().(error); !errors.Is(err, http.ErrAbortHandler) {
					t.Errorf("%s: %v", path, err)
				}
			}()
			api.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, path, http.NoBody))
		}()
		if w.Body.Len() != 0 || len(kept.all) != 1 || kept.all[0].Status != 0 || kept.all[0].Code != "client_disconnected" {
			t.Errorf("%s: %q, kept %+v", path, w.Body, kept.all)
		}
		kept.all = nil
	}
	if meter.get("timed out timeout") != 0 || meter.get("refused deadline") != 0 {
		t.Errorf("%v", meter.of)
	}
}

// TestPermitIsReturnedOnce: a permit is returned exactly once, however the request ends.
func TestPermitIsReturnedOnce(t *testing.T) {
	h, kept := build(t), new(decisionLog)
	s := serve(t, h, func(c *httpapi.Config) { c.Decisions = kept })
	bare := s.post("issue", "k2", issue)
	bare.Header.Del("Authorization")
	sent := []*http.Request{s.post("issue", "k", issue), s.post("issue", "k", "{"), bare, s.get("/v1/tx/tx_0"), s.get("/v1/balance?account=a&asset=A"), s.get("/v1/nowhere")}
	for _, r := range sent {
		s.send(r)
	}
	h.onFindKey = func() { panic("a bug") }
	s.send(s.post("issue", "k3", issue))
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.permits) != 0 || len(h.admits) != 6 {
		t.Errorf("%d were admitted, %d have permits", len(h.admits), len(h.permits))
	}
	codes := []string{}
	for _, d := range kept.all {
		codes = append(codes, d.Code)
	}
	if !slices.Contains(codes, "unauthorized") || !slices.Contains(codes, "bad_request") || !slices.Contains(codes, "") {
		t.Errorf("kept %v", codes)
	}
}

// TestCompletions: a permit is returned with the completion of its request. It is rejected if the node does not
// serve it, aborted if its outcome is unknown or the shutdown cut it, and done otherwise, also if it was refused
// or its client left.
func TestCompletions(t *testing.T) {
	ends := errors.New("the server ends")
	withProblem := func(p event.Problem) *event.Reply { return &event.Reply{Problem: p} }
	for _, c := range []struct {
		name  string
		path  string
		reply *event.Reply // nil: there is none
		why   error        // of which its context ends
		want  event.Completion
	}{
		{"answered by an upstream", "/a", nil, nil, event.CompletionDone},
		{"refused", "/keyed", nil, nil, event.CompletionDone},
		{"503 of an upstream", "/their-503", nil, nil, event.CompletionDone},
		{"not served", "/gone", nil, nil, event.CompletionRejected},
		{"not served by the node", "/v1/issue", withProblem(event.Unavailable), nil, event.CompletionRejected},
		{"refused by the node", "/v1/issue", withProblem(event.Forbidden), nil, event.CompletionDone},
		{"outcome unknown", "/v1/issue", withProblem(event.OutcomeUnknown), nil, event.CompletionAborted},
		{"client left", "/v1/issue", nil, context.Canceled, event.CompletionDone},
		{"cut while it waits", "/v1/issue", nil, ends, event.CompletionAborted},
		{"cut in its response", "/cut", nil, ends, event.CompletionAborted},
		{"client left in its response", "/cut", nil, context.Canceled, event.CompletionDone},
		{"a tunnel that was cut", "/cut-tunnel", nil, nil, event.CompletionAborted},
	} {
		h := build(t)
		h.reply, h.silent = c.reply, c.why != nil
		api := httpapi.New(httpapi.Config{Node: node{h}, Admission: h, ReadModel: h, Index: fakeIndex{h}, Meter: &count{of: make(map[string]int)}, Log: slog.New(slog.DiscardHandler),
			Deadline: time.Minute, Snapshot: httpapi.ConfigSnapshot{Proxy: fakeProxy{}}, ShutdownCause: ends})
		ctx, end := context.WithCancelCause(t.Context())
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, c.path, strings.NewReader(issue))
		r.Header = http.Header{"Authorization": {bearer(1)}, "Content-Type": {"application/json"}, "Idempotency-Key": {"k"}}
		if c.path == "/keyed" {
			delete(r.Header, "Authorization")
		}
		if c.why != nil {
			end(c.why)
		}
		func() {
			defer func() { _ = recover() }() // a response that is cut
			api.ServeHTTP(httptest.NewRecorder(), r)
		}()
		end(nil)
		if len(h.permits) != 0 || !slices.Equal(h.completions, []event.Completion{c.want}) {
			t.Errorf("%s: finished as %v, want %v", c.name, h.completions, c.want)
		}
	}
}

// TestAdmissionIsAskedWhileDraining: while the node drains, admission rejects requests and counts them. Before the
// node serves, and when it aborts, admission is not asked.
func TestAdmissionIsAskedWhileDraining(t *testing.T) {
	h := build(t)
	s := serve(t, h, func(c *httpapi.Config) { c.Snapshot.Proxy = fakeProxy{} })
	h.verdict = &event.Decision{Problem: event.Unavailable, Reason: event.RejectNotServing}
	for _, phase := range []types.Phase{types.Starting, types.Draining, types.Aborting} {
		s.set(func(st *event.Status) { st.Reads, st.Phase = false, phase })
		for _, path := range []string{"/a", "/v1/balance", "/v1/nowhere"} {
			h.admits = nil
			if a := s.send(s.get(path)); a.status != 503 || len(h.admits) == 1 != (phase == types.Draining) {
				t.Errorf("%v: %s: %d, %d were admitted", phase, path, a.status, len(h.admits))
			}
		}
	}
}
