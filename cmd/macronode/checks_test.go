package main

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"macronode/adapters/proxy"
	"macronode/core/event"
)

// TestTheSickAreTold: the log names the endpoint that health checks call sick and what they
// met, and says when it is well again. One that flaps has a line every ten seconds, which says
// how often it has changed.
func TestTheSickAreTold(t *testing.T) {
	var text strings.Builder
	l := &life{log: slog.New(slog.NewTextHandler(&text, nil))}
	refused, fine, failed := proxy.Checkup{Symptom: proxy.Refused}, proxy.Checkup{Status: 200}, proxy.Checkup{Symptom: proxy.BadStatus, Status: 500}
	for _, c := range []struct {
		at   int // second
		of   uint8
		met  proxy.Checkup
		ill  uint16
		says string
	}{
		{0, 1, refused, 0, ""}, // one is not enough
		{1, 1, refused, 2, `level=WARN msg="endpoint unhealthy: health checks fail, no requests are sent to it" upstream=app endpoint=http://e1 result=connection_refused changes=1 healthy=1 ejected=0 unhealthy=1`},
		{2, 1, refused, 2, ""},
		{2, 0, failed, 3, `endpoint=http://e0 result="status 500" changes=1 healthy=0 ejected=0 unhealthy=2`},
		{3, 0, failed, 1, ""}, // that the other is well is said of the other
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
		l.tellChecks(time.Unix(1000+int64(c.at), 0), event.HealthChecked{Upstream: 3, Endpoint: c.of}, c.met, "app", &event.UpstreamStats{Unhealthy: sick, Healthy: 2 - sick, UnhealthyBits: c.ill})
		if got := text.String(); (got == "") != (c.says == "") || !strings.Contains(got, c.says) {
			t.Errorf("%+v: %q", c, got)
		}
	}
	if all := l.checks.ill(3); len(all) != 1 || all[0].Endpoint != "http://e0" || metText(all[0]) != "status 500" {
		t.Errorf("%+v", all)
	}
	at := time.Unix(9999, 0) // e0 is sick, and its place is another's now
	if n, tell := l.checks.saw(at, event.HealthChecked{Upstream: 3}, proxy.Checkup{Endpoint: "http://new"}, false); tell || n != 0 {
		t.Errorf("what was another's is told of a new endpoint")
	}
}

// TestChecksAreTold: an endpoint that fails its checks is named in the log of the node, with
// what they met, and so it is in explain of who was refused for it.
func TestChecksAreTold(t *testing.T) {
	down := nobody(t)
	p := serves(t, fmt.Sprintf(`upstreams={"app":{"url":%q,"health":{"path":"/","interval":"100ms","timeout":"100ms","fall":1}}}`, down), `routes=[{"path":"/","upstream":"app","auth":"none"}]`)
	<-p.log.await("no requests are sent to it\" upstream=app endpoint=" + down + " result=connection_refused changes=1 healthy=0 ejected=0 unhealthy=1")
}
