package httpserver

import (
	"net"
	"os"
	"time"
)

// A listener that is simply closed resets connections that are established but not accepted yet, although
// their requests may be on the way. So the kernel first stops new connections, then the established ones
// are accepted, then the listener is closed.
const (
	settling          = 20 * time.Millisecond  // for a TCP handshake that has begun
	waitWithoutFilter = 250 * time.Millisecond // if the kernel cannot stop new connections
	backlog           = 4096                   // default limit of the kernel for connections that are not accepted yet
)

// shut starts to close the listener. l.closed is closed when it is done.
func (l *listener) shut() {
	turnAway(l.Listener)
	until := time.Now().Add(waitWithoutFilter)
	l.shutting.Store(&until)
	l.wake(time.Now().Add(settling)) // ends an Accept that waits
}

// look counts how many times in a row no connection was waiting, and sets the deadline of the next Accept.
// Once is not enough: a goroutine may wake up after the deadline although a connection is waiting, and an
// Accept after its deadline accepts nothing.
func (l *listener) look(looks int, err error, until time.Time) int {
	now := time.Now()
	l.wake(now.Add(settling))
	if err == nil {
		if until.Before(now) {
			l.late++
		}
		return 0
	}
	return looks + 1
}

func (l *listener) wake(at time.Time) {
	if timed, ok := l.Listener.(interface{ SetDeadline(time.Time) error }); ok {
		_ = timed.SetDeadline(at) // fails only if the listener was closed meanwhile
	}
}

// closeListener closes the listener.
func (l *listener) closeListener() error {
	_ = l.Listener.Close() // Kill may have closed it
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.hasEnded {
		l.hasEnded = true
		close(l.closed)
	}
	l.settle()
	return net.ErrClosed
}

// turnAway stops new connections without closing the listener.
func turnAway(l net.Listener) {
	switch l := l.(type) {
	case *net.TCPListener:
		ignoreHandshakes(l)
	case *net.UnixListener:
		_ = os.Remove(l.Addr().String())
		l.SetUnlinkOnClose(false) // another process may use the path by then
	}
}
