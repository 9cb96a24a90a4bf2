package trace

import (
	"slices"
	"time"

	"macronode/core/event"
	"macronode/core/gateway/admission"
	"macronode/core/node"
	"macronode/core/types"
	"macronode/models/drr"
)

// A gateRequest is a row of Admission that is not free.
type gateRequest struct {
	ticket       types.Ticket
	at           string // queued, out or lost
	facet        types.Facet
	route        int
	flow         types.Flow
	cost         int64
	since, until types.Instant
	got          types.Instant // when it got its permit
	end          types.Instant
	in           event.Admit // the request as it arrived
	part         uint64      // bytes charged to it
	peer         uint64      // part of them charged to its peer's bucket or the shared one
	paced        uint64      // bytes charged to the instance
	paused       uint64      // the last of them, paused: its caller's quotas are exhausted
	lined        uint64      // or waiting for their turn
	goes         types.Instant
	common       bool   // the peer is counted by the shared bucket
	later        uint16 // bit i: rule i+1 changed after the arrival, and has not charged the old part
	old          uint64 // charged before the last change
	oldPaced     uint64 // part of paced that was charged before the last change
	keyEnded     bool   // it lost its permit because its key ended, or would have
}

// gate checks Admission and DRR: admission, the order of turns, and quotas. Every decision is
// predicted, except rejections for the pace of the instance: the node may estimate fewer requests
// ahead than are queued.
type gate struct {
	limits     admission.Limits
	pace       time.Duration
	requests   []gateRequest // in the order of arrival
	queues     [types.NumFacets]drr.Queue
	line       drr.Queue            // of parts of bodies
	passed     bool                 // a part was granted last, and no request since
	most       [types.NumFacets]int // permits that may be in use: the current limit, or an earlier higher one
	turn       types.Facet
	taken      uint64
	quotaState quotaState
	begun      bool              // the drain has begun
	report     event.DrainReport // of the drain, without the requests that are in progress when it ends
	expected   []event.Decision  // the expected decisions in order
	keys       map[types.KeyID]*grant
	at         types.Time // of the step
	note       func(what string)
}

func newGate(c node.Config) gate {
	d := gate{limits: c.Admission, pace: c.MaxPacingDelay, quotaState: newPurses(c.Quotas, c.QuotaLimits), note: ignoreNote}
	for f := range d.queues {
		d.facetLimits(f, c.Admission.Facets[f], c.Admission.Weights, c.Admission.Quantum)
	}
	d.partLimits(c.Admission.Weights, c.Admission.Quantum)
	return d
}

// ignoreNote ignores notes.
func ignoreNote(string) {}

// expectRejection expects the rejection of a waiting request.
func (d *gate) expectRejection(slot uint32, why event.RejectReason, now types.Instant) {
	for i, g := range d.requests {
		if g.ticket.Slot() != slot {
			continue
		}
		v := event.Decision{Ticket: g.ticket, Reason: why}
		if why != event.RejectNotServing {
			v.Waited = time.Duration(now - g.since)
		}
		d.remove(i)
		d.quotaState.returns(now, &g, g.part, true)
		d.expected = append(d.expected, withoutQuotaState(v))
		return
	}
}

func (d *gate) step(before, after *View, s *Step) error {
	d.expected, d.begun, d.at = d.expected[:0], rankOf(after.Phase).begun(), after.At
	now := s.Now.Mono
	switch in := s.In.(type) { //nolint:gochecksumtype // the others admit no request
	case *event.Admit:
		if err := d.admit(before, now, in, s.Verdicts); err != nil {
			return err
		}
	case *event.ReserveBytes:
		d.streams(now, in)
		d.grantPermits(now)
	case *event.Finish:
		d.finish(now, in)
		d.grantPermits(now)
	case *event.ApplyPolicy:
		if after.PolicyVersion == in.Policy.Version && before.PolicyVersion != in.Policy.Version {
			d.applyPolicy(now, &in.Policy)
		}
	case *event.RevokeKey:
		if len(s.Frame) > 0 {
			d.endKeys(now)
		}
	case *event.CreateKey:
		if len(s.Frame) > 0 && in.Key.Bootstrap {
			d.endKeys(now)
		}
	case event.Tick:
		d.endKeys(now)
		d.expire(now)
		d.grantPermits(now)
	}
	if before.Phase < types.Draining && after.Phase >= types.Draining {
		d.drain(now)
	}
	if before.Phase < types.LameDuck && after.Phase >= types.LameDuck && d.count(func(g *gateRequest) bool { return g.paused+g.lined > 0 }) > 0 {
		d.note("drain while a part of a body waits")
	}
	if before.Phase >= types.Draining && slices.ContainsFunc(d.expected, func(v event.Decision) bool { return v.Reason == event.Admitted }) {
		d.note("a part is granted during a drain") // no other event does
	}
	if err := d.checkDecisions(s.Verdicts); err != nil {
		return err
	}
	if err := d.reported(after); err != nil {
		return err
	}
	return d.checkCounts(after)
}

