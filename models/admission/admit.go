// Package admission is the twin of core/gateway/admission: a list of those who are in, and counts. Whose
// turn it is among flows is for the twin of core/gateway/drr to say: here, any flow's first.
package admission

import (
	"time"

	"macronode/core/types"
)

// A Guest is one request that is in.
type Guest struct {
	Ticket types.Ticket
	Facet  types.Facet
	Flow   types.Flow
	Route  int
	State  string // queued, out or lost
	Since  types.Instant
	End    types.Instant
	Until  types.Instant
	Part   string // of its bodies, that waits: paused or lined
	Bytes  uint64 // of that
	When   types.Instant
	Nth    int // to be lined
}

// House has its guests in the order in which they came.
type House struct {
	Permits, Queue, Flow int                   // of each facet
	ClassPermits         [types.NumClasses]int // of a class and those behind it; 0: all
	FlowPermits          int                   // 0: all
	Class                [types.NumClasses]int
	Weight               [types.NumClasses]int
	Routes               []int
	Wait, Grace          time.Duration
	Guests               []Guest
	Taken                int
	Passed               bool                // a part went, and nobody was given a permit since
	went                 map[types.Facet]int // the how manieth it was that was given the last permit of a facet
	lined, gone          int
}

func (h *House) count(which func(*Guest) bool) (n int) {
	for i := range h.Guests {
		if which(&h.Guests[i]) {
			n++
		}
	}
	return n
}

// Out and Queued count a facet's guests.
func (h *House) Out(f types.Facet) int {
	return h.count(func(g *Guest) bool { return g.Facet == f && g.State == "out" })
}

func (h *House) Queued(f types.Facet, c types.Class) int {
	return h.count(func(g *Guest) bool { return g.Facet == f && g.Flow.Class == c && g.State == "queued" })
}

// Working are those who were let in, and have not ended.
func (h *House) Working() int { return h.count(func(g *Guest) bool { return g.State != "queued" }) }

// Uses counts the permits of a facet that a class and those behind it have.
func (h *House) Uses(f types.Facet, c types.Class) int {
	return h.count(func(g *Guest) bool { return g.Facet == f && g.Flow.Class >= c && g.State == "out" })
}

// Room reports that a guest may be given a permit for all that others have.
func (h *House) Room(g *Guest) bool {
	if h.Out(g.Facet) >= h.Permits {
		return false
	}
	for c := range g.Flow.Class + 1 {
		if h.ClassPermits[c] > 0 && h.Uses(g.Facet, c) >= h.ClassPermits[c] {
			return false
		}
	}
	return h.FlowPermits == 0 || h.count(func(o *Guest) bool { return o.Facet == g.Facet && o.Flow == g.Flow && o.State == "out" }) < h.FlowPermits
}

// Would says which bound refuses a guest.
func (h *House) Would(g Guest) string {
	queue := h.count(func(o *Guest) bool { return o.Facet == g.Facet && o.State == "queued" })
	flow := h.Waits(g.Facet, g.Flow)
	route := h.count(func(o *Guest) bool { return o.Route == g.Route })
	switch {
	case g.Route < len(h.Routes) && h.Routes[g.Route] > 0 && route >= h.Routes[g.Route]:
		return "route"
	case h.Weight[g.Flow.Class] == 0:
		return "weight"
	case queue >= h.Queue:
		return "full"
	case h.Queued(g.Facet, g.Flow.Class) >= h.Class[g.Flow.Class]:
		return "class"
	case flow >= h.Flow:
		return "flow"
	}
	return ""
}

// Arrive lets a guest wait.
func (h *House) Arrive(now types.Instant, g Guest, patience, keeps time.Duration) {
	g.State, g.Since, g.End = "queued", now, now.Add(patience)
	if keeps > patience {
		g.End = now.Add(keeps)
	}
	g.Until = now.Add(min(h.Wait, patience/4))
	h.Guests = append(h.Guests, g)
}

// May reports that a guest may be given a permit now: it is the first of its flow that
// waits, and its facet has one. With no ticket: that nobody may.
func (h *House) May(t types.Ticket) bool {
	for i, g := range h.Guests {
		if g.State != "queued" || !h.Room(&g) {
			continue
		}
		if t == 0 {
			return false
		}
		if g.Ticket != t {
			continue
		}
		for _, before := range h.Guests[:i] {
			if before.State == "queued" && before.Flow == g.Flow && before.Facet == g.Facet {
				return false
			}
		}
		return true
	}
	return t == 0
}

