package main

import "time"

const (
	firstPause = 50 * time.Millisecond // the longest pause after the first attempt
	mostPause  = time.Second           // and after later ones
	oneAttempt = 10 * time.Second
)

// attempt is what became of one sending of a request.
type attempt struct {
	status int           // of HTTP; 0: no answer
	code   string        // of the problem, if it was one
	sent   bool          // it may have reached the node
	after  time.Duration // Retry-After
}

// judge says whether the same request shall be sent again, and whether it is in
// doubt: it may have been done, and nobody has said so. Doubt is what there was
// before this attempt. All attempts carry one idempotency key, so that asking again
// is safe; what ends a doubt is an answer that was given after looking the key up.
func judge(a attempt, doubt bool) (again, still bool) {
	switch {
	case a.status == 0 && !a.sent:
		return doubt, doubt // nobody is there: worth a wait only where something may have been done
	case a.status == 0, a.status == 502, a.status == 504, a.code == "in_progress":
		return true, true
	case a.status == 429, a.status == 503:
		return true, doubt // this attempt decided nothing; an earlier one may have
	case a.status >= 300 && a.status < 400, a.status >= 500:
		return false, true
	case a.status >= 400 && early(a.code):
		return false, doubt
	}
	return false, false
}

// early reports that a refusal with this code comes before the key is looked up, or
// from somebody who does not know our codes.
func early(code string) bool {
	switch code {
	case "", "bad_request", "unauthorized", "forbidden", "not_found", "method_not_allowed",
		"payload_too_large", "unsupported_media_type":
		return true
	}
	return false
}

// pause is how long to wait after the n-th attempt, from 0: what the node asks for,
// and a part of a bound that doubles, so that those who were turned away together
// do not come back together. Roll is from [0, 1).
func pause(n int, after time.Duration, roll float64) time.Duration {
	most := firstPause
	for range n {
		most = min(2*most, mostPause)
		if most == mostPause {
			break
		}
	}
	return after + time.Duration(roll*float64(most))
}
