package trace

import (
	"time"

	"macronode/core/event"
	"macronode/core/gateway/quota"
	"macronode/core/types"
)

// Parts of bodies wait for the quotas of their callers and, if a rule of the instance counts
// bytes, for their turn.

// due returns the next deadline of a request.
func (g *gateRequest) due() types.Instant {
	if g.paused+g.lined > 0 {
		return min(g.until, g.goes)
	}
	return g.until
}

// streams handles reserved bytes: they pass at once, or when the quotas of their request have
// refilled. If that exceeds the patience of the request, they are rejected.
func (d *gate) streams(now types.Instant, in *event.ReserveBytes) {
	i := d.find(in.Ticket)
	if i < 0 || d.requests[i].at == "queued" || d.requests[i].paused+d.requests[i].lined > 0 {
		return
	}
	g := &d.requests[i]
	if g.at == "lost" {
		v := event.Decision{Ticket: g.ticket, Reason: event.RejectQueueTimeout}
		if g.keyEnded {
			v.Reason = event.RejectKeyEnded
		}
		d.expected = append(d.expected, withoutQuotaState(v))
		return
	}
	if !d.quotaState.byBytes(&g.in) {
		g.part, g.peer, g.paced = g.part+d.limits.Quantum, g.peer+d.limits.Quantum, g.paced+d.limits.Quantum
		d.goesOn(g, d.limits.Quantum)
		return
	}
	asked := g.in
	asked.DeclaredBytes = int64(min(max(in.Bytes, 1), d.limits.Quantum))
	bytes := d.part(&asked)
	wait, v := d.quotaState.books(now, g, bytes)
	if v.Reason != event.Admitted {
		v.Ticket = g.ticket
		d.expected = append(d.expected, withoutQuotaState(v))
		if d.count(func(x *gateRequest) bool { return x.flow == g.flow && (x.paused+x.lined > 0 || x.at == "queued") }) > 0 {
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

// onwards queues bytes that their caller's quotas admit, if parts take turns; for at most the
// patience of the request.
func (d *gate) onwards(now types.Instant, g *gateRequest, bytes uint64) {
	if !d.quotaState.ofInstance() {
		g.paced += bytes
		d.goesOn(g, bytes)
		return
	}
	g.lined, g.goes = bytes, now.Add(g.in.TimeLeft)
	d.line.Offer(g.flow, g.ticket.Slot(), int64(min(bytes, d.limits.Quantum)))
	d.grantPermits(now)
}

// onward reports whether a queued part may pass: the instance has no debt.
func (d *gate) onward(now types.Instant) bool {
	return d.count(func(g *gateRequest) bool { return g.lined > 0 }) > 0 && d.quotaState.paced(now, 0, inBytes) == 0
}

// nextPart grants the next part.
func (d *gate) nextPart(now types.Instant) {
	slot, _ := d.line.Next()
	d.passed = true
	for i := range d.requests {
		if g := &d.requests[i]; g.ticket.Slot() == slot {
			bytes := g.lined
			g.lined, g.paced = 0, g.paced+bytes
			d.quotaState.spends(now, bytes, inBytes)
			if d.queues[g.facet].Weight[g.flow.Class] == 0 {
				d.note("more of a body goes of a class that is served no more")
			}
			d.goesOn(g, bytes)
			return
		}
	}
}

// goesOn passes bytes: others of its flow wait longer.
func (d *gate) goesOn(g *gateRequest, bytes uint64) {
	if d.count(func(x *gateRequest) bool { return x.at == "queued" && x.flow == g.flow && x.facet == g.facet }) > 0 {
		d.note("more of a body goes, and its flow waits the longer")
	}
	g.cost += int64(bytes)
	d.queues[g.facet].Correct(g.flow, -int64(min(bytes, d.limits.Quantum)))
	d.expected = append(d.expected, event.Decision{Ticket: g.ticket, Bytes: bytes})
}

// resumes handles a deadline of a running request: paused bytes continue, bytes queued for too
// long are rejected, and nothing continues if the permit was reclaimed.
func (d *gate) resumes(now types.Instant, g *gateRequest) {
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
		d.quotaState.returns(now, g, paused+lined, false)
		d.expected = append(d.expected, withoutQuotaState(event.Decision{Ticket: g.ticket, Reason: event.RejectPacingTimeout}))
	default:
		d.onwards(now, g, paused)
	}
}

// books charges further bytes of a request, and returns how long they wait; v has the rule for
// which they would wait too long: then they are not charged.
func (p *quotaState) books(now types.Instant, g *gateRequest, bytes uint64) (wait time.Duration, v event.Decision) {
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
		if r.Shadow { // if it had paced the bytes, they would not be owed
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
	if !g.common && p.sharesPeer(now, &g.in, inBytes) { // its own bucket was full and is gone
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

// held returns the bytes of a bucket that are charged and still wait: they do not block arrivals.
func (d *gate) held(now types.Instant, at int, in *event.Admit) time.Duration {
	r := &d.quotaState.rules[at]
	if r.Unit != types.UnitBytes || r.Shadow {
		return 0
	}
	s, _ := r.subject(in)
	common := r.Scope == types.ScopePeer && d.quotaState.sharesPeer(now, in, inAll)
	bytes := uint64(0)
	for i := range d.requests {
		g := &d.requests[i]
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
