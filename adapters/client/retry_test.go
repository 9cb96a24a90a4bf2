package client

import (
	"testing"
	"time"
)

func TestJudge(t *testing.T) {
	ours := func(status int, code Code, retryable bool) attempt {
		return attempt{status: status, code: code, retryable: retryable, sent: true}
	}
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
		{"busy", ours(429, Busy, true), false, true, false},
		{"busy, after a doubt", ours(429, Busy, true), true, true, true},
		{"no room for a key", ours(429, IdempotencyCapacity, true), true, true, true},
		{"not ready", ours(503, Unavailable, true), false, true, false},
		{"not ready, after a doubt", ours(503, Unavailable, true), true, true, true},
		{"not known yet", ours(504, OutcomeUnknown, true), false, true, true},
		{"the first is still at it", ours(409, InProgress, true), false, true, true},
		{"a bug of the node", ours(500, Internal, true), false, true, true},
		{"a failure that a later version knows", ours(503, "novel", true), false, true, true},
		{"a failure that it takes for final", ours(507, "novel", false), false, false, true},
		{"no room in the bucket", ours(507, QuotaExceeded, false), false, false, false},
		{"no room in the bucket, after a doubt", ours(507, QuotaExceeded, false), true, false, true},
		{"a refusal that a later version knows", ours(409, "novel", true), false, true, false},
		{"a final one", ours(409, "novel", false), true, false, true},
		{"refused for good", ours(409, InsufficientFunds, false), false, false, false},
		{"refused for good, after a doubt", ours(409, InsufficientFunds, false), true, false, false},
		{"the nonce is used, after a doubt", ours(409, NonceConflict, false), true, false, false},
		{"the ref is used, after a doubt", ours(409, RefUsed, false), true, false, false},
		{"the hold is over, after a doubt", ours(409, HoldNotActive, false), true, false, false},
		{"another question under the key", ours(422, IdempotencyConflict, false), true, false, false},
		{"an event with other content, after a doubt", ours(422, EventConflict, false), true, false, false},
		{"an event that is too old, after a doubt", ours(422, EventTooOld, false), true, false, true},
		{"no room for usage", ours(429, UsageCapacity, true), true, true, true},
		{"not let in", ours(401, Unauthorized, false), false, false, false},
		{"not let in any more", ours(401, Unauthorized, false), true, false, true},
		{"may not, any more", ours(403, Forbidden, false), true, false, true},
		{"frozen since", ours(403, AccountFrozen, false), true, false, true},
		{"over a limit, which the key may not keep", ours(403, LimitsExceeded, false), true, false, true},
		{"a proxy has lost the node", attempt{status: 502, sent: true}, false, true, true},
		{"a proxy has nobody, or lost him", attempt{status: 503, sent: true}, false, true, true},
		{"a proxy has waited too long", attempt{status: 504, sent: true}, false, true, true},
		{"a proxy has enough", attempt{status: 429, sent: true}, false, true, false},
		{"a proxy's own fault", attempt{status: 500, sent: true}, false, false, true},
		{"sent elsewhere", attempt{status: 307, sent: true}, false, false, true},
		{"somebody else refuses", attempt{status: 404, sent: true}, false, false, false},
		{"somebody else refuses, after a doubt", attempt{status: 404, sent: true}, true, false, true},
	} {
		if again, still := decideRetry(c.attempt, c.doubt, false); again != c.again || still != c.still {
			t.Errorf("%s: again %v, doubt %v", c.name, again, still)
		}
	}
	for _, patient := range []bool{false, true} {
		if again, still := decideRetry(ours(409, NonceConflict, true), true, patient); again != patient || !still {
			t.Errorf("the nonce is ahead: again %v, doubt %v", again, still)
		}
	}
}

func TestPause(t *testing.T) {
	for n, most := range []time.Duration{50, 100, 200, 400, 800, 1000, 1000} {
		most *= time.Millisecond
		if got := retryDelay(n, 0, 0); got != 0 {
			t.Errorf("the shortest pause after try %d is %v", n, got)
		}
		if got := retryDelay(n, 0, 0.5); got != most/2 {
			t.Errorf("half a pause after try %d is %v", n, got)
		}
		if got := retryDelay(n, 3*time.Second, 0.5); got != 3*time.Second+most/2 {
			t.Errorf("told to wait 3s, it waits %v", got)
		}
	}
	if got := retryDelay(1<<30, 0, 0.5); got != maxDelay/2 {
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
