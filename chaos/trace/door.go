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

// A guest is one of Admission's rows that is not free.
type guest struct {
	ticket       types.Ticket
	at           string // queued, out or lost
	facet        types.Facet
	route        int
	flow         types.Flow
	cost         int64
	since, until types.Instant
	end          types.Instant
	in           event.Admit // as it came
	part         uint64      // bytes that it was charged
	peer         uint64      // of them, to its peer's bucket, or to what peers share
	paced        uint64      // to the instance
	paused       uint64      // the last of them, that may not go yet: its caller's quotas have none
	lined        uint64      // or which wait for their turn
	goes         types.Instant
	common       bool   // as a peer's, to what those share for whom there is no room
	later        uint16 // bit i: rule i+1 is another than when it came, and has charged none of what is old
	old          uint64 // of part, what was charged before the last change
	oldPaced     uint64 // of paced, the same
}

// door is Admission and DRR: who is let in, whose turn it is, and who has had enough. It knows
// what every step must say, but where the pace of the instance is the reason: how many are
// before one who comes is no more than is queued, and the node may think of fewer.
type door struct {
	limits admission.Limits
	pace   time.Duration
	guests []guest // in the order in which they came
	queues [types.NumFacets]drr.Queue
	line   drr.Queue            // of parts of bodies
	passed bool                 // one of them went last, and no request since
	most   [types.NumFacets]int // permits that may be out: as many as there are, or were when there were more
	turn   types.Facet
	taken  uint64
	purses purses
	begun  bool              // the end has
	report event.DrainReport // of it, but for those who are in still when it is over
	says   []event.Decision  // what is to be told, in this order
	note   func(what string)
}

func newDoor(c node.Config) door {
	d := door{limits: c.Admission, pace: c.MaxPacingDelay, purses: newPurses(c.Quotas, c.QuotaLimits), note: unheard}
	for f := range d.queues {
		d.bounds(f, c.Admission.Facets[f], c.Admission.Weights, c.Admission.Quantum)
	}
	d.lines(c.Admission.Weights, c.Admission.Quantum)
	return d
}

// unheard is where nobody wants to know.
func unheard(string) {}

// bounds are those of a facet.
func (d *door) bounds(f int, of admission.Facet, weights [types.NumClasses]uint64, quantum uint64) {
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
	d.most[f] = max(d.outs(types.Facet(f)), of.Permits)
}

// lines are the line's: whoever is in is served to the end.
func (d *door) lines(weights [types.NumClasses]uint64, quantum uint64) {
	var weight [types.NumClasses]int64
	for k, w := range weights {
		weight[k], d.line.Class[k] = max(1, int64(w)), d.limits.Places
	}
	d.line.Most, d.line.Flow = d.limits.Places, d.limits.Places
	d.line.Change(weight, int64(quantum))
}

