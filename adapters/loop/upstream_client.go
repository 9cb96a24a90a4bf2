package loop

import (
	"macronode/core/event"
)

// UpstreamClient passes upstream queries to the node and waits for the replies. The number of slots limits
// concurrent queries; further callers wait for a slot. A query without a reply keeps its slot until the node has
// handled it.
type UpstreamClient struct {
	slots   []querySlot
	free    chan uint32
	queries chan *event.UpstreamQuery // at most one per slot: never full
	ended   chan struct{}             // closed when the loop has ended
}

// querySlot is a slot of a query.
type querySlot struct {
	in      event.UpstreamQuery
	noReply bool // true: the slot is freed without a reply
	reply   chan event.UpstreamReply
}

func newUpstreamClient(most int) *UpstreamClient {
	a := &UpstreamClient{slots: make([]querySlot, most), free: make(chan uint32, most), queries: make(chan *event.UpstreamQuery, most), ended: make(chan struct{})}
	for i := range a.slots {
		a.slots[i].reply = make(chan event.UpstreamReply, 1)
		a.free <- uint32(i)
	}
	return a
}

// query sends a query and waits for the reply; false if the node has ended.
func (a *UpstreamClient) query(in event.UpstreamQuery) (event.UpstreamReply, bool) {
	at, ok := a.send(in, false)
	if !ok {
		return event.UpstreamReply{}, false
	}
	select {
	case reply := <-a.slots[at].reply:
		a.free <- at
		return reply, true
	case <-a.ended:
		return event.UpstreamReply{}, false
	}
}

// send sends a query in a free slot; false if the node has ended.
func (a *UpstreamClient) send(in event.UpstreamQuery, noReply bool) (at uint32, ok bool) {
	select {
	case at = <-a.free:
	case <-a.ended:
		return 0, false
	}
	s := &a.slots[at]
	s.in, s.noReply = in, noReply
	s.in.Slot = at
	a.queries <- &s.in
	return at, true
}

// deliver passes a reply to its caller. If no caller waits, the slot is freed.
func (a *UpstreamClient) deliver(t event.UpstreamReply) {
	s := &a.slots[t.Slot]
	if s.noReply {
		a.free <- t.Slot
		return
	}
	s.reply <- t
}

// Pick picks the endpoint of a request, Retry that of its next attempt.
func (a *UpstreamClient) Pick(in event.Pick) event.Picked {
	return a.picked(event.UpstreamQuery{Kind: event.QueryPick, Pick: in})
}

func (a *UpstreamClient) Retry(in event.Retry) event.Picked {
	return a.picked(event.UpstreamQuery{Kind: event.QueryRetry, Retry: in})
}

func (a *UpstreamClient) picked(in event.UpstreamQuery) event.Picked {
	reply, ok := a.query(in)
	if !ok {
		return event.Picked{Ticket: in.Retry.Ticket, NoEndpoint: event.NoEndpointUnhealthy}
	}
	return reply.Picked
}

// ReportFailure reports a failed attempt and returns whether to retry.
func (a *UpstreamClient) ReportFailure(in event.AttemptResult) event.RetryDecision {
	reply, _ := a.query(event.UpstreamQuery{Kind: event.QueryReport, Result: in})
	return reply.Retry
}

// Report reports every other result of an attempt. It does not wait.
func (a *UpstreamClient) Report(in event.AttemptResult) {
	a.send(event.UpstreamQuery{Kind: event.QueryReport, Result: in}, true)
}

// Stats returns the state of an upstream; false if the node has ended.
func (a *UpstreamClient) Stats(upstream uint16) (event.UpstreamStats, bool) {
	reply, ok := a.query(event.UpstreamQuery{Kind: event.QueryStats, Upstream: upstream})
	return reply.Stats, ok
}

// InFlight returns the number of queries and its limit.
func (a *UpstreamClient) InFlight() (depth, limit int) { return cap(a.free) - len(a.free), cap(a.free) }
