package cli

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"macronode/adapters/nettest"
)

// TestNoHealthyEndpointIsShown: if health checks fail on every endpoint of an upstream, status and readyz name it,
// and the node stays ready.
func TestNoHealthyEndpointIsShown(t *testing.T) {
	t.Parallel()
	p := startNode(t, fmt.Sprintf(`upstreams={"app":{"url":%q,"health":{"path":"/","interval":"100ms","timeout":"100ms","fall":1}},"well":{"url":%q}}`, nettest.RefusingAddress(t), newUpstream(t)),
		`routes=[{"path":"/app","upstream":"app","auth":"none"},{"path":"/","upstream":"well","auth":"none"}]`)
	const want = `"unhealthy_upstreams":["app"]`
	got := ""
	for end := time.Now().Add(time.Minute); !strings.Contains(got, want); got = p.adminText(t, "/readyz?verbose") { // it fails unless the status is 200
		if time.Now().After(end) {
			t.Fatalf("%s\n%s", got, p.log)
		}
		time.Sleep(10 * time.Millisecond)
	}
	if status, _ := p.requestID(t, "GET", "/app/x"); status != 503 {
		t.Errorf("a request is answered with %d", status)
	}
	out, err := exec.CommandContext(t.Context(), "macronode", "status", "--data", p.Data).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "no_healthy_endpoint (app)") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestFailedHealthChecksAreReported: the log and explain name an endpoint that fails its health checks, with the
// reason.
func TestFailedHealthChecksAreReported(t *testing.T) {
	t.Parallel()
	down := nettest.RefusingAddress(t)
	p := startNode(t, fmt.Sprintf(`upstreams={"app":{"url":%q,"health":{"path":"/","interval":"100ms","timeout":"100ms","fall":1}}}`, down), `routes=[{"path":"/","upstream":"app","auth":"none"}]`)
	<-p.log.Await("no requests are sent to it\" upstream=app endpoint=" + down + " result=connection_refused changes=1 healthy=0 ejected=0 unhealthy=1")
}
