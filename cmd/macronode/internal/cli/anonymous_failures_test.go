package cli

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestAnonymousFailuresSpareAuthenticated: requests without a key that fail open the circuit of an
// upstream for such requests only. A caller with a key is served by the same upstream.
func TestAnonymousFailuresSpareAuthenticated(t *testing.T) {
	t.Parallel()
	p := startNode(t, `upstreams={"app":{"url":"`+newUpstream(t)+`","max_attempts":1}}`,
		`routes=[{"path":"/","upstream":"app","auth":"none"},{"path":"/list","upstream":"app"}]`)
	boot, err := os.ReadFile(filepath.Join(p.dir, "bootstrap.key"))
	if err != nil {
		t.Fatal(err)
	}
	key := "Bearer " + strings.TrimSpace(string(boot))
	wasEjected := false // an ejection ends after some seconds
	for range 25 {
		p.requestID(t, http.MethodPost, "/refuses")
		wasEjected = wasEjected || strings.Contains(p.adminText(t, "/metrics"), "\nupstream_endpoints{state=\"ejected_anonymous\",upstream=\"app\"} 1\n")
	}
	if !wasEjected {
		t.Error("the endpoint was never ejected for callers without a key")
	}
	if status, id := p.requestID(t, http.MethodGet, "/odd"); status != http.StatusServiceUnavailable || !strings.Contains(p.explainText(t, id), "circuit breaker open") {
		t.Errorf("a request without a key: %d\n%s", status, p.explainText(t, id))
	}
	if status, id := p.requestID(t, http.MethodGet, "/list", "Authorization", key); status != http.StatusOK {
		t.Errorf("a request with a key: %d\n%s", status, p.explainText(t, id))
	}
	text := p.adminText(t, "/metrics")
	if strings.Contains(text, `circuit_state{callers="anonymous",upstream="app"} 0`) || !strings.Contains(text, `circuit_state{callers="anonymous",upstream="app"} `) {
		t.Error("the circuit of anonymous callers is closed") // open, or half-open if its time has passed
	}
	for _, series := range []string{`circuit_state{callers="authenticated",upstream="app"} 0`,
		`upstream_endpoints{state="ejected",upstream="app"} 0`} {
		if !strings.Contains(text, "\n"+series+"\n") {
			t.Errorf("it is not so that %s", series)
		}
	}
	if is := p.adminText(t, "/readyz?verbose"); !strings.Contains(is, `"broken_upstreams_anonymous":["app"]`) || strings.Contains(is, `"broken_upstreams":`) {
		t.Error(is)
	}
}
