package trace

import (
	"time"

	"macronode/core/event"
	"macronode/core/gateway/quota"
	"macronode/core/types"
)

// Parts of bodies wait for the quotas of their caller; and where a rule of the instance counts
// bytes, for their turn.

// due is when something is to be done about a guest.
func (g *guest) due() types.Instant {
	if g.paused+g.lined > 0 {
		return min(g.until, g.goes)
	}
	return g.until
}

// streams: further bytes go at once, or when the quotas of their request have them; what would
// take longer than it has patience is refused.
func (d *door) streams(now types.Instant, in *event.ReserveBytes) {
	i := d.find(in.Ticket)
	if i < 0 || d.guests[i].at == "queued" || d.guests[i].paused+d.guests[i].lined > 0 {
		return
	}
	g := &d.guests[i]
	if g.at == "lost" {
		d.says = append(d.says, refused(event.Decision{Ticket: g.ticket, Reason: event.RejectQueueTimeout}))
		return
	}
	if !d.purses.byBytes(&g.in) {
		g.part, g.peer, g.paced = g.part+d.limits.Quantum, g.peer+d.limits.Quantum, g.paced+d.limits.Quantum
		d.goesOn(g, d.limits.Quantum)
		return
	}
	asked := g.in
	asked.DeclaredBytes = int64(min(max(in.Bytes, 1), d.limits.Quantum))
	bytes := d.part(&asked)
	wait, v := d.purses.books(now, g, bytes)
	if v.Reason != event.Admitted {
		v.Ticket = g.ticket
		d.says = append(d.says, refused(v))
		if d.count(func(x *guest) bool { return x.flow == g.flow && (x.paused+x.lined > 0 || x.at == "queued") }) > 0 {
			d.note("more of a body is refused while another of its flow waits")
		}
		return
	}
	if wait > 0 {
		g.paused, g.goes = bytes, now.Add(wait)
		return
	}
	d.onwards(now, g, bytes)
}

// onwards has bytes that the quotas of their caller let go wait for their turn, where there are
// turns; for no longer than its request has patience.
func (d *door) onwards(now types.Instant, g *guest, bytes uint64) {
	if !d.purses.ofInstance() {
		g.paced += bytes
		d.goesOn(g, bytes)
		return
	}
	g.lined, g.goes = bytes, now.Add(g.in.TimeLeft)
	d.line.Offer(g.flow, g.ticket.Slot(), int64(min(bytes, d.limits.Quantum)))
	d.lets(now)
}

// onward reports that a part is lined, and may go: the instance is owed nothing.
func (d *door) onward(now types.Instant) bool {
	return d.count(func(g *guest) bool { return g.lined > 0 }) > 0 && d.purses.paced(now, 0, inBytes) == 0
}

// nextPart lets the part go whose turn it is.
func (d *door) nextPart(now types.Instant) {
	slot, _ := d.line.Next()
	d.passed = true
	for i := range d.guests {
		if g := &d.guests[i]; g.ticket.Slot() == slot {
			bytes := g.lined
			g.lined, g.paced = 0, g.paced+bytes
			d.purses.spends(now, bytes, inBytes)
			if d.queues[g.facet].Weight[g.flow.Class] == 0 {
				d.note("more of a body goes of a class that is served no more")
			}
			d.goesOn(g, bytes)
			return
		}
	}
}

// goesOn lets bytes go: where others of its flow wait, they wait the longer.
func (d *door) goesOn(g *guest, bytes uint64) {
	if d.count(func(x *guest) bool { return x.at == "queued" && x.flow == g.flow && x.facet == g.facet }) > 0 {
		d.note("more of a body goes, and its flow waits the longer")
	}
	g.cost += int64(bytes)
	d.queues[g.facet].Correct(g.flow, -int64(min(bytes, d.limits.Quantum)))
	d.says = append(d.says, event.Decision{Ticket: g.ticket, Bytes: bytes})
}

