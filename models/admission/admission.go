// Package admission is the reference model of core/gateway/admission: a list of requests in
// progress. The order of flows is modelled by models/drr; here the first request of any flow may
// be next.
package admission

import (
	"time"

	"macronode/core/types"
)

// A Request is one request in progress.
type Request struct {
	Ticket types.Ticket
	Facet  types.Facet
	Flow   types.Flow
	Key    types.KeyID
	Ended  bool // its key has ended
	Route  int
	State  string // queued, out or lost
	Since  types.Instant
	Got    types.Instant // when it got its permit
	Asked  time.Duration // until the deadline of its caller
	End    types.Instant
	Until  types.Instant
	Part   string // state of a part of its body that waits: paused or lined
	Bytes  uint64 // size of that part
	When   types.Instant
	Nth    int // order among the waiting parts
}

// A Route has the limits of one route.
type Route struct {
	Requests int // 0: no limit
	PerFlow  int // 0: another one only while the flow has fewer than are left
}

// Admission has the requests in the order in which they arrived.
type Admission struct {
	Permits, Queue, Flow int                   // of each facet
	ClassPermits         [types.NumClasses]int // of a class and lower ones; 0: all
	FlowPermits          int                   // 0: all
	Class                [types.NumClasses]int
	Weight               [types.NumClasses]int
	Routes               []Route
	Wait, Grace          time.Duration
	GiveWay              time.Duration // 0: no request gives way
	Requests             []Request
	Taken                int
	Passed               bool                // a part was granted, and no permit since
	went                 map[types.Facet]int // sequence number of the last permit of a facet
	lined, gone          int
}

func (h *Admission) count(which func(*Request) bool) (n int) {
	for i := range h.Requests {
		if which(&h.Requests[i]) {
			n++
		}
	}
	return n
}

// Out and Queued count the requests of a facet.
func (h *Admission) Out(f types.Facet) int {
	return h.count(func(g *Request) bool { return g.Facet == f && g.State == "out" })
}

func (h *Admission) Queued(f types.Facet, c types.Class) int {
	return h.count(func(g *Request) bool { return g.Facet == f && g.Flow.Class == c && g.State == "queued" })
}

// Working counts admitted requests that have not ended.
func (h *Admission) Working() int {
	return h.count(func(g *Request) bool { return g.State != "queued" })
}

// Uses counts the permits of a facet that a class and lower ones use.
func (h *Admission) Uses(f types.Facet, c types.Class) int {
	return h.count(func(g *Request) bool { return g.Facet == f && g.Flow.Class >= c && g.State == "out" })
}

// Room reports whether a permit for g is within all limits.
func (h *Admission) Room(g *Request) bool {
	if h.Out(g.Facet) >= h.Permits {
		return false
	}
	for c := range g.Flow.Class + 1 {
		if h.ClassPermits[c] > 0 && h.Uses(g.Facet, c) >= h.ClassPermits[c] {
			return false
		}
	}
	return h.FlowPermits == 0 || h.count(func(o *Request) bool { return o.Facet == g.Facet && o.Flow == g.Flow && o.State == "out" }) < h.FlowPermits
}

// Would returns the limit that rejects a request, or "".
func (h *Admission) Would(g Request) string {
	queue := h.count(func(o *Request) bool { return o.Facet == g.Facet && o.State == "queued" })
	flow := h.Waits(g.Facet, g.Flow)
	switch why := h.wouldRoute(&g); {
	case why != "":
		return why
	case h.Weight[g.Flow.Class] == 0:
		return "weight"
	case queue >= h.Queue:
		return "full"
	case h.Queued(g.Facet, g.Flow.Class) >= h.Class[g.Flow.Class]:
		return "class"
	case flow >= h.Flow, g.Flow.Class == types.ClassAnon && flow > h.Class[g.Flow.Class]-h.Queued(g.Facet, g.Flow.Class),
		g.Flow.Class != types.ClassInternal && g.Facet == types.Streams && !h.leavesPermits(&g):
		return "flow"
	}
	return ""
}

// wouldRoute returns the limit of its route that rejects a request, or "".
func (h *Admission) wouldRoute(g *Request) string {
	if g.Route >= len(h.Routes) || h.Routes[g.Route].Requests == 0 {
		return ""
	}
	all := h.count(func(o *Request) bool { return o.Route == g.Route })
	own := h.count(func(o *Request) bool { return o.Route == g.Route && o.Flow == g.Flow })
	of := h.Routes[g.Route]
	switch {
	case all >= of.Requests:
		return "route"
	case own == 0, g.Flow.Class == types.ClassInternal:
		return ""
	case of.PerFlow > 0 && own >= of.PerFlow, of.PerFlow == 0 && own >= of.Requests-all:
		return "route flow"
	}
	return ""
}

