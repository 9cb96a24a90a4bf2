package httpapi_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"macronode/adapters/httpapi"
	"macronode/core/event"
)

// TestRejectedReportsFaultsOfCallers: a request is reported if it is rejected at no cost for its
// caller, before its response begins. One that has a valid key and is within its quota is not, nor
// one that the node cannot serve.
func TestRejectedReportsFaultsOfCallers(t *testing.T) {
	h := build(t)
	reported := 0
	s := serve(t, h, func(c *httpapi.Config) { c.Rejected = func(context.Context) { reported++ } })
	none := func(r *http.Request) { r.Header.Del("Authorization") }
	quota := &event.Decision{Problem: event.RateLimited, Reason: event.RejectQuotaExceeded, Rule: 1}
	for _, c := range []struct {
		name, path string
		change     func(*http.Request)
		verdict    *event.Decision
		status     int
		want       int
	}{
		{"served", "/v1/balance?account=a&asset=A", nil, nil, 200, 0},
		{"served without a key", "/openapi.json", none, nil, 200, 0},
		{"no key", "/v1/accounts", none, nil, 401, 1},
		{"a wrong key", "/v1/accounts", func(r *http.Request) {
			r.Header.Set("Authorization", strings.Replace(bearer(2), secret(2), secret(3), 1))
		}, nil, 401, 1},
		{"no operation", "/v1/none", none, nil, 404, 1},
		{"no operation, with a key", "/v1/none", nil, nil, 404, 0},
		{"no method", "/v1/accounts", func(r *http.Request) { none(r); r.Method = "BREW" }, nil, 405, 1},
		{"an invalid query, with a key", "/v1/balance?account=a", nil, nil, 400, 0},
		{"a quota", "/v1/accounts", nil, quota, 429, 1},
		{"no capacity, with a key", "/v1/accounts", nil, &event.Decision{Problem: event.Busy, Reason: event.RejectQueueFull}, 429, 0},
		{"no capacity", "/openapi.json", none, &event.Decision{Problem: event.Busy, Reason: event.RejectQueueFull}, 429, 1},
		{"a quota of callers without a key", "/openapi.json", none, quota, 429, 1},
		{"not served", "/openapi.json", none, &event.Decision{Problem: event.Unavailable, Reason: event.RejectNotServing}, 503, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := s.get(c.path)
			if c.change != nil {
				c.change(r)
			}
			h.verdict = c.verdict
			defer func() { h.verdict = nil }()
			if a := s.send(r); a.status != c.status {
				t.Fatalf("%+v", a)
			}
			if reported != c.want {
				t.Errorf("reported %d times, want %d", reported, c.want)
			}
			reported = 0
		})
	}
}
