package httpserver

import (
	"net"
	"os"
	"time"
)

// How the door is shut. A listener that is just closed resets whoever has connected
// and was not accepted yet, though his request may be on its way. So first nobody
// new may begin to connect, then whoever has begun is let in, then it is closed.
const (
	settling = 20 * time.Millisecond  // for a handshake that has begun
	patience = 250 * time.Millisecond // where the machine cannot keep newcomers out
	backlog  = 4096                   // who had come by then is among so many: no kernel queues more unless it is told to
)

// shut begins it; closed tells when it is done.
func (l *listener) shut() {
	turnAway(l.Listener)
	until := time.Now().Add(patience)
	l.shutting.Store(&until)
	l.wake(time.Now().Add(settling)) // Accept, which waits for newcomers
}

// look counts how often in a row nobody was there, and has Accept look again. Once is not
// enough: a goroutine may wake up late, and find its time over with somebody at the door; and
// a time that is over, however late it is, lets nobody in.
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
		_ = timed.SetDeadline(at) // of a listener that was closed meanwhile
	}
}

// last closes the listener: nothing comes any more.
func (l *listener) last() error {
	_ = l.Listener.Close() // it may have been closed by a Kill
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.over {
		l.over = true
		close(l.closed)
	}
	l.settle()
	return net.ErrClosed
}

// turnAway keeps newcomers out without closing the listener.
func turnAway(l net.Listener) {
	switch l := l.(type) {
	case *net.TCPListener:
		ignoreHandshakes(l)
	case *net.UnixListener:
		_ = os.Remove(l.Addr().String())
		l.SetUnlinkOnClose(false) // the path may be a successor's by then
	}
}
