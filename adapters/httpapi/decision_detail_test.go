package httpapi_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"macronode/adapters/httpapi"
	"macronode/adapters/httpapi/wire"
	"macronode/core/event"
	"macronode/core/types"
)

// TestDecisionKeepsDetail: a decision has the reason of a rejection after admission, the conditions of the node,
// whether the response was truncated, and Retry-After.
func TestDecisionKeepsDetail(t *testing.T) {
	h, kept := build(t), make(keptDecisions, 1)
	h.putKey(event.Key{ID: 9, Tenant: 2, Hash: h.keys[2].Hash, Scopes: event.ScopeRead, Revoked: true})
	h.putKey(event.Key{ID: 8, Tenant: 2, Hash: h.keys[2].Hash, Scopes: event.ScopeRead, Expires: 1})
	h.set(func(s *event.Status) { s.DegradedBy = s.DegradedBy.With(types.DiskFull) })
	s := serve(t, h, func(c *httpapi.Config) { c.Snapshot.Proxy, c.Decisions = fakeProxy{}, kept })
	of := func(id types.KeyID, as types.KeyID) string { // the secret of another key
		return strings.Replace(bearer(as), bearer(as)[:len("Bearer mk_")+16], bearer(id)[:len("Bearer mk_")+16], 1)
	}
	degraded := types.Conditions(0).With(types.DiskFull)
	for _, c := range []struct {
		method, path, auth string
		verdict            *event.Decision
		reply              *event.Reply
		is                 httpapi.Decision
	}{
		{"GET", "/keyed", "", nil, nil, httpapi.Decision{Detail: "It showed no API key."}},
		{"GET", "/keyed", "Bearer theirs", nil, nil, httpapi.Decision{Detail: "What it showed is no API key of this node."}},
		{"GET", "/keyed", of(9, 2), nil, nil, httpapi.Decision{Detail: "The key that it showed was revoked."}},
		{"GET", "/keyed", of(8, 2), nil, nil, httpapi.Decision{Detail: "The key that it showed had expired."}},
		{"GET", "/nowhere", "", nil, nil, httpapi.Decision{Detail: "No route fits its host, path, method and header."}},
		{"GET", "/v1/nowhere", "", nil, nil, httpapi.Decision{Detail: "The API has no such operation."}},
		{"GET", "/a", "", nil, nil, httpapi.Decision{}},
		{"GET", "/gone", "", nil, nil, httpapi.Decision{RetryAfter: "9"}},
		{"GET", "/cut", "", nil, nil, httpapi.Decision{Truncated: true}},
		{"GET", "/a", "", &event.Decision{Problem: event.RateLimited, Reason: event.RejectQuotaExceeded}, nil, httpapi.Decision{RetryAfter: "any"}},
		{"POST", "/v1/issue", bearer(1), nil, &event.Reply{Problem: event.Unavailable}, httpapi.Decision{DegradedBy: degraded, RetryAfter: "1"}},
		{"POST", "/v1/issue", bearer(1), nil, &event.Reply{Problem: event.OutcomeUnknown}, httpapi.Decision{DegradedBy: degraded}},
	} {
		h.verdict, h.reply = c.verdict, c.reply
		r, err := http.NewRequestWithContext(t.Context(), c.method, s.url+c.path, strings.NewReader(`{"to":"a","asset":"USD/2","amount_minor":"1"}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header = http.Header{"Content-Type": {"application/json"}, "Idempotency-Key": {"k"}}
		if c.auth != "" {
			r.Header.Set("Authorization", c.auth)
		}
		plain := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		resp, err := plain.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.ReadAll(resp.Body) // a truncated body ends with the request
		resp.Body.Close()
		got := <-kept
		if c.is.RetryAfter == "any" && got.RetryAfter != "" {
			c.is.RetryAfter = got.RetryAfter
		}
		if got.Detail != c.is.Detail || got.Truncated != c.is.Truncated || got.DegradedBy != c.is.DegradedBy || got.RetryAfter != c.is.RetryAfter || got.RetryAfter != resp.Header.Get("Retry-After") {
			t.Errorf("%s %s: %+v, header %v", c.path, c.auth, got, resp.Header)
		}
	}
}

// TestUnavailableUpstreamIsNotTheNode: if an upstream is unavailable, the detail names the upstream; while the
// node drains, it is that of the node.
func TestUnavailableUpstreamIsNotTheNode(t *testing.T) {
	h := build(t)
	s := serve(t, h, func(c *httpapi.Config) { c.Snapshot.Proxy = fakeProxy{} })
	for phase, want := range map[types.Phase]string{types.Ready: "The service behind this", types.Draining: event.Unavailable.Detail()} {
		h.set(func(s *event.Status) { s.Phase = phase })
		if a := s.send(s.get("/gone")); a.status != http.StatusServiceUnavailable || !strings.Contains(a.body, want) {
			t.Errorf("%v: %d %s", phase, a.status, a.body)
		}
	}
}

// TestUnavailableNamesItsReason: a 503 says in its detail what the node waits for, that it ends, or what
// keeps it from writing. A caller without an API key is not told the conditions.
func TestUnavailableNamesItsReason(t *testing.T) {
	h := build(t)
	s := serve(t, h)
	const not = " The request was not processed."
	for _, c := range []struct {
		change func(*event.Status)
		key    types.KeyID
		detail string
	}{
		{func(s *event.Status) { s.DegradedBy = s.DegradedBy.With(types.DiskFull).With(types.CircuitOpen) }, 1, "The node cannot process this request now, degraded by: disk_full." + not},
		{func(s *event.Status) { s.DegradedBy = s.DegradedBy.With(types.JournalFailed) }, 1, "The node cannot process this request now, degraded by: journal_failed disk_full." + not},
		{func(s *event.Status) { s.DegradedBy = types.Conditions(0).With(types.CircuitOpen) }, 1, event.Unavailable.Detail()},
		{func(s *event.Status) { s.Phase = types.Draining }, 1, "The node is shutting down." + not},
		{func(s *event.Status) {
			s.Phase, s.Reads, s.WaitingFor = types.Starting, false, types.Conditions(0).With(types.DependencyKey)
		}, 1, "The node is starting, and waits for: key." + not},
		{func(*event.Status) {}, 0, "The node is starting." + not},
	} {
		h.set(c.change)
		h.reply = &event.Reply{Problem: event.Unavailable}
		r := s.post("issue", "k", `{"to":"a","asset":"USD/2","amount_minor":"1"}`)
		if r.Header.Del("Authorization"); c.key > 0 {
			r.Header.Set("Authorization", bearer(c.key))
		}
		if a := s.send(r); a.status != http.StatusServiceUnavailable || parse[wire.Problem](t, a).Detail != c.detail {
			t.Errorf("%d %s, want %q", a.status, a.body, c.detail)
		}
	}
}
