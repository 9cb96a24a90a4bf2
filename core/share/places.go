package share

import (
	"slices"
	"time"

	"macronode/core/types"
)

// PlaceLimits are the limits of Places.
type PlaceLimits struct {
	Places  int // all of them
	Keyed   int // of these, those of all flows that are not internal
	Anon    int // of these, those of flows without a key
	Flow    int // of these, those of one flow that is not internal
	Waiting int // requests of one class that wait
}

// Places are a few places that requests hold for as long as their clients and services want. One flow leaves places to others, and a
// request of a flow that has none waits:
//
//	Ask ─► holds ◄──Next── waits ──Over──► a flow has two or more? ──no──► refused
//	         │                              └─yes─► waits on, and its oldest request is to end
//	         └──End, perhaps because Over has asked for it──► gone
//
// So nothing is taken from a flow with one place, nor while requests end in time.
//
// Invariants:
//
//	P1  the places that are held are within PlaceLimits
//	P2  a flow has at most one request that waits, and has none then when that begins
//	P3  after Next has returned false, no request that waits could have a place
type Places struct {
	limits  PlaceLimits
	held    []place // in the order of the grants
	waiting []place // in the order of arrival
}

// place is a request that holds a place, or waits for one.
type place struct {
	id     uint64
	flow   types.Flow
	since  types.Instant // when it got its place, or came
	least  time.Duration // of one that waits: how long it waits, and the age at which another one is to end
	ending bool          // it is to end; of one that waits: another one is to end for it
}

// NewPlaces returns places that nothing holds.
func NewPlaces(l PlaceLimits) Places {
	return Places{limits: l, held: make([]place, 0, l.Places), waiting: make([]place, 0, l.Waiting*int(types.NumClasses))}
}

// An Answer is what a request gets that asks for a place.
type Answer uint8

const (
	Refused Answer = iota
	Holds
	Waits
)

// Ask asks for a place for a request, and names it by an id that no other one has. It may wait if its flow has no place, and least is
// not 0. Then Over is due after least.
func (p *Places) Ask(now types.Instant, id uint64, flow types.Flow, least time.Duration) Answer {
	asks := place{id: id, flow: flow, since: now, least: least}
	switch {
	case p.has(flow) > 0 && !p.mayGrow(flow):
		return Refused
	case p.left(flow.Class) > 0:
		p.held = append(p.held, asks)
		return Holds
	case least <= 0 || p.has(flow) > 0 || p.waits(flow):
		return Refused
	}
	n := 0
	for i := range p.waiting {
		if p.waiting[i].flow.Class == flow.Class {
			n++
		}
	}
	if n >= p.limits.Waiting {
		return Refused
	}
	p.waiting = append(p.waiting, asks)
	return Waits
}

// left returns how many places a class could still have.
func (p *Places) left(c types.Class) int {
	anon, keyed := 0, 0
	for i := range p.held {
		if p.held[i].flow.Class != types.ClassInternal {
			keyed++
		}
		if p.held[i].flow.Class == types.ClassAnon {
			anon++
		}
	}
	left := p.limits.Places - len(p.held)
	if c != types.ClassInternal {
		left = min(left, p.limits.Keyed-keyed)
	}
	if c == types.ClassAnon {
		left = min(left, p.limits.Anon-anon)
	}
	return left
}

// mayGrow reports whether a flow may have another place: it has less than its share, and fewer than are left for its class.
func (p *Places) mayGrow(flow types.Flow) bool {
	has := p.has(flow)
	return flow.Class == types.ClassInternal || has < p.limits.Flow && Left(0, has, p.left(flow.Class)) > 0
}

// has returns how many places a flow has.
func (p *Places) has(flow types.Flow) (n int) {
	for i := range p.held {
		if p.held[i].flow == flow {
			n++
		}
	}
	return n
}

// keeps returns how many places a flow has, without those of requests that are to end.
func (p *Places) keeps(flow types.Flow) (n int) {
	for i := range p.held {
		if p.held[i].flow == flow && !p.held[i].ending {
			n++
		}
	}
	return n
}

func (p *Places) waits(flow types.Flow) bool {
	return slices.ContainsFunc(p.waiting, func(w place) bool { return w.flow == flow })
}

// Next gives a free place to the request that has waited for the longest and may have it; false if there is none. It follows each End,
// until it returns false.
func (p *Places) Next(now types.Instant) (id uint64, ok bool) {
	for i, w := range p.waiting {
		if p.left(w.flow.Class) > 0 {
			p.waiting = slices.Delete(p.waiting, i, i+1)
			p.held = append(p.held, place{id: w.id, flow: w.flow, since: now})
			return w.id, true
		}
	}
	return 0, false
}

// Over ends the wait of a request that waits, now that its time is over. Once, it may wait on as long again, because the request loser
// is to end: the oldest one of the flow that keeps the most places, at least two, of those of its own class or a lower one, if that
// request has lasted as long as this one has waited for. waitsOn is false if it is refused, and then it waits no more.
func (p *Places) Over(now types.Instant, id uint64) (loser uint64, waitsOn bool) {
	at := slices.IndexFunc(p.waiting, func(w place) bool { return w.id == id })
	if at < 0 {
		return 0, false
	}
	w := &p.waiting[at]
	if !w.ending {
		if from := p.givesWay(w.flow.Class); from != nil && from.since.Add(w.least) <= now {
			w.ending, from.ending = true, true
			return from.id, true
		}
	}
	p.waiting = slices.Delete(p.waiting, at, at+1)
	return 0, false
}

// givesWay returns the oldest request of the flow that keeps the most places, of those of a class or a lower one; nil if each keeps at
// most one.
func (p *Places) givesWay(c types.Class) (oldest *place) {
	most := 1
	for i := range p.held {
		h := &p.held[i]
		if h.ending || h.flow.Class < c {
			continue
		}
		if n := p.keeps(h.flow); n > most {
			oldest, most = h, n
		}
	}
	return oldest
}

// End ends a request that holds a place or waits for one; any other one changes nothing. Next follows.
func (p *Places) End(id uint64) {
	is := func(r place) bool { return r.id == id }
	p.held, p.waiting = slices.DeleteFunc(p.held, is), slices.DeleteFunc(p.waiting, is)
}

// Held returns how many places are held, including those of requests that are to end, and Waiting how many requests wait.
func (p *Places) Held() int    { return len(p.held) }
func (p *Places) Waiting() int { return len(p.waiting) }