// leavesPermits reports whether a flow without a further permit has none, or fewer than are left: as many requests of new
// flows would get permits, one after the other, if all queued ones of the class had theirs.
func (h *Admission) leavesPermits(g *Request) bool {
	held := h.count(func(o *Request) bool { return o.Facet == g.Facet && o.Flow == g.Flow && o.State != "lost" })
	left := 0
	for fits := true; fits; left++ {
		more := left + h.Queued(g.Facet, g.Flow.Class)
		fits = h.Out(g.Facet)+more < h.Permits
		for c := range g.Flow.Class + 1 {
			fits = fits && (h.ClassPermits[c] == 0 || h.Uses(g.Facet, c)+more < h.ClassPermits[c])
		}
	}
	return held == 0 || held < left-1
}

// Arrive queues a request.
func (h *Admission) Arrive(now types.Instant, g Request, patience, keeps time.Duration) {
	g.State, g.Since, g.End, g.Asked = "queued", now, now.Add(patience), patience
	if keeps > patience {
		g.End = now.Add(keeps)
	}
	g.Until = now.Add(min(h.Wait, patience/4))
	h.Requests = append(h.Requests, g)
}

// May reports whether a request may get a permit now: it is the first waiting one of its flow,
// and its facet has a permit. For ticket 0 it reports that no request may.
func (h *Admission) May(t types.Ticket) bool {
	for i, g := range h.Requests {
		if g.State != "queued" || !h.Room(&g) {
			continue
		}
		if t == 0 {
			return false
		}
		if g.Ticket != t {
			continue
		}
		for _, before := range h.Requests[:i] {
			if before.State == "queued" && before.Flow == g.Flow && before.Facet == g.Facet {
				return false
			}
		}
		return true
	}
	return t == 0
}

// Turn reports whether a request's facet is next: of the facets that can give a permit, the one
// that gave none for longest.
func (h *Admission) Turn(t types.Ticket) bool {
	ripe := map[types.Facet]bool{}
	of := types.NumFacets
	for _, g := range h.Requests {
		if g.State == "queued" && h.Room(&g) {
			ripe[g.Facet] = true
		}
		if g.Ticket == t {
			of = g.Facet
		}
	}
	for f := range types.NumFacets {
		if ripe[f] && h.went[f] < h.went[of] {
			return false
		}
	}
	return true
}

// Go gives a permit.
func (h *Admission) Go(now types.Instant, t types.Ticket) time.Duration {
	if h.went == nil {
		h.went = map[types.Facet]int{}
	}
	for i := range h.Requests {
		if g := &h.Requests[i]; g.Ticket == t {
			h.gone++
			h.went[g.Facet], h.Passed = h.gone, false
			g.State, g.Until, g.Got = "out", g.End.Add(h.Grace), now
			return time.Duration(now - g.Since)
		}
	}
	return -1
}

// Settle ends a request that worked or waited; false if there is none.
func (h *Admission) Settle(t types.Ticket) (ended, worked bool) {
	for i := range h.Requests {
		if g := h.Requests[i]; g.Ticket == t {
			h.Requests = append(h.Requests[:i:i], h.Requests[i+1:]...)
			return true, g.State != "queued"
		}
	}
	return false, false
}

// State returns the state of a request, or "" if there is none.
func (h *Admission) State(t types.Ticket) string {
	for _, g := range h.Requests {
		if g.Ticket == t {
			return g.State
		}
	}
	return ""
}

// Waits counts the requests of a flow that wait for a permit of a facet.
func (h *Admission) Waits(f types.Facet, of types.Flow) int {
	return h.count(func(g *Request) bool { return g.Facet == f && g.Flow == of && g.State == "queued" })
}

// Due returns when Overdue has something to do.
func (h *Admission) Due() (first types.Instant, any bool) {
	for _, g := range h.Requests {
		if due := g.due(); g.State != "lost" && (!any || due < first) {
			first, any = due, true
		}
	}
	return first, any
}

// Works reports whether a request has a permit, and no part of it waits.
func (h *Admission) Works(t types.Ticket) bool {
	return h.count(func(g *Request) bool { return g.Ticket == t && g.State == "out" && g.Part == "" }) == 1
}

// WaitPart queues a part of a request's body: "paused" or "lined".
func (h *Admission) WaitPart(t types.Ticket, how string, bytes uint64, when types.Instant) {
	for i := range h.Requests {
		if g := &h.Requests[i]; g.Ticket == t {
			h.lined++
			g.Part, g.Bytes, g.When, g.Nth = how, bytes, when, h.lined
		}
	}
}

// Lined counts the waiting parts.
func (h *Admission) Lined() int { return h.count(func(g *Request) bool { return g.Part == "lined" }) }

