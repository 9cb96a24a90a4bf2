package cli

import (
	"net/http"
	"strings"
	"testing"
)

// TestTurnIsShown: if an instance quota is slow, the status has the effective quantum of the fair queue instead of
// queue.quantum_bytes.
func TestTurnIsShown(t *testing.T) {
	t.Parallel()
	p := startNode(t, "log.level=error", `quotas=[{"scope":"instance","requests_per_second":50,"burst":10}]`)
	if text := p.adminText(t, "/readyz?verbose"); !strings.Contains(text, `"turn_bytes":4096,`) {
		t.Errorf("no turn in\n%s", text)
	}
}

// TestQuotasAreCounted: a request that a quota rejects counts for that quota, and so does one that a shadow quota
// would have rejected. Its log line names both.
func TestQuotasAreCounted(t *testing.T) {
	t.Parallel()
	p := startNode(t, "log.access=true", `quotas=[{"name":"firm","scope":"peer","requests_per_second":0.001,"burst":2},{"name":"tried","scope":"peer","requests_per_second":0.001,"burst":1,"shadow":true}]`)
	for _, want := range []int{404, 404, 429} { // the first takes what there is of the shadow
		if status, _ := p.requestID(t, http.MethodGet, "/v1/nowhere"); status != want {
			t.Fatalf("%d, want %d", status, want)
		}
	}
	text := p.adminText(t, "/metrics")
	for _, want := range []string{`quota_refused_total{outcome="refused",quota="firm"} 1`, `quota_refused_total{outcome="shadow",quota="firm"} 0`, `quota_refused_total{outcome="refused",quota="tried"} 0`} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	if strings.Contains(text, `quota_refused_total{outcome="shadow",quota="tried"} 0`) {
		t.Error("what a quota in shadow would have refused is not counted")
	}
	p.end()
	if text := p.log.String(); strings.Count(text, " quota=firm") != 1 || !strings.Contains(text, " shadow=tried") {
		t.Errorf("%s", text)
	}
}