// renews is a gate in the place of another: nobody at work is cut, and of those who wait only
// who is of a class that is served no more.
func (d *door) renews(now types.Instant, g *event.Policy) {
	d.limits.Quantum, d.limits.Weights, d.limits.Wait, d.limits.Routes, d.pace = g.Quantum, g.Weights, g.MaxWait, slices.Clone(g.Routes), g.MaxPacingDelay
	for f, of := range g.Facets {
		if d.waits(types.Facet(f)) > of.Queue {
			d.note("more wait than a change has room for")
		}
		d.limits.Facets[f] = admission.Facet(of)
		d.bounds(f, d.limits.Facets[f], g.Weights, g.Quantum)
	}
	for i := range d.guests {
		x := &d.guests[i]
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
	d.lines(g.Weights, g.Quantum)
	others := d.purses.renews(now, g)
	for i := range d.guests {
		d.guests[i].later |= others
		d.guests[i].old, d.guests[i].oldPaced = d.guests[i].part, d.guests[i].paced
	}
	for f := range d.queues {
		for slot, any := d.queues[f].Unserved(); any; slot, any = d.queues[f].Unserved() {
			d.sends(slot, event.RejectClassDisabled, now)
		}
	}
	d.lets(now)
}

// sends tells one who waited that he may not any more.
func (d *door) sends(slot uint32, why event.RejectReason, now types.Instant) {
	for i, g := range d.guests {
		if g.ticket.Slot() != slot {
			continue
		}
		v := event.Decision{Ticket: g.ticket, Reason: why}
		if why != event.RejectNotServing {
			v.Waited = time.Duration(now - g.since)
		}
		d.gone(i)
		d.purses.returns(now, &g, g.part, true)
		d.says = append(d.says, refused(v))
		return
	}
}

func (d *door) step(before, after *View, s *Step) error {
	d.says, d.begun = d.says[:0], rankOf(after.Phase).begun()
	now := s.Now.Mono
	switch in := s.In.(type) { //nolint:gochecksumtype // the others let nobody in
	case *event.Admit:
		if err := d.arrives(before, now, in, s.Verdicts); err != nil {
			return err
		}
	case *event.ReserveBytes:
		d.streams(now, in)
		d.lets(now)
	case *event.Finish:
		d.settles(now, in)
		d.lets(now)
	case *event.ApplyPolicy:
		if after.PolicyVersion == in.Policy.Version && before.PolicyVersion != in.Policy.Version {
			d.renews(now, &in.Policy)
		}
	case event.Tick:
		d.late(now)
		d.lets(now)
	}
	if before.Phase < types.Draining && after.Phase >= types.Draining {
		d.shuts(now)
	}
	if before.Phase < types.LameDuck && after.Phase >= types.LameDuck && d.count(func(g *guest) bool { return g.paused+g.lined > 0 }) > 0 {
		d.note("told to end while a part of a body waits")
	}
	if before.Phase >= types.Draining && slices.ContainsFunc(d.says, func(v event.Decision) bool { return v.Reason == event.Admitted }) {
		d.note("more of a body goes in a drain") // nobody else does
	}
	if err := d.told(s.Verdicts); err != nil {
		return err
	}
	if err := d.reported(after); err != nil {
		return err
	}
	return d.exact(after)
}

// find is the guest of a ticket.
func (d *door) find(t types.Ticket) int {
	for i := range d.guests {
		if d.guests[i].ticket == t {
			return i
		}
	}
	return -1
}

func (d *door) count(which func(*guest) bool) (n int) {
	for i := range d.guests {
		if which(&d.guests[i]) {
			n++
		}
	}
	return n
}

// outs is how many permits of a facet are out.
func (d *door) outs(f types.Facet) int {
	return d.count(func(g *guest) bool { return g.at == "out" && g.facet == f })
}

// parked notes that somebody waits for no permit, but for his share.
func (d *door) parked() {
	for f := range types.NumFacets {
		if d.outs(f) < d.limits.Facets[f].Permits && d.waits(f) > 0 && !d.queues[f].Ready() {
			d.note("a permit is there, and who waits has his share")
		}
	}
}

// waits is how many are queued in a facet.
func (d *door) waits(f types.Facet) int {
	return d.count(func(g *guest) bool { return g.at == "queued" && g.facet == f })
}

func (d *door) gone(i int) { d.guests = append(d.guests[:i], d.guests[i+1:]...) }

// whose is the flow of one who comes: what was not verified is not believed.
func whose(in *event.Admit) types.Flow {
	if in.Key == 0 {
		return types.Flow{Class: in.Class, ID: in.Peer.Prefix64()}
	}
	return types.Flow{Class: in.Class, ID: uint64(in.Tenant)}
}

// arrives is Decide, and Dispatch behind it.
func (d *door) arrives(before *View, now types.Instant, in *event.Admit, told []event.Decision) error {
	for i := range d.guests {
		if d.guests[i].ticket.Slot() == in.Ticket.Slot() {
			return broken("SlotsExact", "%v comes, and %v is in", in.Ticket, d.guests[i].ticket)
		}
	}
	v, part, common := event.Decision{Reason: d.refuses(before, in)}, d.part(in), d.purses.sharesPeer(now, in, inAll)
	if v.Reason == event.Admitted {
		was := event.Admitted
		if len(told) > 0 && told[0].Ticket == in.Ticket {
			was = told[0].Reason
		}
		paced, err := d.paced(now, in, was)
		if err != nil {
			return err
		}
		if v.Reason = paced; paced == event.Admitted {
			v = d.purses.take(now, in, part, d.held)
		}
	}
	v.Ticket = in.Ticket
	if v.Reason != event.Admitted {
		d.says = append(d.says, refused(v))
		d.lets(now)
		return nil
	}
	cost := max(uint64(max(in.DeclaredBytes, 0)), d.limits.Least)
	if in.DeclaredBytes < 0 {
		cost = d.limits.Quantum
	}
	cost = min(cost+uint64(in.ResponseEstimate), d.limits.Quantum)
	g := guest{ticket: in.Ticket, at: "queued", facet: in.Facet, route: int(in.Route), flow: whose(in), cost: int64(cost), since: now,
		end: now.Add(max(in.TimeLeft, in.PermitFor)), until: now.Add(min(d.limits.Wait, in.TimeLeft/4)), in: *in, part: part, peer: part, common: common}
	d.guests = append(d.guests, g)
	d.queues[g.facet].Offer(g.flow, g.ticket.Slot(), g.cost)
	d.lets(now)
	for i := range d.says { // who goes at once is told how it stands with its quotas
		if d.says[i].Ticket == in.Ticket {
			v.Shadow, v.Bytes = v.Shadow|d.says[i].Shadow, d.says[i].Bytes
			d.says[i] = v
		}
	}
	return nil
}

// refused is what one is told who may not come in.
func refused(v event.Decision) event.Decision {
	v.Problem = event.Busy
	switch {
	case v.Reason == event.RejectNotServing:
		v.Problem = event.Unavailable
	case v.Reason == event.RejectQuotaExceeded, v.Reason == event.RejectPacingTimeout:
		v.Problem = event.RateLimited
	}
	return v
}

// refuses is Refuses, but for quotas.
func (d *door) refuses(before *View, in *event.Admit) event.RejectReason {
	f, flow, q := &d.limits.Facets[in.Facet], whose(in), &d.queues[in.Facet]
	waits := func(of func(*guest) bool) int {
		return d.count(func(g *guest) bool { return g.at == "queued" && g.facet == in.Facet && of(g) })
	}
	all := d.count(func(g *guest) bool { return g.route == int(in.Route) })
	switch most := d.limits.Routes; {
	case !before.Reads:
		return event.RejectNotServing
	case int(in.Route) < len(most) && most[in.Route] > 0 && all >= most[in.Route]:
		if d.count(func(g *guest) bool { return g.route == int(in.Route) && g.at == "lost" }) > 0 {
			d.note("a route is full of who has no permit any more")
		}
		return event.RejectRouteLimit
	case q.Weight[in.Class] == 0:
		return event.RejectClassDisabled
	case waits(func(*guest) bool { return true }) >= f.Queue:
		return event.RejectQueueFull
	case waits(func(g *guest) bool { return g.flow.Class == in.Class }) >= f.PerClass[in.Class]:
		return event.RejectClassLimit
	case waits(func(g *guest) bool { return g.flow == flow }) >= f.PerFlow:
		return event.RejectFlowLimit
	}
	return event.Admitted
}

// paced says whether the instance's pace is a reason to refuse one: it must be, where he would
// wait too long if nobody were before him; and must not, where he would not if all were.
func (d *door) paced(now types.Instant, in *event.Admit, told event.RejectReason) (event.RejectReason, error) {
	queued := d.waits(in.Facet)
	own := d.count(func(g *guest) bool { return g.at == "queued" && g.facet == in.Facet && g.flow == whose(in) })
	least := slices.MinFunc(d.limits.Weights[:], func(a, b uint64) int { return cmp.Compare(a-1, b-1) }) // 0 is the most
	most := max(d.pace, min(d.limits.Wait, d.pace*time.Duration(d.limits.Weights[in.Class]/least)))
	if own == 0 {
		most = d.limits.Wait
	}
	switch is := told == event.RejectPacingTimeout; {
	case is && d.purses.paced(now, queued, inRequests) <= most:
		return told, broken("RefusedRightly", "%v is refused for the pace, with %d queued", in.Ticket, queued)
	case !is && d.purses.paced(now, 0, inRequests) > most:
		return told, broken("Paced", "%v would wait for %v, and may for %v", in.Ticket, d.purses.paced(now, 0, inRequests), most)
	case is:
		return event.RejectPacingTimeout, nil
	}
	return event.Admitted, nil
}

// lets is Dispatch, for as long as there are permits and tokens: requests and parts of bodies take
// turns.
func (d *door) lets(now types.Instant) {
	for {
		f, ripe := d.ripe()
		goes := ripe && d.purses.paced(now, 0, inAll) == 0
		switch onward := d.onward(now); {
		case onward && (!d.passed || !goes):
			if goes {
				d.note("a request and a part of a body take turns")
			}
			d.nextPart(now)
		case goes:
			d.next(now, f)
		default:
			if ripe {
				d.note("a permit is there, and the pace lets nobody go")
			}
			d.parked()
			return
		}
	}
}

// ripe is the facet whose turn it is of those in which somebody waits, and a permit is there.
func (d *door) ripe() (f types.Facet, any bool) {
	for n := range types.NumFacets {
		if f = (d.turn + n) % types.NumFacets; d.queues[f].Ready() {
			return f, true
		}
	}
	return 0, false
}

// next lets one of a facet go.
func (d *door) next(now types.Instant, f types.Facet) {
	d.turn, d.passed = (f+1)%types.NumFacets, false
	slot, _ := d.queues[f].Next()
	for i := range d.guests {
		if g := &d.guests[i]; g.ticket.Slot() == slot {
			g.at, g.until, g.paced = "out", g.end.Add(d.limits.Grace), g.part
			v := event.Decision{Ticket: g.ticket, Waited: time.Duration(now - g.since), Shadow: d.purses.spends(now, g.part, inAll), Bytes: d.limits.Quantum}
			if d.purses.byBytes(&g.in) {
				v.Bytes = g.part
			}
			d.says = append(d.says, v)
		}
	}
}

// settles is Settle: a ticket that is not in changes nothing.
func (d *door) settles(now types.Instant, in *event.Finish) {
	i := d.find(in.Ticket)
	if i < 0 {
		return
	}
	g := d.guests[i]
	if d.gone(i); g.paused > 0 {
		d.note("ends, and a part of its body waits")
	}
	if g.lined > 0 {
		d.note("ends, and a part of its body waits for its turn")
		d.line.Drop(g.ticket.Slot())
	}
	if g.at == "queued" {
		d.queues[g.facet].Drop(g.ticket.Slot())
		d.purses.returns(now, &g, g.part, true)
		return
	}
	d.purses.settled(now, &g, in.Bytes)
	d.ends(in.Completion)
	if g.at == "out" {
		d.queues[g.facet].Return(g.flow)
		d.queues[g.facet].Correct(g.flow, g.cost-int64(min(max(in.Bytes, d.limits.Least), 1<<40)))
	}
}

// late is Late and Reclaim, the earliest first.
func (d *door) late(now types.Instant) {
	for {
		first := -1
		for i := range d.guests {
			g := &d.guests[i]
			if g.at == "lost" || g.due() > now {
				continue
			}
			if first < 0 || g.due() < d.guests[first].due() || g.due() == d.guests[first].due() && g.ticket.Slot() < d.guests[first].ticket.Slot() {
				first = i
			}
		}
		if first < 0 {
			return
		}
		if g := &d.guests[first]; g.at == "out" {
			d.resumes(now, g)
			continue
		}
		g := d.guests[first]
		d.queues[g.facet].Drop(g.ticket.Slot())
		d.sends(g.ticket.Slot(), event.RejectQueueTimeout, now)
	}
}

// shuts is Drain: nobody waits through it.
func (d *door) shuts(now types.Instant) {
	for f := range d.queues {
		for slot, any := d.queues[f].Evict(); any; slot, any = d.queues[f].Evict() {
			d.sends(slot, event.RejectNotServing, now)
		}
	}
	d.lets(now)
}

// told wants each to be told what is his, once, and in turn.
func (d *door) told(all []event.Decision) error {
	for i, v := range all {
		if i == len(d.says) {
			return broken("OneVerdict", "%v is told %v, and nothing was to be told", v.Ticket, v.Reason)
		}
		want := d.says[i]
		switch v.Ahead = 0; {
		case v.Ticket != want.Ticket:
			return broken("InTurn", "%v is told %v, and it is the turn of %v", v.Ticket, v.Reason, want.Ticket)
		case v.Reason != want.Reason && v.Reason != event.Admitted:
			return broken("RefusedRightly", "%v is refused for %v, and has a right to %v", v.Ticket, v.Reason, want.Reason)
		case v.Reason != want.Reason:
			return broken("Refused", "%v goes, and there is no room for %v", v.Ticket, want.Reason)
		case v.Waited != want.Waited || v.Problem != want.Problem:
			return broken("OneVerdict", "told %+v, should be %+v", v, want)
		case v != want:
			return broken("QuotaExact", "told %+v, should be %+v", v, want)
		}
	}
	if n := len(all); n < len(d.says) {
		return broken("NoneLost", "%v is to be told %v, and is told nothing", d.says[n].Ticket, d.says[n].Reason)
	}
	return nil
}

// exact wants what the node counts to be what is there.
func (d *door) exact(after *View) error {
	var queued [types.NumFacets][types.NumClasses]uint32
	for i := range d.guests {
		if g := &d.guests[i]; g.at == "queued" {
			queued[g.facet][g.flow.Class]++
		}
	}
	for f := range types.NumFacets {
		out := d.outs(f)
		d.most[f] = max(d.limits.Facets[f].Permits, min(d.most[f], out))
		if after.Permits[f] != uint32(out) || out > d.most[f] {
			return broken("PermitsExact", "%d permits of %v are out, counted %d, at most %d", out, f, after.Permits[f], d.most[f])
		}
	}
	if lined := d.count(func(g *guest) bool { return g.lined > 0 }); int(after.PacedParts) != lined {
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
