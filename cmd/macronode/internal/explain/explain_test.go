package explain

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"macronode/adapters/decisions"
	"macronode/adapters/httpapi"
	"macronode/adapters/proxy"
	"macronode/adapters/registry"
	"macronode/core/event"
)

// TestReasonsAreDescribed: each reason of a rejection has a description.
func TestReasonsAreDescribed(t *testing.T) {
	for w := range event.NumRejectReasons {
		if Reasons[w.String()] == "" {
			t.Errorf("%v is not explained", w)
		}
	}
	if len(Reasons) != int(event.NumRejectReasons)+1 || Reasons[httpapi.ClientDisconnected] == "" {
		t.Errorf("%d sentences for %d bounds, and for who left", len(Reasons), event.NumRejectReasons)
	}
}

func TestDecisionText(t *testing.T) {
	got := Decision(&decisions.Decision{ID: "d_1", At: time.UnixMilli(0).UTC(), Config: "c0ffee", Route: "issue", Peer: "127.0.0.1:9", Class: "authed", Facet: "wallet",
		Key: "00000000000000ff", Tenant: 7, Status: 429, Code: "busy", Method: "POST", Path: "/v1/issue", Why: "quota_exceeded", Rule: "each", Left: 3, ResetMS: 1500, RetryMS: 200, RetryAfter: "2", Ahead: 2, Shadow: []string{"soon"}, TookUS: 80})
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

// TestCausesAreDescribed: each cause of a failed request has a description.
func TestCausesAreDescribed(t *testing.T) {
	for _, s := range proxy.FailureReasons() {
		if Symptoms[s] == "" {
			t.Errorf("%s is not explained", s)
		}
	}
	for h := event.RetryAllowed + 1; h < event.NumNoRetryReasons; h++ {
		if NoRetry[h] == "" {
			t.Errorf("%v is not explained", h)
		}
	}
	for s := event.EndpointPicked + 1; s < event.NumNoEndpointReasons; s++ {
		if NoEndpoint[s] == "" {
			t.Errorf("%v is not explained", s)
		}
	}
	page, err := os.ReadFile("../../../../docs/how-to/find-the-cause.md")
	if err != nil {
		t.Fatal(err)
	}
	described, want := tableWords(string(page), "| outcome, symptom |"), slices.Concat([]string{"ok"}, registry.Symptoms, registry.Stops)
	slices.Sort(described)
	slices.Sort(want)
	if !slices.Equal(described, want) {
		t.Errorf("docs/how-to/find-the-cause.md tells of %q, and there are %q", described, want)
	}
	for i, s := range proxy.FailureReasons() {
		if len(registry.Symptoms) != len(Symptoms) || registry.Symptoms[i] != string(s) {
			t.Errorf("%s is not counted", s)
		}
		if slices.Contains(registry.Fails, string(s)) != s.IsEndpointFault() {
			t.Errorf("%s is counted as a failure, or is not: %v", s, s.IsEndpointFault())
		}
	}
	if len(Symptoms) != len(proxy.FailureReasons()) || len(NoRetry) != int(event.NumNoRetryReasons)-1 || len(NoEndpoint) != int(event.NumNoEndpointReasons)-1 {
		t.Error("there are more sentences than causes")
	}
}

// tableWords returns the words in the first column of the table with a head.
func tableWords(page, head string) (words []string) {
	_, rest, _ := strings.Cut(page, "\n"+head)
	rest, _, _ = strings.Cut(rest, "\n\n")
	for line := range strings.SplitSeq(rest, "\n") {
		first, _, _ := strings.Cut(strings.TrimPrefix(line, "|"), "|")
		for i, word := range strings.Split(first, "`") {
			if i%2 == 1 {
				words = append(words, word)
			}
		}
	}
	return words
}
