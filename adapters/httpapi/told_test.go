package httpapi_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"macronode/adapters/httpapi"
	"macronode/core/event"
	"macronode/core/types"
)

// a shelf keeps decisions for who takes them.
type shelf chan httpapi.Decision

func (s shelf) Keep(d httpapi.Decision) { s <- d }

// TestWhyIsKept: who asks afterwards learns why a request was refused behind the gate, what of
// the node's state kept it out, that its answer is not whole, and when it was told to come back.
func TestWhyIsKept(t *testing.T) {
	h, kept := build(t), make(shelf, 1)
	h.add(event.Key{ID: 9, Tenant: 2, Hash: h.keys[2].Hash, Scopes: event.ScopeRead, Revoked: true})
	h.add(event.Key{ID: 8, Tenant: 2, Hash: h.keys[2].Hash, Scopes: event.ScopeRead, Expires: 1})
	h.set(func(s *event.Status) { s.DegradedBy = s.DegradedBy.With(types.DiskFull) })
	s := serve(t, h, func(c *httpapi.Config) { c.Face.Beyond, c.Decisions = far{}, kept })
	of := func(id types.KeyID, as types.KeyID) string { // the secret of another
		return strings.Replace(bearer(as), bearer(as)[:len("Bearer mk_")+16], bearer(id)[:len("Bearer mk_")+16], 1)
	}
	ail := types.Conditions(0).With(types.DiskFull)
	for _, c := range []struct {
		method, path, auth string
		verdict            *event.Decision
		reply              *event.Reply
		is                 httpapi.Decision
	}{
		{"GET", "/keyed", "", nil, nil, httpapi.Decision{Lacks: "It showed no API key."}},
		{"GET", "/keyed", "Bearer theirs", nil, nil, httpapi.Decision{Lacks: "What it showed is no API key of this node."}},
		{"GET", "/keyed", of(9, 2), nil, nil, httpapi.Decision{Lacks: "The key that it showed was revoked."}},
		{"GET", "/keyed", of(8, 2), nil, nil, httpapi.Decision{Lacks: "The key that it showed had expired."}},
		{"GET", "/nowhere", "", nil, nil, httpapi.Decision{Lacks: "No route fits its host, path, method and header."}},
		{"GET", "/v1/nowhere", "", nil, nil, httpapi.Decision{Lacks: "The API has no such operation."}},
		{"GET", "/a", "", nil, nil, httpapi.Decision{}},
		{"GET", "/gone", "", nil, nil, httpapi.Decision{Again: "9"}},
		{"GET", "/cut", "", nil, nil, httpapi.Decision{Cut: true}},
		{"GET", "/a", "", &event.Decision{Problem: event.RateLimited, Reason: event.RejectQuotaExceeded}, nil, httpapi.Decision{Again: "some"}},
		{"POST", "/v1/issue", bearer(1), nil, &event.Reply{Problem: event.Unavailable}, httpapi.Decision{Ailing: ail, Again: "1"}},
		{"POST", "/v1/issue", bearer(1), nil, &event.Reply{Problem: event.OutcomeUnknown}, httpapi.Decision{Ailing: ail}},
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
		_, _ = io.ReadAll(resp.Body) // to its end, which one that is cut has when all is over
		resp.Body.Close()
		got := <-kept
		if c.is.Again == "some" && got.Again != "" {
			c.is.Again = got.Again
		}
		if got.Lacks != c.is.Lacks || got.Cut != c.is.Cut || got.Ailing != c.is.Ailing || got.Again != c.is.Again || got.Again != resp.Header.Get("Retry-After") {
			t.Errorf("%s %s: %+v, told %v", c.path, c.auth, got, resp.Header)
		}
	}
}

// TestAServiceIsNotTheNode: of a service that nobody is sent to a client is told, and of the node
// where that is what ends.
func TestAServiceIsNotTheNode(t *testing.T) {
	h := build(t)
	s := serve(t, h, func(c *httpapi.Config) { c.Face.Beyond = far{} })
	for phase, want := range map[types.Phase]string{types.Ready: "The service behind this", types.Draining: event.Unavailable.Detail()} {
		h.set(func(s *event.Status) { s.Phase = phase })
		if a := s.send(s.get("/gone")); a.status != http.StatusServiceUnavailable || !strings.Contains(a.body, want) {
			t.Errorf("%v: %d %s", phase, a.status, a.body)
		}
	}
}
