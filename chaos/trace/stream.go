package trace

import (
	"time"

	"macronode/core/event"
	"macronode/core/quota"
	"macronode/core/words"
)

// Parts of bodies, where no rule of the instance counts bytes: then none waits for its turn.

// due is when something is to be done about a guest.
func (g *guest) due() words.Instant {
	if g.paused > 0 {
		return min(g.until, g.goes)
	}
	return g.until
}

// streams: further bytes go at once, or when the quotas of their request have them; what would
// take longer than it has patience is refused.
func (d *door) streams(now words.Instant, in *event.Stream) {
	i := d.find(in.Ticket)
	if i < 0 || d.guests[i].at == "queued" || d.guests[i].paused > 0 {
		return
	}
	g := &d.guests[i]
	if g.at == "lost" {
		d.says = append(d.says, refused(event.Verdict{Ticket: g.ticket, Why: event.WaitedLong}))
		return
	}
	if !d.purses.byBytes(&g.in) {
		g.part += d.limits.Quantum
		d.goesOn(g, d.limits.Quantum)
		return
	}
	asked := g.in
	asked.Bytes = int64(min(max(in.Bytes, 1), d.limits.Quantum))
	bytes := d.part(&asked)
	wait, v := d.purses.books(now, g, bytes)
	if v.Why != event.Admitted {
		v.Ticket = g.ticket
		d.says = append(d.says, refused(v))
		if d.count(func(x *guest) bool { return x.flow == g.flow && (x.paused > 0 || x.at == "queued") }) > 0 {
			d.note("more of a body is refused while another of its flow waits")
		}
		return
	}
	if g.part += bytes; wait > 0 {
		g.paused, g.goes = bytes, now.Plus(wait)
		return
	}
	d.goesOn(g, bytes)
}

// goesOn lets bytes go: where others of its flow wait, they wait the longer.
func (d *door) goesOn(g *guest, bytes uint64) {
	if d.count(func(x *guest) bool { return x.at == "queued" && x.flow == g.flow && x.facet == g.facet }) > 0 {
		d.note("more of a body goes, and its flow waits the longer")
	}
	g.cost += int64(bytes)
	d.queues[g.facet].Correct(g.flow, -int64(min(bytes, d.limits.Quantum)))
	d.says = append(d.says, event.Verdict{Ticket: g.ticket, Bytes: bytes})
}

// resumes is one at work whose time has come: what was paused goes, or, when his permit is taken
// back, never will.
func (d *door) resumes(now words.Instant, g *guest) {
	bytes, taken := g.paused, g.until <= now
	g.paused = 0
	if taken {
		g.at = "lost"
		d.out[g.facet]--
		d.taken++
	}
	switch {
	case bytes == 0:
	case taken:
		d.purses.returns(now, g, bytes, false)
		g.part -= bytes
		g.old = min(g.old, g.part)
		d.says = append(d.says, refused(event.Verdict{Ticket: g.ticket, Why: event.OverPace}))
	default:
		d.goesOn(g, bytes)
	}
}

// books charges further bytes of a request, and says how long they wait; v is of the rule for
// which they would wait too long: then they are not charged.
func (p *purses) books(now words.Instant, g *guest, bytes uint64) (wait time.Duration, v event.Verdict) {
	var after [quota.MaxRules]time.Duration
	refuses := -1
	each := func(do func(i int, r *rule, to *words.Instant)) {
		shares := g.common || p.sharesPeer(now, &g.in)
		for i := range p.rules {
			r := &p.rules[i]
			s, counts := r.subject(&g.in)
			switch {
			case !counts || r.Unit != words.Bytes || r.Scope == words.OfInstance:
			case r.Rate == 0:
				do(i, r, nil)
			case r.Scope == words.OfPeer && shares:
				do(i, r, &r.common)
			default:
				do(i, r, p.bucket(r, s, now))
			}
		}
	}
	each(func(i int, r *rule, to *words.Instant) {
		of, used := time.Duration(quota.Never), time.Duration(0)
		if to != nil {
			used = had(*to, now)
			after[i], of = r.wants(used, bytes)
		}
		if r.Shadow {
			after[i] = max(used, min(after[i], r.full))
		} else if of > wait {
			refuses, wait = i, of
		}
	})
	if wait > g.in.Patience {
		v.Why = event.OverQuota
		if wait < time.Duration(quota.Never) {
			v.Retry = wait
		}
		each(func(i int, r *rule, to *words.Instant) {
			if i == refuses && to != nil {
				r.tell(&v, i, had(*to, now))
			} else if i == refuses {
				r.tell(&v, i, 0)
			}
		})
		return 0, v
	}
	each(func(i int, _ *rule, to *words.Instant) {
		if to != nil {
			*to = now.Plus(after[i])
		}
	})
	return wait, v
}

// held is how much of what somebody has had by a rule is charged and does not go yet: it keeps
// nobody out who comes.
func (d *door) held(at int, in *event.Arrive) time.Duration {
	r := &d.purses.rules[at]
	if r.Unit != words.Bytes || r.Shadow {
		return 0
	}
	s, _ := r.subject(in)
	bytes := uint64(0)
	for i := range d.guests {
		g := &d.guests[i]
		if other, counts := r.subject(&g.in); g.paused > 0 && counts && other == s && (g.later>>at&1 == 0 || g.part-g.old >= g.paused) {
			bytes += g.paused
		}
	}
	return r.cost(bytes)
}
