package main

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"macronode/adapters/accesslog"
	"macronode/adapters/config"
	"macronode/adapters/decisions"
	"macronode/adapters/httpapi"
	"macronode/core/event"
	"macronode/core/types"
)

// TestEveryBoundHasASentence: whichever bound refuses, a person is told what it is.
func TestEveryBoundHasASentence(t *testing.T) {
	for w := range event.NumRejectReasons {
		if bounds[w.String()] == "" {
			t.Errorf("%v is not explained", w)
		}
	}
	if len(bounds) != int(event.NumRejectReasons)+1 || bounds[httpapi.Gone] == "" {
		t.Errorf("%d sentences for %d bounds, and for who left", len(bounds), event.NumRejectReasons)
	}
}

func TestExplained(t *testing.T) {
	got := explained(&decisions.Decision{ID: "d_1", At: time.UnixMilli(0).UTC(), Config: "c0ffee", Route: "issue", Peer: "127.0.0.1:9", Class: "authed", Facet: "wallet",
		Key: "00000000000000ff", Tenant: 7, Status: 429, Code: "busy", Method: "POST", Path: "/v1/issue", Why: "quota_exceeded", Rule: "each", Left: 3, ResetMS: 1500, RetryMS: 200, Told: "2", Ahead: 2, Shadow: []string{"soon"}, TookUS: 80})
	want := strings.TrimPrefix(`
decision    d_1, at 1970-01-01T00:00:00.000Z, configuration c0ffee
request     POST /v1/issue (issue) from 127.0.0.1:9, class authed, facet wallet
key         00000000000000ff of tenant 7
response    429 busy, 0 bytes in both directions, after 80µs
admission   rejected: the quota is used up
queue       2 ahead of it, waited 0s
quota       each has 3 left, full again in 1.5s
retry       may be admitted after 200ms
retry       Retry-After: 2 s; the value of a 429 is randomised to spread retries
shadow      soon would have rejected it
`, "\n")
	if got != want {
		t.Errorf("%s", got)
	}
}

// TestExplainedBehindTheGate: what was let in and refused all the same is told why, what was cut
// is not done, and a route has its name.
func TestExplainedBehindTheGate(t *testing.T) {
	l := &life{decisions: decisions.New(), access: accesslog.New(slog.DiscardHandler)}
	ail := types.Conditions(0).With(types.DiskFull).With(types.JournalStalled)
	for _, c := range []struct {
		d    httpapi.Decision
		says []string
	}{
		{httpapi.Decision{Status: 401, Code: "unauthorized", Lacks: "It showed no API key."}, []string{"admission   admitted\n", "detail      It showed no API key.\n"}},
		{httpapi.Decision{Status: 503, Code: "unavailable", Ailing: ail}, []string{"node        not serving: degraded by journal_stalled, disk_full"}},
		{httpapi.Decision{Status: 503, Code: "unavailable", Unmet: types.Conditions(0).With(types.DependencyJournal)}, []string{"node        not serving: waiting for journal"}},
		{httpapi.Decision{Status: 200, Cut: true}, []string{"response    200 aborted, "}},
		{httpapi.Decision{Status: 200}, []string{"response    200 ok, "}},
	} {
		c.d.ID, c.d.Under = "d_1", new(httpapi.Face)
		keeps{l}.Keep(c.d)
		d, _ := l.decisions.Find("d_1")
		if got := explained(&d); !contains(got, c.says) {
			t.Errorf("%s\nwants %q", got, c.says)
		}
	}
	c := &config.Config{Routes: []config.Route{{Name: "shop"}, {}}}
	if routeName(c, 0) != "shop, routes[0]" || routeName(c, 1) != "routes[1]" {
		t.Errorf("%s, %s", routeName(c, 0), routeName(c, 1))
	}
}

// TestWhoLeftWasNotLetIn: of a request whose client left before its turn nobody says that it
// was let in, nor how long its queue was, which it was never told.
func TestWhoLeftWasNotLetIn(t *testing.T) {
	l := &life{decisions: decisions.New(), access: accesslog.New(slog.DiscardHandler)}
	for code, want := range map[string]string{httpapi.Gone: "admission   " + bounds[httpapi.Gone] + "\n", "": "admission   admitted\nqueue       0 ahead of it"} {
		keeps{l}.Keep(httpapi.Decision{ID: "d_" + code, Code: code, Under: new(httpapi.Face)})
		d, _ := l.decisions.Find("d_" + code)
		if got := explained(&d); !strings.Contains(got, want) || strings.Contains(got, "admission   admitted") == (code == httpapi.Gone) || strings.Contains(got, "queue") == (code == httpapi.Gone) {
			t.Errorf("%q:\n%s", code, got)
		}
	}
}