// find returns the request of a ticket.
func (d *gate) find(t types.Ticket) int {
	for i := range d.requests {
		if d.requests[i].ticket == t {
			return i
		}
	}
	return -1
}

// admitted reports whether the request of a ticket was admitted and is not finished.
func (d *gate) admitted(t types.Ticket) bool {
	i := d.find(t)
	return i >= 0 && d.requests[i].at != "queued"
}

func (d *gate) count(which func(*gateRequest) bool) (n int) {
	for i := range d.requests {
		if which(&d.requests[i]) {
			n++
		}
	}
	return n
}

// usedPermits counts the used permits of a facet.
func (d *gate) usedPermits(f types.Facet) int {
	return d.count(func(g *gateRequest) bool { return g.at == "out" && g.facet == f })
}

// noteParked notes that a request waits only for its share.
func (d *gate) noteParked() {
	for f := range types.NumFacets {
		if d.usedPermits(f) < d.limits.Facets[f].Permits && d.queued(f) > 0 && !d.queues[f].Ready() {
			d.note("a permit is free, and the waiting flow is at its share")
		}
	}
}

// queued counts the queued requests of a facet.
func (d *gate) queued(f types.Facet) int {
	return d.count(func(g *gateRequest) bool { return g.at == "queued" && g.facet == f })
}

func (d *gate) remove(i int) { d.requests = append(d.requests[:i], d.requests[i+1:]...) }

// flowOf returns the flow of a request, from verified fields only.
func flowOf(in *event.Admit) types.Flow {
	if in.Key == 0 {
		return types.Flow{Class: in.Class, ID: in.Peer.Prefix64()}
	}
	return types.Flow{Class: in.Class, ID: uint64(in.Tenant)}
}

// admit is Decide, followed by Dispatch.
func (d *gate) admit(before *View, now types.Instant, in *event.Admit, got []event.Decision) error {
	for i := range d.requests {
		if d.requests[i].ticket.Slot() == in.Ticket.Slot() {
			return broken("SlotsExact", "%v comes, and %v is in", in.Ticket, d.requests[i].ticket)
		}
	}
	v, part, common := event.Decision{Reason: d.rejectReason(before, in)}, d.part(in), d.quotaState.sharesPeer(now, in, inAll)
	if v.Reason == event.Admitted {
		was := event.Admitted
		if len(got) > 0 && got[0].Ticket == in.Ticket {
			was = got[0].Reason
		}
		paced, err := d.checkPacing(now, in, was)
		if err != nil {
			return err
		}
		if v.Reason = paced; paced == event.Admitted {
			v = d.quotaState.take(now, in, part, d.held)
		}
	}
	v.Ticket = in.Ticket
	if v.Reason != event.Admitted {
		d.expected = append(d.expected, withoutQuotaState(v))
		d.grantPermits(now)
		return nil
	}
	cost := max(uint64(max(in.DeclaredBytes, 0)), d.limits.Least)
	if in.DeclaredBytes < 0 {
		cost = d.limits.Quantum
	}
	cost = min(cost+uint64(in.ResponseEstimate), d.limits.Quantum)
	g := gateRequest{ticket: in.Ticket, at: "queued", facet: in.Facet, route: int(in.Route), flow: flowOf(in), cost: int64(cost), since: now,
		end: now.Add(max(in.TimeLeft, in.PermitFor)), until: now.Add(min(d.limits.Wait, in.TimeLeft/4)), in: *in, part: part, peer: part, common: common}
	d.requests = append(d.requests, g)
	d.queues[g.facet].Offer(g.flow, g.ticket.Slot(), g.cost)
	d.grantPermits(now)
	for i := range d.expected { // an admitted request gets the state of its quotas
		if d.expected[i].Ticket == in.Ticket {
			v.Shadow, v.Bytes = v.Shadow|d.expected[i].Shadow, d.expected[i].Bytes
			d.expected[i] = v
		}
	}
	return nil
}

