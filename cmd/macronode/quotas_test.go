package main

import (
	"net/http"
	"strings"
	"testing"
)

// TestSlowInstanceQuotaShortensTurns: the turn of the fair queue fits queue.max_wait.
func TestSlowInstanceQuotaShortensTurns(t *testing.T) {
	for quota, want := range map[string]uint64{
		`quotas=[{"scope":"instance","requests_per_second":50,"burst":10}]`: least,
		`quotas=[{"scope":"peer","requests_per_second":50,"burst":10}]`:     64 << 10,
		"quotas=[]": 64 << 10,
	} {
		c := configured(t, quota)
		if got := firstGate(c).Quantum; got != want {
			t.Errorf("%s: a turn of %d bytes, want %d", quota, got, want)
		}
	}
}

// TestQuotasAreCounted: a request that a quota refuses is counted with it, and so is one that
// a quota in shadow would have refused; its line names both.
func TestQuotasAreCounted(t *testing.T) {
	p := serves(t, "log.access=true", `quotas=[{"name":"firm","scope":"peer","requests_per_second":0.001,"burst":2},{"name":"tried","scope":"peer","requests_per_second":0.001,"burst":1,"shadow":true}]`)
	for _, want := range []int{404, 404, 429} { // the first takes what there is of the shadow
		if status, _ := p.asked(t, http.MethodGet, "/v1/nowhere"); status != want {
			t.Fatalf("%d, want %d", status, want)
		}
	}
	text := p.asks(t, "/metrics")
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
