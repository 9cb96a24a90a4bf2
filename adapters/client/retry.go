package client

import (
	"net/http"
	"strconv"
	"time"
)

const (
	firstDelay = 50 * time.Millisecond // the longest delay after the first attempt
	maxDelay   = time.Second           // the longest delay after later ones
)

// attempt is the result of one attempt.
type attempt struct {
	status    int  // of HTTP; 0: no response
	sent      bool // the request may have reached the node
	code      Code // of the problem; empty: not a problem of a node
	retryable bool
	after     time.Duration // Retry-After
}

// decideRetry returns whether the same request is sent again, and whether its outcome is unknown:
// it may have been executed without a response. doubt is that state before this attempt. All
// attempts have the same idempotency key, so repeating is safe. Only a stored outcome of the key
// ends the doubt: any other rejection may have overtaken an earlier attempt.
func decideRetry(a attempt, doubt, patient bool) (again, still bool) {
	switch {
	case a.status == 0 && !a.sent:
		return doubt, doubt // no connection: retry only if an earlier attempt may have been executed
	case a.status == 0:
		return true, true
	case a.status >= 200 && a.status < 300:
		return false, false
	case a.code == "":
		return decideForeign(a.status, doubt)
	case a.code == NonceConflict && a.retryable:
		return patient, doubt
	case a.code == Busy, a.code == RateLimited, a.code == IdempotencyCapacity, a.code == Unavailable:
		return a.retryable, doubt // this attempt was not executed; an earlier one may have been
	case a.code == QuotaExceeded:
		return false, doubt // nothing was stored, though the status is that of a failed server
	case a.code == InProgress, a.status >= 500:
		return a.retryable, true
	case a.retryable:
		return true, doubt
	}
	return false, doubt && !a.code.isFinal()
}

// decideForeign decides for a response of an intermediary, such as a proxy.
func decideForeign(status int, doubt bool) (again, still bool) {
	switch status {
	case http.StatusTooManyRequests:
		return true, doubt
	case http.StatusRequestTimeout, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true, true // it may have lost the connection to the node
	}
	return false, doubt || status < 400 || status >= 500
}

// retryDelay returns the delay after the n-th attempt, from 0: that of Retry-After plus a random
// part of an exponential bound, so that rejected clients do not return at the same time. roll is
// in [0, 1).
func retryDelay(n int, after time.Duration, roll float64) time.Duration {
	most := firstDelay
	for range n {
		most = min(2*most, maxDelay)
		if most == maxDelay {
			break
		}
	}
	return after + time.Duration(roll*float64(most))
}

// retryAfter parses seconds or a date. It returns 0 for anything else.
func retryAfter(text string, now time.Time) time.Duration {
	if n, err := strconv.ParseUint(text, 10, 31); err == nil {
		return time.Duration(n) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}
