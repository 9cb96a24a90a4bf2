package proxy

import (
	"sync"
	"time"
)

// minClientWait is the shortest wait for a client that can be the reason why an endpoint gives up. A shorter one
// may be the way of the body through the network.
const minClientWait = time.Second

// A clientWait sums the time for which an exchange waits for its client: for a part of the body, or until a
// part of the response is taken. Waits in both directions at once count once.
type clientWait struct {
	mu      sync.Mutex
	waiting int // waits in progress
	since   time.Time
	sum     time.Duration // of waits that have ended
}

func (c *clientWait) begin(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting++; c.waiting == 1 {
		c.since = now
	}
}

func (c *clientWait) end(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting--; c.waiting == 0 {
		c.sum += now.Sub(c.since)
	}
}

// total includes a wait in progress.
func (c *clientWait) total(now time.Time) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting > 0 {
		return c.sum + now.Sub(c.since)
	}
	return c.sum
}

// isEndedBySlowClient reports whether an endpoint has closed the connection of an attempt that waited for its
// client for minClientWait, and for longer than for the endpoint. Endpoints limit the time of a body and of a
// response, and a client can use up both.
func (t *exchange) isEndedBySlowClient(reason FailureReason) bool {
	if reason != ConnectionReset {
		return false
	}
	now := time.Now()
	return isMostOf(t.clientWait.total(now), now.Sub(t.upstream.lastAttempt().startedAt))
}

// isMostOf reports whether the wait for a client explains the end of an attempt: it is long, and most of the attempt.
func isMostOf(waited, took time.Duration) bool {
	return waited >= minClientWait && waited > took-waited
}
