package httpserver

import (
	"context"
	"fmt"
	"time"

	"macronode/core/rejection"
	"macronode/core/types"
)

// limitOfRejected is the limit of rejected requests in the log. It is not configured.
var limitOfRejected = fmt.Sprintf("%d rejected requests at once", rejection.Burst)

// MarkRejected records that a request is rejected, before its response begins. If its peer is above
// the limit of core/rejection, the connection ends with the response: with HTTP/1, requests that the
// client has sent behind it are not read; with HTTP/2, the client gets a GOAWAY, and further streams are reset.
func MarkRejected(request context.Context) {
	if c, ok := request.Value(connKey{}).(*conn); ok {
		c.reject()
	}
}

// reject records that a request is rejected. It returns false if its peer is above the limit: then the connection is to end.
func (c *conn) reject() (within bool) {
	if c.isPaid() || c.of.takeCredit(c) {
		return true
	}
	if !c.closes.Swap(true) {
		callHook(c.of.hooks.RejectedFlood)
		c.of.crowdOfRejected.note(time.Now(), c.peer, limitOfRejected, 0)
	}
	return false
}

// pay notes a response of success. It pays for one rejected request of its connection.
func (c *conn) pay() {
	if c.paid.Load() < rejection.MaxPaid {
		c.paid.Add(1)
	}
}

// isPaid reports whether responses have paid for one more rejected request.
func (c *conn) isPaid() bool {
	for {
		n := c.paid.Load()
		if n == 0 || c.paid.CompareAndSwap(n, n-1) {
			return n > 0
		}
	}
}

// takeCredit takes the credit of the peer of a connection for a rejected request. It returns false if
// there is none. Peers without a limit of connections have none of rejected requests.
func (l *listener) takeCredit(c *conn) (within bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !c.hasShare() || l.rejected.Reject(l.instant(), c.peer)
}

// delay sets the delay of a new connection. The caller holds l.mu.
func (l *listener) delay(c *conn) {
	if !c.hasShare() {
		return
	}
	if c.delay = min(l.rejected.Delay(l.instant(), c.peer), l.maxDelay); c.delay > 0 {
		c.gone = make(chan struct{})
	}
}

// hasShare reports whether the peer of a connection has a limit. The caller holds of.mu.
func (c *conn) hasShare() bool { return c.holder != nil && c.holder.share > 0 }

func (l *listener) instant() types.Instant { return types.Instant(l.now().Sub(l.began)) }

// awaitStart waits until a connection starts: its delay is over, it was closed, the listener was
// closed, or done is. Meanwhile it rests, and gives way to others.
func (c *conn) awaitStart(done <-chan struct{}) {
	if c.delay == 0 {
		return
	}
	t := time.NewTimer(c.delay)
	defer t.Stop()
	c.delay = 0
	select {
	case <-t.C:
	case <-c.gone:
	case <-c.of.closed:
	case <-done:
	}
	c.headerBegan.Store(c.of.now().UnixNano())
}
