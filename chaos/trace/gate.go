package trace

import (
	"cmp"
	"math"
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

// facetLimits returns the limits of a facet.
func (d *gate) facetLimits(f int, of admission.Facet, weights [types.NumClasses]uint64, quantum uint64) {
	var weight [types.NumClasses]int64
	for k, w := range weights {
		weight[k] = int64(w)
	}
	q := &d.queues[f]
	q.Most, q.Class, q.Flow = of.Queue, of.PerClass, of.PerFlow
	if q.FlowShare = of.FlowPermits; q.FlowShare == 0 || q.FlowShare >= of.Permits {
		q.FlowShare = math.MaxInt
	}
	for c, most := range of.ClassPermits {
		if q.ClassShare[c] = min(most, of.Permits); most == 0 {
			q.ClassShare[c] = of.Permits
		}
	}
	q.Change(weight, int64(quantum))
	d.most[f] = max(d.usedPermits(types.Facet(f)), of.Permits)
}

// partLimits returns the limits of the queue of parts: an admitted request is served to the end.
func (d *gate) partLimits(weights [types.NumClasses]uint64, quantum uint64) {
	var weight [types.NumClasses]int64
	for k, w := range weights {
		weight[k], d.line.Class[k] = max(1, int64(w)), d.limits.Places
	}
	d.line.Most, d.line.Flow = d.limits.Places, d.limits.Places
	d.line.Change(weight, int64(quantum))
}

// applyPolicy applies a policy: running requests continue, and waiting requests of unserved classes
// are rejected.
func (d *gate) applyPolicy(now types.Instant, g *event.Policy) {
	d.limits.Quantum, d.limits.Weights, d.limits.Wait, d.limits.Routes, d.pace = g.Quantum, g.Weights, g.MaxWait, slices.Clone(g.Routes), g.MaxPacingDelay
	for f, of := range g.Facets {
		if d.queued(types.Facet(f)) > of.Queue {
			d.note("more wait than a change has room for")
		}
		d.limits.Facets[f] = admission.Facet(of)
		d.facetLimits(f, d.limits.Facets[f], g.Weights, g.Quantum)
	}
	for i := range d.requests {
		x := &d.requests[i]
		if x.at == "queued" && x.cost > int64(g.Quantum) {
			d.note("waits, and costs more than the new quantum")
			x.cost = int64(g.Quantum)
		}
		if x.paused > 0 {
			d.note("a change while a part of a body waits")
		}
		if x.lined > 0 {
			d.note("a change while a part of a body waits for its turn")
		}
	}
	d.partLimits(g.Weights, g.Quantum)
	others := d.quotaState.renews(now, g)
	for i := range d.requests {
		d.requests[i].later |= others
		d.requests[i].old, d.requests[i].oldPaced = d.requests[i].part, d.requests[i].paced
	}
	for f := range d.queues {
		for slot, any := d.queues[f].Unserved(); any; slot, any = d.queues[f].Unserved() {
			d.expectRejection(slot, event.RejectClassDisabled, now)
		}
	}
	d.grantPermits(now)
}

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
	d.expected, d.begun = d.expected[:0], rankOf(after.Phase).begun()
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
	case event.Tick:
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

// withoutQuotaState returns a rejection without the state of the quotas.
func withoutQuotaState(v event.Decision) event.Decision {
	v.Problem = event.Busy
	switch {
	case v.Reason == event.RejectNotServing:
		v.Problem = event.Unavailable
	case v.Reason == event.RejectQuotaExceeded, v.Reason == event.RejectPacingTimeout:
		v.Problem = event.RateLimited
	}
	return v
}

// rejectReason is Refuses without quotas.
func (d *gate) rejectReason(before *View, in *event.Admit) event.RejectReason {
	f, flow, q := &d.limits.Facets[in.Facet], flowOf(in), &d.queues[in.Facet]
	waits := func(of func(*gateRequest) bool) int {
		return d.count(func(g *gateRequest) bool { return g.at == "queued" && g.facet == in.Facet && of(g) })
	}
	all := d.count(func(g *gateRequest) bool { return g.route == int(in.Route) })
	switch most := d.limits.Routes; {
	case !before.Reads:
		return event.RejectNotServing
	case int(in.Route) < len(most) && most[in.Route] > 0 && all >= most[in.Route]:
		if d.count(func(g *gateRequest) bool { return g.route == int(in.Route) && g.at == "lost" }) > 0 {
			d.note("a route is full of requests with reclaimed permits")
		}
		return event.RejectRouteLimit
	case q.Weight[in.Class] == 0:
		return event.RejectClassDisabled
	case waits(func(*gateRequest) bool { return true }) >= f.Queue:
		return event.RejectQueueFull
	case waits(func(g *gateRequest) bool { return g.flow.Class == in.Class }) >= f.PerClass[in.Class]:
		return event.RejectClassLimit
	case waits(func(g *gateRequest) bool { return g.flow == flow }) >= f.PerFlow:
		return event.RejectFlowLimit
	}
	return event.Admitted
}

// checkPacing returns whether the pace of the instance rejects a request: it must if the wait is too
// long with an empty queue, and must not if it is short enough behind all queued ones.
func (d *gate) checkPacing(now types.Instant, in *event.Admit, got event.RejectReason) (event.RejectReason, error) {
	queued := d.queued(in.Facet)
	own := d.count(func(g *gateRequest) bool { return g.at == "queued" && g.facet == in.Facet && g.flow == flowOf(in) })
	least := slices.MinFunc(d.limits.Weights[:], func(a, b uint64) int { return cmp.Compare(a-1, b-1) }) // 0 counts as the largest
	most := max(d.pace, min(d.limits.Wait, d.pace*time.Duration(d.limits.Weights[in.Class]/least)))
	if own == 0 {
		most = d.limits.Wait
	}
	switch is := got == event.RejectPacingTimeout; {
	case is && d.quotaState.paced(now, queued, inRequests) <= most:
		return got, broken("RefusedRightly", "%v is refused for the pace, with %d queued", in.Ticket, queued)
	case !is && d.quotaState.paced(now, 0, inRequests) > most:
		return got, broken("Paced", "%v would wait for %v, and may for %v", in.Ticket, d.quotaState.paced(now, 0, inRequests), most)
	case is:
		return event.RejectPacingTimeout, nil
	}
	return event.Admitted, nil
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
			g.at, g.until, g.paced = "out", g.end.Add(d.limits.Grace), g.part
			v := event.Decision{Ticket: g.ticket, Waited: time.Duration(now - g.since), Shadow: d.quotaState.spends(now, g.part, inAll), Bytes: d.limits.Quantum}
			if d.quotaState.byBytes(&g.in) {
				v.Bytes = g.part
			}
			d.expected = append(d.expected, v)
		}
	}
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