// grantPermits is Dispatch while there are permits and tokens: requests and parts of bodies take turns.
func (d *gate) grantPermits(now types.Instant) {
	for {
		f, ripe := d.nextFacet()
		goes := ripe && d.quotaState.paced(now, 0, inAll) == 0
		switch onward := d.onward(now); {
		case onward && (!d.passed || !goes):
			if goes {
				d.note("a request and a part of a body take turns")
			}
			d.nextPart(now)
		case goes:
			d.admitNext(now, f)
		default:
			if ripe {
				d.note("a permit is free, and the pace delays admission")
			}
			d.noteParked()
			return
		}
	}
}

// nextFacet returns the facet whose turn it is among those with a waiting request and a free permit.
func (d *gate) nextFacet() (f types.Facet, any bool) {
	for n := range types.NumFacets {
		if f = (d.turn + n) % types.NumFacets; d.queues[f].Ready() {
			return f, true
		}
	}
	return 0, false
}

// admitNext admits the next request of a facet.
func (d *gate) admitNext(now types.Instant, f types.Facet) {
	d.turn, d.passed = (f+1)%types.NumFacets, false
	slot, _ := d.queues[f].Next()
	for i := range d.requests {
		if g := &d.requests[i]; g.ticket.Slot() == slot {
			d.grant(now, g)
		}
	}
}

// grant gives a request a permit.
func (d *gate) grant(now types.Instant, g *gateRequest) {
	g.at, g.until, g.paced, g.got = "out", g.end.Add(d.limits.Grace), g.part, now
	v := event.Decision{Ticket: g.ticket, Waited: time.Duration(now - g.since), Shadow: d.quotaState.spends(now, g.part, inAll), Bytes: d.limits.Quantum}
	if d.quotaState.byBytes(&g.in) {
		v.Bytes = g.part
	}
	d.expected = append(d.expected, v)
}

// finish is Settle: an unknown ticket changes nothing.
func (d *gate) finish(now types.Instant, in *event.Finish) {
	i := d.find(in.Ticket)
	if i < 0 {
		return
	}
	g := d.requests[i]
	if d.remove(i); g.paused > 0 {
		d.note("ends, and a part of its body waits")
	}
	if g.lined > 0 {
		d.note("ends, and a part of its body waits for its turn")
		d.line.Drop(g.ticket.Slot())
	}
	if g.at == "queued" {
		d.queues[g.facet].Drop(g.ticket.Slot())
		d.quotaState.returns(now, &g, g.part, true)
		return
	}
	d.quotaState.settled(now, &g, in.Bytes)
	d.ends(in.Completion)
	if g.at == "out" {
		d.queues[g.facet].Return(g.flow)
		d.queues[g.facet].Correct(g.flow, g.cost-int64(min(max(in.Bytes, d.limits.Least), 1<<40)))
	}
}

// expire is Late and Reclaim, in the order of the deadlines.
func (d *gate) expire(now types.Instant) {
	for {
		first := -1
		for i := range d.requests {
			g := &d.requests[i]
			if g.at == "lost" || g.due() > now {
				continue
			}
			if first < 0 || g.due() < d.requests[first].due() || g.due() == d.requests[first].due() && g.ticket.Slot() < d.requests[first].ticket.Slot() {
				first = i
			}
		}
		if first < 0 {
			return
		}
		if g := &d.requests[first]; g.at == "out" {
			d.resumes(now, g)
			continue
		}
		if d.waitsOn(now, &d.requests[first]) {
			continue
		}
		g := d.requests[first]
		d.queues[g.facet].Drop(g.ticket.Slot())
		d.expectRejection(g.ticket.Slot(), event.RejectQueueTimeout, now)
	}
}

// drain is Drain: all waiting requests are rejected.
func (d *gate) drain(now types.Instant) {
	for f := range d.queues {
		for slot, any := d.queues[f].Evict(); any; slot, any = d.queues[f].Evict() {
			d.expectRejection(slot, event.RejectNotServing, now)
		}
	}
	d.grantPermits(now)
}
