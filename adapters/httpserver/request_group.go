package httpserver

import "sync"

// requestGroup counts the requests that arrived before Stop.
type requestGroup struct {
	mu     sync.Mutex
	count  int
	closed bool // later requests are not counted
	empty  chan struct{}
}

func newRequestGroup() *requestGroup { return &requestGroup{empty: make(chan struct{})} }

// enter counts a request. It returns false after close.
func (g *requestGroup) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		g.count++
	}
	return !g.closed
}

// leave ends a request.
func (g *requestGroup) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.count--
	g.checkEmpty()
}

// close stops counting. The returned channel is closed when all requests have ended.
func (g *requestGroup) close() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		g.closed = true
		g.checkEmpty()
	}
	return g.empty
}

func (g *requestGroup) checkEmpty() {
	if g.closed && g.count == 0 {
		close(g.empty)
	}
}
