package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"macronode/adapters/metrics"
	"macronode/adapters/proxy"
	"macronode/core/event"
)

// scraped are the metrics of a node as somebody reads them.
func scraped(m *metrics.Metrics) string {
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
	return w.Body.String()
}

// TestAnIdleTunnelIsNoFailure: one in which nobody said anything is counted as that, and not
// among the tries that failed.
func TestAnIdleTunnelIsNoFailure(t *testing.T) {
	l := &life{metrics: metrics.New(func() event.Status { return event.Status{} })}
	l.metrics.Name([]string{"app"})
	keeps{l}.count(&proxy.Course{Legs: []proxy.Leg{{Upstream: "app", Tries: []proxy.Try{{Ending: event.AttemptCompleted, Symptom: proxy.Idle}}}}})
	if text := scraped(l.metrics); !strings.Contains(text, `upstream_requests_total{outcome="idle_timeout",upstream="app"} 1`) || strings.Contains(text, `upstream_fail_total{symptom="idle"`) {
		t.Errorf("%s", text)
	}
}
