package main

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// TestNoHealthyEndpointIsShown: when health checks fail on every endpoint of an upstream,
// status and readyz name it, and the node stays ready.
func TestNoHealthyEndpointIsShown(t *testing.T) {
	p := serves(t, fmt.Sprintf(`upstreams={"app":{"url":%q,"health":{"path":"/","interval":"100ms","timeout":"100ms","fall":1}},"well":{"url":%q}}`, nobody(t), service(t)),
		`routes=[{"path":"/app","upstream":"app","auth":"none"},{"path":"/","upstream":"well","auth":"none"}]`)
	const want = `"unhealthy_upstreams":["app"]`
	got := ""
	for end := time.Now().Add(20 * time.Second); !strings.Contains(got, want); got = p.asks(t, "/readyz?verbose") { // it fails where that is no 200
		if time.Now().After(end) {
			t.Fatalf("%s\n%s", got, p.log)
		}
		time.Sleep(10 * time.Millisecond)
	}
	if status, _ := p.asked(t, "GET", "/app/x"); status != 503 {
		t.Errorf("a request is answered with %d", status)
	}
	out, err := exec.CommandContext(t.Context(), "macronode", "status", "--data", p.Data).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "no_healthy_endpoint (app)") {
		t.Errorf("%v\n%s", err, out)
	}
}
