package server

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"macronode/adapters/metrics"
	"macronode/adapters/proxy"
	"macronode/core/event"
)

// scrape returns the metrics of a node.
func scrape(m *metrics.Metrics) string {
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
	return w.Body.String()
}

// TestIdleTunnelIsNoFailure: a tunnel that ends without traffic has an outcome of its own and is not a failed
// attempt.
func TestIdleTunnelIsNoFailure(t *testing.T) {
	l := decisionSink{metrics: metrics.New(func() event.Status { return event.Status{} })}
	l.metrics.Name([]string{"app"})
	l.countUpstreams(&proxy.Trace{Upstreams: []proxy.UpstreamTrace{{Upstream: "app", Attempts: []proxy.Attempt{{Result: event.AttemptCompleted, Reason: proxy.IdleTimeout}}}}})
	if text := scrape(l.metrics); !strings.Contains(text, `upstream_requests_total{outcome="idle_timeout",upstream="app"} 1`) || strings.Contains(text, `upstream_fail_total{symptom="idle"`) {
		t.Errorf("%s", text)
	}
}
