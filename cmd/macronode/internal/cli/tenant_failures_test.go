package cli

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFailuresOfATenantSpareOthers: most requests to an upstream fail, all of them of one tenant. The circuit stays closed
// for both tenants, because the requests of the other succeed.
func TestFailuresOfATenantSpareOthers(t *testing.T) {
	t.Parallel()
	p := startNode(t, `upstreams={"app":{"url":"`+newUpstream(t)+`","max_attempts":1}}`, `routes=[{"path":"/","upstream":"app"}]`)
	boot, err := os.ReadFile(filepath.Join(p.dir, "bootstrap.key"))
	if err != nil {
		t.Fatal(err)
	}
	own := strings.TrimSpace(string(boot))
	other, _ := p.makeKey(t, own, `{"name":"other","scopes":["read"],"tenant":"9"}`)
	for range 15 {
		if status, id := p.requestID(t, http.MethodGet, "/list", "Authorization", "Bearer "+own); status != http.StatusOK {
			t.Fatalf("a request that succeeds: %d\n%s", status, p.explainText(t, id))
		}
		for range 3 {
			if status, id := p.requestID(t, http.MethodPost, "/refuses", "Authorization", "Bearer "+other); status != http.StatusServiceUnavailable || strings.Contains(p.explainText(t, id), "circuit breaker open") {
				t.Fatalf("a request that fails: %d\n%s", status, p.explainText(t, id))
			}
		}
	}
	if text := p.adminText(t, "/metrics"); !strings.Contains(text, "\n"+`circuit_state{callers="authenticated",upstream="app"} 0`+"\n") {
		t.Error("the circuit is not closed")
	}
}