// checkDecisions checks the decisions: each expected one, once, in order.
func (d *gate) checkDecisions(all []event.Decision) error {
	for i, v := range all {
		if i == len(d.expected) {
			return broken("OneVerdict", "%v got %v, but no decision was expected", v.Ticket, v.Reason)
		}
		want := d.expected[i]
		switch v.Ahead = 0; {
		case v.Ticket != want.Ticket:
			return broken("InTurn", "%v got %v, but it is the turn of %v", v.Ticket, v.Reason, want.Ticket)
		case v.Reason != want.Reason && v.Reason != event.Admitted:
			return broken("RefusedRightly", "%v is refused for %v, and has a right to %v", v.Ticket, v.Reason, want.Reason)
		case v.Reason != want.Reason:
			return broken("Refused", "%v is admitted, but %v was expected", v.Ticket, want.Reason)
		case v.Waited != want.Waited || v.Problem != want.Problem:
			return broken("OneVerdict", "got %+v, want %+v", v, want)
		case v != want:
			return broken("QuotaExact", "got %+v, want %+v", v, want)
		}
	}
	if n := len(all); n < len(d.expected) {
		return broken("NoneLost", "%v should get %v, but got no decision", d.expected[n].Ticket, d.expected[n].Reason)
	}
	return nil
}

// checkCounts compares the counts of the node with those here.
func (d *gate) checkCounts(after *View) error {
	var queued [types.NumFacets][types.NumClasses]uint32
	for i := range d.requests {
		if g := &d.requests[i]; g.at == "queued" {
			queued[g.facet][g.flow.Class]++
		}
	}
	for f := range types.NumFacets {
		out := d.usedPermits(f)
		d.most[f] = max(d.limits.Facets[f].Permits, min(d.most[f], out))
		if after.Permits[f] != uint32(out) || out > d.most[f] {
			return broken("PermitsExact", "%d permits of %v are out, counted %d, at most %d", out, f, after.Permits[f], d.most[f])
		}
	}
	if lined := d.count(func(g *gateRequest) bool { return g.lined > 0 }); int(after.PacedParts) != lined {
		return broken("QueueBounded", "%d parts of bodies wait for their turn, counted %d", lined, after.PacedParts)
	}
	if after.Queued != queued {
		return broken("QueueBounded", "queued are %v, counted %v", queued, after.Queued)
	}
	if after.PermitsRevoked != d.taken {
		return broken("PermitsReturn", "%d permits were taken back, counted %d", d.taken, after.PermitsRevoked)
	}
	return nil
}