// resumes is one at work whose time has come: what was paused goes on, what was lined for too
// long does not; nor does anything when his permit is taken back.
func (d *door) resumes(now types.Instant, g *guest) {
	paused, lined, taken := g.paused, g.lined, g.until <= now
	g.paused, g.lined = 0, 0
	if lined > 0 {
		d.line.Drop(g.ticket.Slot())
	}
	if taken {
		g.at = "lost"
		d.queues[g.facet].Return(g.flow)
		d.taken++
	}
	switch {
	case paused+lined == 0:
	case taken || lined > 0:
		if !taken {
			d.note("a part of a body waits for its turn in vain")
		}
		d.purses.returns(now, g, paused+lined, false)
		d.says = append(d.says, refused(event.Decision{Ticket: g.ticket, Reason: event.RejectPacingTimeout}))
	default:
		d.onwards(now, g, paused)
	}
}

// books charges further bytes of a request, and says how long they wait; v is of the rule for
// which they would wait too long: then they are not charged.
func (p *purses) books(now types.Instant, g *guest, bytes uint64) (wait time.Duration, v event.Decision) {
	var after [quota.MaxRules]span
	refuses := -1
	each := func(do func(i int, r *rule, to *point)) {
		shares := g.common || p.sharesPeer(now, &g.in, inBytes)
		for i := range p.rules {
			r := &p.rules[i]
			s, counts := r.subject(&g.in)
			switch {
			case !counts || r.Unit != types.UnitBytes || r.Scope == types.ScopeInstance:
			case r.Rate == 0:
				do(i, r, nil)
			case r.Scope == types.ScopePeer && shares:
				do(i, r, &r.common)
			default:
				do(i, r, p.bucket(r, s, now))
			}
		}
	}
	each(func(i int, r *rule, to *point) {
		of, used := time.Duration(quota.Never), span{}
		if to != nil {
			used = to.had(now)
			after[i], of = r.wants(used, bytes)
		}
		if r.Shadow { // had it paced, it would be owed nothing
			if after[i] = after[i].most(r.full); used.over(r.full) {
				after[i] = used
			}
		} else if of > wait {
			refuses, wait = i, of
		}
	})
	if wait > g.in.TimeLeft {
		v.Reason = event.RejectQuotaExceeded
		if wait < time.Duration(quota.Never) {
			v.RetryAfter = wait
		}
		each(func(i int, r *rule, to *point) {
			if i == refuses && to != nil {
				r.tell(&v, i, to.had(now))
			} else if i == refuses {
				r.tell(&v, i, span{})
			}
		})
		return 0, v
	}
	if !g.common && p.sharesPeer(now, &g.in, inBytes) { // its own bucket is gone: all of it was back
		p.note("a peer shares, and had a bucket of its own")
		g.common, g.peer = true, 0
	}
	each(func(i int, _ *rule, to *point) {
		if to != nil {
			*to = after[i].back(now)
		}
	})
	g.part, g.peer = g.part+bytes, g.peer+bytes
	return wait, v
}

// held is how much of what somebody has had by a rule is charged and does not go yet: it keeps
// nobody out who comes.
func (d *door) held(now types.Instant, at int, in *event.Admit) time.Duration {
	r := &d.purses.rules[at]
	if r.Unit != types.UnitBytes || r.Shadow {
		return 0
	}
	s, _ := r.subject(in)
	common := r.Scope == types.ScopePeer && d.purses.sharesPeer(now, in, inAll)
	bytes := uint64(0)
	for i := range d.guests {
		g := &d.guests[i]
		other, counts := r.subject(&g.in)
		switch {
		case g.paused == 0 || !counts || g.later>>at&1 == 1 && g.part-g.old < g.paused:
		case r.Scope == types.ScopePeer && g.common != common, !common && other != s:
		default:
			bytes += g.paused
		}
	}
	return r.cost(bytes)
}
