package client

import (
	"net/http"
	"strconv"
	"time"
)

const (
	firstPause = 50 * time.Millisecond // the longest pause after the first try
	mostPause  = time.Second           // and after later ones
)

// attempt is what became of one try.
type attempt struct {
	status    int  // of HTTP; 0: no answer
	sent      bool // it may have reached the node
	code      Code // of the problem; empty: none, or not a problem of ours
	retryable bool
	after     time.Duration // Retry-After
}

// judge says whether the same request shall be sent again, and whether it is in
// doubt: it may have been done, and nobody has said so. Doubt is what there was
// before this try. All tries carry one idempotency key, so that asking again is safe.
// What ends a doubt is an outcome that the key keeps: any other refusal may have
// overtaken an earlier try that is still on its way.
func judge(a attempt, doubt, patient bool) (again, still bool) {
	switch {
	case a.status == 0 && !a.sent:
		return doubt, doubt // nobody is there: worth a wait only where something may have been done
	case a.status == 0:
		return true, true
	case a.status >= 200 && a.status < 300:
		return false, false
	case a.code == "":
		return stranger(a.status, doubt)
	case a.code == NonceConflict && a.retryable:
		return patient, doubt
	case a.code == Busy, a.code == RateLimited, a.code == IdempotencyFull, a.code == Unavailable:
		return a.retryable, doubt // this try decided nothing; an earlier one may have
	case a.code == InProgress, a.status >= 500:
		return a.retryable, true
	case a.retryable:
		return true, doubt
	}
	return false, doubt && !a.code.kept()
}

// stranger judges an answer that is not a node's own: somebody stands between.
func stranger(status int, doubt bool) (again, still bool) {
	switch status {
	case http.StatusTooManyRequests:
		return true, doubt
	case http.StatusRequestTimeout, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true, true // he may have lost the node in the middle
	}
	return false, doubt || status < 400 || status >= 500
}

// pause is how long to wait after the n-th try, from 0: what the node asks for, and a
// part of a bound that doubles, so that those who were turned away together do not
// come back together. Roll is from [0, 1).
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

// retryAfter reads seconds or a date; what is neither asks for nothing.
func retryAfter(text string, now time.Time) time.Duration {
	if n, err := strconv.ParseUint(text, 10, 31); err == nil {
		return time.Duration(n) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}
