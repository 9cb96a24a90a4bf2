package main

import (
	"testing"
	"time"
)

func TestJudge(t *testing.T) {
	for _, c := range []struct {
		name         string
		attempt      attempt
		doubt        bool
		again, still bool
	}{
		{"done", attempt{status: 200, sent: true}, false, false, false},
		{"done in the end", attempt{status: 200, sent: true}, true, false, false},
		{"nobody is there", attempt{}, false, false, false},
		{"nobody is there any more", attempt{}, true, true, true},
		{"cut off", attempt{sent: true}, false, true, true},
		{"busy", attempt{status: 429, code: "busy", sent: true}, false, true, false},
		{"busy, after a doubt", attempt{status: 429, code: "busy", sent: true}, true, true, true},
		{"not ready", attempt{status: 503, code: "unavailable", sent: true}, false, true, false},
		{"not ready, after a doubt", attempt{status: 503, code: "unavailable", sent: true}, true, true, true},
		{"not known yet", attempt{status: 504, code: "unknown", sent: true}, false, true, true},
		{"the first is still at it", attempt{status: 409, code: "in_progress", sent: true}, false, true, true},
		{"a proxy has lost the node", attempt{status: 502, sent: true}, false, true, true},
		{"a bug of the node", attempt{status: 500, code: "internal", sent: true}, false, false, true},
		{"sent elsewhere", attempt{status: 307, sent: true}, false, false, true},
		{"refused for good", attempt{status: 409, code: "insufficient_funds", sent: true}, false, false, false},
		{"refused for good, after a doubt", attempt{status: 409, code: "insufficient_funds", sent: true}, true, false, false},
		{"another question under the key", attempt{status: 422, code: "idempotency_conflict", sent: true}, true, false, false},
		{"the nonce is ahead", attempt{status: 409, code: "nonce_conflict", sent: true}, false, false, false},
		{"not let in", attempt{status: 401, code: "unauthorized", sent: true}, false, false, false},
		{"not let in any more", attempt{status: 401, code: "unauthorized", sent: true}, true, false, true},
		{"may not, any more", attempt{status: 403, code: "forbidden", sent: true}, true, false, true},
		{"over a limit, after a doubt", attempt{status: 403, code: "limits_exceeded", sent: true}, true, false, false},
		{"somebody else refuses", attempt{status: 404, sent: true}, true, false, true},
	} {
		if again, still := judge(c.attempt, c.doubt); again != c.again || still != c.still {
			t.Errorf("%s: again %v, doubt %v", c.name, again, still)
		}
	}
}

func TestPause(t *testing.T) {
	for n, most := range []time.Duration{50, 100, 200, 400, 800, 1000, 1000} {
		most *= time.Millisecond
		if got := pause(n, 0, 0); got != 0 {
			t.Errorf("the shortest pause after attempt %d is %v", n, got)
		}
		if got := pause(n, 0, 0.5); got != most/2 {
			t.Errorf("half a pause after attempt %d is %v", n, got)
		}
		if got := pause(n, 3*time.Second, 0.5); got != 3*time.Second+most/2 {
			t.Errorf("told to wait 3s, it waits %v", got)
		}
	}
	if got := pause(1<<30, 0, 0.5); got != mostPause/2 {
		t.Error(got)
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		"": 0, "0": 0, "7": 7 * time.Second, "-7": 0, "soon": 0, "99999999999999999999": 0,
		"Thu, 01 Jan 2026 00:00:09 GMT": 9 * time.Second, "Wed, 31 Dec 2025 23:59:59 GMT": 0,
	} {
		if got := retryAfter(text, now); got != want {
			t.Errorf("%q is %v", text, got)
		}
	}
}