// GoPart grants a part that is the first of its flow; false if it is not.
func (h *Admission) GoPart(t types.Ticket, bytes uint64) bool {
	for i := range h.Requests {
		g := &h.Requests[i]
		if g.Ticket != t || g.Part != "lined" || g.Bytes != bytes {
			continue
		}
		if h.count(func(o *Request) bool { return o.Part == "lined" && o.Flow == g.Flow && o.Nth < g.Nth }) > 0 {
			return false
		}
		g.Part, h.Passed = "", true
		return true
	}
	return false
}

// due returns the next deadline of a request.
func (g *Request) due() types.Instant {
	if g.Part != "" {
		return min(g.Until, g.When)
	}
	return g.Until
}

// Overdue reclaims the permits of requests past their deadline, until it meets a request that
// waited too long, for a permit or for its part: then it returns that.
func (h *Admission) Overdue(now types.Instant, paced bool) (t types.Ticket, what string, bytes uint64, loser types.Ticket) {
	for {
		first := -1
		for i, g := range h.Requests {
			if g.State == "lost" || g.due() > now {
				continue
			}
			if first < 0 || g.due() < h.Requests[first].due() ||
				g.due() == h.Requests[first].due() && g.Ticket.Slot() < h.Requests[first].Ticket.Slot() {
				first = i
			}
		}
		if first < 0 {
			return 0, "", 0, 0
		}
		g := &h.Requests[first]
		if t = g.Ticket; g.State == "queued" {
			old, may := h.oldest(g)
			whole := g.Since.Add(h.GiveWay)
			switch may = may && h.mayTake(old, g); {
			case may && whole > now:
				g.Until = whole
				continue
			case may && !paced && old.Got.Add(h.GiveWay) <= now:
				if old.Part != "" {
					bytes = old.Bytes
				}
				loser, old.Part, old.State, h.Passed = old.Ticket, "", "lost", false
				g.State, g.Until, g.Got = "out", g.End.Add(h.Grace), now
				return t, "took over", bytes, loser
			}
			h.Settle(t)
			return t, "waited", 0, 0
		}
		what, bytes, g.Part = g.Part, g.Bytes, ""
		if g.Until <= now {
			g.State = "lost"
			h.Taken++
		}
		if what != "" && g.State == "lost" {
			what = "lined" // the part is rejected
		}
		if what != "" {
			return t, what, bytes, 0
		}
	}
}

// EndKey takes the permit, or the place in the queue, of a request whose key has ended. It returns the state that it was in, and the bytes
// of its part that waited.
func (h *Admission) EndKey(t types.Ticket) (was string, bytes uint64) {
	for i := range h.Requests {
		g := &h.Requests[i]
		if g.Ticket != t {
			continue
		}
		if was = g.State; was == "queued" {
			h.Settle(t)
			return was, 0
		}
		if g.Part != "" {
			bytes = g.Bytes
		}
		g.State, g.Part, g.Ended = "lost", "", true
		return was, bytes
	}
	return "", 0
}

// mayTake reports whether a queued request may take the permit of another one: it is the first one of a peer that has none, its
// caller has the time, and there is no permit.
func (h *Admission) mayTake(old, g *Request) bool {
	for i := range h.Requests {
		o := &h.Requests[i]
		if o == g {
			break
		}
		if o.Facet == g.Facet && o.Flow == g.Flow && o.State == "queued" {
			return false
		}
	}
	has := h.count(func(o *Request) bool { return o.Facet == g.Facet && o.Flow == g.Flow && o.State == "out" }) > 0
	return h.GiveWay > 0 && g.Flow.Class == types.ClassAnon && g.Asked/4 >= h.GiveWay && !has && !h.Room(g) && h.roomWithout(old, g)
}

// roomWithout reports whether there would be a permit for g without that of old.
func (h *Admission) roomWithout(old, g *Request) bool {
	old.State = "lost"
	defer func() { old.State = "out" }()
	return h.Room(g)
}

// oldest returns the request that has had a permit for longest, of the peer that has the most, if those are many.
func (h *Admission) oldest(g *Request) (old *Request, many bool) {
	most := max(2, h.Permits/32)
	if of := h.ClassPermits[types.ClassAnon]; of > 0 {
		most = max(2, of/32)
	}
	for i := range h.Requests {
		o := &h.Requests[i]
		if o.Facet != g.Facet || o.State != "out" || o.Flow.Class != types.ClassAnon {
			continue
		}
		n := h.count(func(x *Request) bool { return x.Facet == o.Facet && x.Flow == o.Flow && x.State == "out" })
		older := old != nil && (o.Got < old.Got || o.Got == old.Got && o.Ticket.Slot() < old.Ticket.Slot())
		if n > most || n == most && (old == nil || older) {
			old, most = o, n
		}
	}
	return old, old != nil
}
