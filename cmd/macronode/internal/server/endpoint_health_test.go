package server

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"macronode/adapters/proxy"
	"macronode/core/event"
)

// TestUnhealthyEndpointIsLogged: the log names an unhealthy endpoint with the result of its checks, and when it is
// healthy again. An endpoint that flaps has a line every ten seconds with the number of changes.
func TestUnhealthyEndpointIsLogged(t *testing.T) {
	var text strings.Builder
	l := &endpointHealth{log: slog.New(slog.NewTextHandler(&text, nil))}
	refused, fine, failed := proxy.CheckResult{Reason: proxy.ConnectionRefused}, proxy.CheckResult{Status: 200}, proxy.CheckResult{Reason: proxy.BadStatus, Status: 500}
	for _, c := range []struct {
		at       int // second
		of       uint8
		met      proxy.CheckResult
		ill      uint16
		contains string
	}{
		{0, 1, refused, 0, ""}, // one failure is not enough
		{1, 1, refused, 2, `level=WARN msg="endpoint unhealthy: health checks fail, no requests are sent to it" upstream=app endpoint=http://e1 result=connection_refused changes=1 healthy=1 ejected=0 unhealthy=1`},
		{2, 1, refused, 2, ""},
		{2, 0, failed, 3, `endpoint=http://e0 result="status 500" changes=1 healthy=0 ejected=0 unhealthy=2`},
		{3, 0, failed, 1, ""}, // the state of the other endpoint is in its own lines
		{4, 1, fine, 1, ""},
		{5, 1, refused, 3, ""},
		{12, 1, refused, 3, `endpoint=http://e1 result=connection_refused changes=2 `},
		{13, 1, refused, 3, ""},
		{30, 1, fine, 1, `level=INFO msg="endpoint healthy: requests are sent to it" upstream=app endpoint=http://e1 result="status 200" changes=1 healthy=1 ejected=0 unhealthy=1`},
		{31, 1, refused, 3, ""},
		{32, 1, fine, 1, ""},
		{41, 1, fine, 1, `level=INFO`},
	} {
		text.Reset()
		c.met.Endpoint = fmt.Sprintf("http://e%d", c.of)
		sick := uint8(c.ill&1 + c.ill>>1)
		l.logChange(time.Unix(1000+int64(c.at), 0), event.HealthChecked{Upstream: 3, Endpoint: c.of}, c.met, "app", &event.UpstreamStats{Unhealthy: sick, Healthy: 2 - sick, UnhealthyBits: c.ill})
		if got := text.String(); (got == "") != (c.contains == "") || !strings.Contains(got, c.contains) {
			t.Errorf("%+v: %q", c, got)
		}
	}
	if all := l.unhealthy(3); len(all) != 1 || all[0].Endpoint != "http://e0" || checkResult(all[0]) != "status 500" {
		t.Errorf("%+v", all)
	}
	at := time.Unix(9999, 0) // another endpoint has the number of e0 now
	if n, tell := l.record(at, event.HealthChecked{Upstream: 3}, proxy.CheckResult{Endpoint: "http://new"}, false); tell || n != 0 {
		t.Errorf("what was another's is told of a new endpoint")
	}
}
