package adminapi

import (
	"strings"
	"testing"
	"time"
)

// TestRejectionsAreLoggedAtAPace: of many rejected requests, one in each pause is logged for each
// reason, with the number of those that were not. Each is answered.
func TestRejectionsAreLoggedAtAPace(t *testing.T) {
	d := build(nil)
	at := time.Unix(1000, 0)
	d.now = func() time.Time { return at }
	rejected := func(n int) {
		t.Helper()
		for range n {
			outsider, other := get("/debug/queues"), get("/debug/queues")
			outsider.local, outsider.host = outside, "10.0.0.7:8081"
			other.host = "evil.example"
			if w := d.call(outsider); w.Code != 401 {
				t.Fatalf("without a credential: %d", w.Code)
			}
			if w := d.call(other); w.Code != 403 {
				t.Fatalf("another host: %d", w.Code)
			}
		}
	}
	for _, step := range []struct{ after, requests int }{{0, 50}, {int(rejectionPause) - 1, 3}, {1, 7}, {int(rejectionPause), 1}} {
		at = at.Add(time.Duration(step.after))
		rejected(step.requests)
	}
	for _, text := range []string{"no valid credential", "Host or Origin not allowed"} {
		var silent []string
		for line := range strings.Lines(d.lines.String()) {
			if strings.Contains(line, text) && strings.Contains(line, "level=WARN") && strings.Contains(line, "decision=") {
				_, n, _ := strings.Cut(strings.TrimSpace(line), "not_logged=")
				silent = append(silent, n)
			}
		}
		if got := strings.Join(silent, " "); got != "0 52 6" {
			t.Errorf("%s: lines with %q, want 0, 52 and 6", text, got)
		}
	}
}
