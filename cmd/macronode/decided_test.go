package main

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"macronode/adapters/access"
	"macronode/adapters/decisions"
	"macronode/adapters/httpapi"
	"macronode/core/event"
)

// TestEveryBoundHasASentence: whichever bound refuses, a person is told what it is.
func TestEveryBoundHasASentence(t *testing.T) {
	for w := range event.Whys {
		if bounds[w.String()] == "" {
			t.Errorf("%v is not explained", w)
		}
	}
	if len(bounds) != int(event.Whys)+1 || bounds[httpapi.Gone] == "" {
		t.Errorf("%d sentences for %d bounds, and for who left", len(bounds), event.Whys)
	}
}

func TestExplained(t *testing.T) {
	got := explained(&decisions.Decision{ID: "d_1", At: time.UnixMilli(0).UTC(), Config: "c0ffee", Route: "issue", Peer: "127.0.0.1:9", Class: "authed", Facet: "money",
		Key: "00000000000000ff", Tenant: 7, Status: 429, Code: "busy", Method: "POST", Path: "/v1/issue", Why: "quota", Rule: "each", Left: 3, ResetMS: 1500, RetryMS: 200, Ahead: 2, Shadow: []string{"soon"}, TookUS: 80})
	want := strings.TrimPrefix(`
decision  d_1, at 1970-01-01T00:00:00.000Z, by configuration c0ffee
request   POST /v1/issue (issue) from 127.0.0.1:9, class authed, facet money
key       00000000000000ff of tenant 7
answer    429 busy, 0 bytes both ways, after 80µs
gate      The quota was used up.
queue     2 before it, waited 0s
quota     each has 3 left, and all of it again in 1.5s
retry     in 200ms
shadow    soon would have refused it
`, "\n")
	if got != want {
		t.Errorf("%s", got)
	}
}

// TestWhoLeftWasNotLetIn: of a request whose client left before its turn nobody says that it
// was let in, nor how long its queue was, which it was never told.
func TestWhoLeftWasNotLetIn(t *testing.T) {
	l := &life{decisions: decisions.New(), access: access.New(slog.DiscardHandler)}
	for code, want := range map[string]string{httpapi.Gone: "gate      " + bounds[httpapi.Gone] + "\n", "": "gate      It was let in.\nqueue     0 before it"} {
		keeps{l}.Keep(httpapi.Decision{ID: "d_" + code, Code: code, Under: new(httpapi.Face)})
		d, _ := l.decisions.Find("d_" + code)
		if got := explained(&d); !strings.Contains(got, want) || strings.Contains(got, bounds["admitted"]) == (code == httpapi.Gone) || strings.Contains(got, "queue") == (code == httpapi.Gone) {
			t.Errorf("%q:\n%s", code, got)
		}
	}
}