// Turn reports that it is the turn of a guest's facet: of those that may give a permit, the
// one that gave none for longest.
func (h *House) Turn(t types.Ticket) bool {
	ripe := map[types.Facet]bool{}
	of := types.NumFacets
	for _, g := range h.Guests {
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
func (h *House) Go(t types.Ticket) time.Duration {
	if h.went == nil {
		h.went = map[types.Facet]int{}
	}
	for i := range h.Guests {
		if g := &h.Guests[i]; g.Ticket == t {
			h.gone++
			h.went[g.Facet], h.Passed = h.gone, false
			g.State, g.Until = "out", g.End.Add(h.Grace)
			return time.Duration(-g.Since)
		}
	}
	return -1
}

// Settle lets a guest go, who had worked or waited; false, when there is none.
func (h *House) Settle(t types.Ticket) (ended, worked bool) {
	for i := range h.Guests {
		if g := h.Guests[i]; g.Ticket == t {
			h.Guests = append(h.Guests[:i:i], h.Guests[i+1:]...)
			return true, g.State != "queued"
		}
	}
	return false, false
}

// State is how a guest is in, empty when he is not.
func (h *House) State(t types.Ticket) string {
	for _, g := range h.Guests {
		if g.Ticket == t {
			return g.State
		}
	}
	return ""
}

// Waits counts those of a flow who wait for a permit of a facet.
func (h *House) Waits(f types.Facet, of types.Flow) int {
	return h.count(func(g *Guest) bool { return g.Facet == f && g.Flow == of && g.State == "queued" })
}

// Due is when Overdue has something to do.
func (h *House) Due() (first types.Instant, any bool) {
	for _, g := range h.Guests {
		if due := g.due(); g.State != "lost" && (!any || due < first) {
			first, any = due, true
		}
	}
	return first, any
}

// Works reports that a guest has a permit, and no part of it waits.
func (h *House) Works(t types.Ticket) bool {
	return h.count(func(g *Guest) bool { return g.Ticket == t && g.State == "out" && g.Part == "" }) == 1
}

// WaitPart has a part of a guest's bodies wait: "paused" or "lined".
func (h *House) WaitPart(t types.Ticket, how string, bytes uint64, when types.Instant) {
	for i := range h.Guests {
		if g := &h.Guests[i]; g.Ticket == t {
			h.lined++
			g.Part, g.Bytes, g.When, g.Nth = how, bytes, when, h.lined
		}
	}
}

// Lined counts the parts in the line.
func (h *House) Lined() int { return h.count(func(g *Guest) bool { return g.Part == "lined" }) }

// GoPart lets a part go which is the first of its flow in the line; false: it is not.
func (h *House) GoPart(t types.Ticket, bytes uint64) bool {
	for i := range h.Guests {
		g := &h.Guests[i]
		if g.Ticket != t || g.Part != "lined" || g.Bytes != bytes {
			continue
		}
		if h.count(func(o *Guest) bool { return o.Part == "lined" && o.Flow == g.Flow && o.Nth < g.Nth }) > 0 {
			return false
		}
		g.Part, h.Passed = "", true
		return true
	}
	return false
}

// due is when something is to be done about a guest.
func (g *Guest) due() types.Instant {
	if g.Part != "" {
		return min(g.Until, g.When)
	}
	return g.Until
}

// Overdue takes permits back from those who are over their time, until somebody is met who
// waited for too long, and goes, or for his part: what it was is told.
func (h *House) Overdue(now types.Instant) (t types.Ticket, what string, bytes uint64) {
	for {
		first := -1
		for i, g := range h.Guests {
			if g.State == "lost" || g.due() > now {
				continue
			}
			if first < 0 || g.due() < h.Guests[first].due() ||
				g.due() == h.Guests[first].due() && g.Ticket.Slot() < h.Guests[first].Ticket.Slot() {
				first = i
			}
		}
		if first < 0 {
			return 0, "", 0
		}
		g := &h.Guests[first]
		if t = g.Ticket; g.State == "queued" {
			h.Settle(t)
			return t, "waited", 0
		}
		what, bytes, g.Part = g.Part, g.Bytes, ""
		if g.Until <= now {
			g.State = "lost"
			h.Taken++
		}
		if what != "" && g.State == "lost" {
			what = "lined" // it does not go on
		}
		if what != "" {
			return t, what, bytes
		}
	}
}
