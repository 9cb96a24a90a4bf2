package httpserver

import "sync"

// guests are the requests that came before the Stop.
type guests struct {
	mu   sync.Mutex
	in   int
	over bool // who comes now is none
	none chan struct{}
}

func newGuests() *guests { return &guests{none: make(chan struct{})} }

// come counts a request in; false when it is no guest.
func (g *guests) come() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.over {
		g.in++
	}
	return !g.over
}

// leave counts it out.
func (g *guests) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.in--
	g.settle()
}

// last counts nobody in any more: what it returns is closed when all are out.
func (g *guests) last() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.over {
		g.over = true
		g.settle()
	}
	return g.none
}

func (g *guests) settle() {
	if g.over && g.in == 0 {
		close(g.none)
	}
}
