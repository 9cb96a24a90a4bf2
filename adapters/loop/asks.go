package loop

import (
	"macronode/core/event"
)

// Asks is where those who send requests on ask the node, and wait for what it says. There
// are as many slots as may ask at once; one more waits for one. What the node is told without
// being asked anything keeps its slot until the node has stepped it.
type Asks struct {
	slots []asking
	free  chan uint32
	ring  chan *event.UpstreamQuery // at most one a slot: never full
	over  chan struct{}             // closed when nobody answers any more
}

// asking is one slot.
type asking struct {
	in     event.UpstreamQuery
	nobody bool // waits for the answer
	told   chan event.UpstreamReply
}

func newAsks(most int) *Asks {
	a := &Asks{slots: make([]asking, most), free: make(chan uint32, most), ring: make(chan *event.UpstreamQuery, most), over: make(chan struct{})}
	for i := range a.slots {
		a.slots[i].told = make(chan event.UpstreamReply, 1)
		a.free <- uint32(i)
	}
	return a
}

// ask waits for the node's word; false: it has ended.
func (a *Asks) ask(in event.UpstreamQuery) (event.UpstreamReply, bool) {
	at, ok := a.put(in, false)
	if !ok {
		return event.UpstreamReply{}, false
	}
	select {
	case told := <-a.slots[at].told:
		a.free <- at
		return told, true
	case <-a.over:
		return event.UpstreamReply{}, false
	}
}

// put gives the node a word, in a slot of its own; false: the node has ended.
func (a *Asks) put(in event.UpstreamQuery, nobody bool) (at uint32, ok bool) {
	select {
	case at = <-a.free:
	case <-a.over:
		return 0, false
	}
	s := &a.slots[at]
	s.in, s.nobody = in, nobody
	s.in.Slot = at
	a.ring <- &s.in
	return at, true
}

// deliver hands an answer to whoever waits for it. Where nobody does, its slot is free.
func (a *Asks) deliver(t event.UpstreamReply) {
	s := &a.slots[t.Slot]
	if s.nobody {
		a.free <- t.Slot
		return
	}
	s.told <- t
}

// Pick says where a request goes, Retry where its next try does.
func (a *Asks) Pick(in event.Pick) event.Picked {
	return a.picked(event.UpstreamQuery{Kind: event.QueryPick, Pick: in})
}

func (a *Asks) Retry(in event.Retry) event.Picked {
	return a.picked(event.UpstreamQuery{Kind: event.QueryRetry, Retry: in})
}

func (a *Asks) picked(in event.UpstreamQuery) event.Picked {
	told, ok := a.ask(in)
	if !ok {
		return event.Picked{Ticket: in.Retry.Ticket, NoEndpoint: event.NoEndpointUnhealthy}
	}
	return told.Picked
}

// Failed tells of a try that failed, and asks whether there is another; Tell tells of all
// else, and waits for no answer.
func (a *Asks) Failed(in event.AttemptResult) event.RetryDecision {
	told, _ := a.ask(event.UpstreamQuery{Kind: event.QueryReport, Result: in})
	return told.Retry
}

func (a *Asks) Tell(in event.AttemptResult) {
	a.put(event.UpstreamQuery{Kind: event.QueryReport, Result: in}, true)
}

// Look says how an upstream looks now; false: the node has ended.
func (a *Asks) Look(upstream uint16) (event.UpstreamStats, bool) {
	told, ok := a.ask(event.UpstreamQuery{Kind: event.QueryStats, Upstream: upstream})
	return told.Stats, ok
}

// Asking is how many ask now, and how many may.
func (a *Asks) Asking() (depth, limit int) { return cap(a.free) - len(a.free), cap(a.free) }
