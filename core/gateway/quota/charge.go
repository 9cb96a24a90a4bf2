package quota

import (
	"errors"
	"math"
	"math/bits"
	"time"

	"macronode/core/types"
)

// A charge records what an admitted request was charged, so that the unused part can be given
// back.
type charge struct {
	open   bool
	caller Subject
	had    uint64 // bytes charged to its key, tenant and route
	peer   uint64 // bytes charged to its peer's counter, its own or the shared one
	common bool   // the peer is counted by the shared counter
	paced  uint64 // to the instance
	held   uint64 // the last of these bytes, charged but still waiting
	since  uint16 // bit i: rule i changed after the charge was opened, and has not charged the bytes of old
	old    uint64 // part of had that was charged before the last change
	oldest uint64 // part of paced that was charged before the last change
}

// new returns how many of the last charged bytes were charged by the current rules.
func (t *charge) new(bytes uint64) uint64 { return min(bytes, t.had-t.old) }

// Admit is Take for a request whose place is free. If the request is admitted, it opens a charge
// for the place.
func (q *Quota) Admit(now types.Instant, place uint32, caller Subject, bytes uint64) Result {
	types.Assert(!q.charges[place].open, "quota: the place already has a charge")
	v := q.Take(now, caller, bytes)
	if !v.Refused {
		q.charges[place] = charge{open: true, caller: caller, had: bytes, peer: bytes, common: q.asked.places[types.ScopePeer] == sharedRow}
	}
	return v
}

// ChargeInstance is Spend for a request that has waited for its permit.
func (q *Quota) ChargeInstance(now types.Instant, place uint32) (shadow uint16) {
	t := &q.charges[place]
	t.paced = t.had
	return q.Spend(now, t.paced)
}

// ChargedBytes returns how many bytes a request was charged.
func (q *Quota) ChargedBytes(place uint32) uint64 { return q.charges[place].had }

// CountsBytes reports whether any rule counts the bytes of a request.
func (q *Quota) CountsBytes(place uint32) bool {
	return q.rulesFor(&q.charges[place].caller)&q.bytes != 0 || q.HasInstanceByteQuota()
}

// HasInstanceByteQuota reports whether a rule of the instance counts bytes.
func (q *Quota) HasInstanceByteQuota() bool { return q.bytes&q.paces != 0 }

// ReservePart charges further bytes of a request to its peer, key, tenant and route, and returns
// how long they must wait. Until GrantPart, waiting bytes are held. If the wait would be longer
// than most, the bytes are rejected and not charged.
//
// Held bytes do not count in Take, so a paced body does not block other requests of the caller:
// both share the rate. Over any time from the start, a subject gets at most burst + rate·t, plus
// one part, or the declared bytes, for each request in progress at once.
func (q *Quota) ReservePart(now types.Instant, place uint32, bytes uint64, most time.Duration) (wait time.Duration, v Result) {
	t, f := &q.charges[place], &q.asked
	types.Assert(t.open && t.held == 0, "quota: no charge, or bytes are held already")
	q.find(now, &t.caller, bytes, q.rulesFor(&t.caller)&q.bytes, t.common)
	refuses := -1
	for m := f.rules; m != 0; m &= m - 1 {
		i := bits.TrailingZeros16(m)
		g, of := &q.gauges[i], time.Duration(Never)
		used := q.used(i)
		if g.Rate > 0 {
			f.afterCharge[i], of = g.take(used, g.cost(bytes))
		}
		switch {
		case g.Shadow: // if it had paced the bytes, they would not be owed
			f.afterCharge[i] = larger(used, smaller(f.afterCharge[i], g.full))
		case of > wait:
			refuses, wait = i, of
		}
	}
	if wait > most {
		if v.Refused = true; wait < time.Duration(Never) {
			v.RetryAfter = wait
		}
		v.report(refuses, &q.gauges[refuses], q.used(refuses))
		return 0, v
	}
	var reported Result
	q.charge(&t.caller, &reported)
	if !t.common && f.places[types.ScopePeer] == sharedRow { // its own counter was idle and has left
		t.common, t.peer = true, 0
	}
	t.had, t.peer = t.had+bytes, t.peer+bytes
	if wait > 0 {
		q.startHolding(t, bytes)
	}
	return wait, v
}

// GrantPart releases the held bytes of a request: they may pass.
func (q *Quota) GrantPart(place uint32) {
	q.stopHolding(&q.charges[place])
}

// ReleasePart gives back the last reserved bytes, which will not be used.
func (q *Quota) ReleasePart(now types.Instant, place uint32, bytes uint64) {
	q.GrantPart(place)
	q.latest = max(now, q.latest)
	t := &q.charges[place]
	types.Assert(bytes <= t.had, "quota: more bytes released than charged")
	q.giveBack(t, q.bytes, bytes)
}

// NextPart returns the earliest instant at which the rules of the instance admit further bytes:
// when no debt is left.
func (q *Quota) NextPart(now types.Instant) types.Instant {
	at, _ := q.next(now, 0, q.bytes)
	return at
}

// RecordPassed counts further bytes of a request that no rule counts.
func (q *Quota) RecordPassed(place uint32, bytes uint64) {
	t := &q.charges[place]
	t.had, t.peer, t.paced = t.had+bytes, t.peer+bytes, t.paced+bytes
}

// ChargeInstancePart charges further bytes of a request to the instance.
func (q *Quota) ChargeInstancePart(now types.Instant, place uint32, bytes uint64) {
	q.charges[place].paced += bytes
	q.pace(now, bytes, q.bytes)
}

// DrainTime returns how long the slowest rule of the instance takes for a number of bytes, and
// how long the slowest rule of the caller's peer, key, tenant and route takes.
func (q *Quota) DrainTime(caller *Subject, bytes uint64) (instance, own time.Duration) {
	mine := q.rulesFor(caller)
	for m := q.bytes; m != 0; m &= m - 1 {
		i := bits.TrailingZeros16(m)
		g := &q.gauges[i]
		if g.Shadow || g.Rate == 0 {
			continue
		}
		if g.Scope == types.ScopeInstance {
			instance = max(instance, g.cost(bytes).ceil())
		} else if mine>>i&1 == 1 {
			own = max(own, g.cost(bytes).ceil())
		}
	}
	return instance, own
}

// Subject returns the subject of a charge.
func (q *Quota) Subject(place uint32) *Subject { return &q.charges[place].caller }

// Finish closes the charge of a request that used a number of bytes. The rest of what was charged
// is given back; what was used in excess is charged.
func (q *Quota) Finish(now types.Instant, place uint32, bytes uint64) {
	t := &q.charges[place]
	q.latest = max(now, q.latest)
	if !t.open || q.bytes == 0 {
		q.close(place)
		return
	}
	q.GrantPart(place)
	if bytes < t.had {
		q.giveBack(t, q.bytes, t.had-bytes)
	} else {
		q.owe(&t.caller, bytes-t.had, t.common)
	}
	if bytes < t.paced {
		q.giveBackInstance(t.paced-bytes, q.bytes&q.paces&^t.since)
		q.giveBackInstance(t.paced-max(bytes, t.oldest), q.bytes&q.paces&t.since)
	} else {
		q.pace(now, bytes-t.paced, q.bytes)
	}
	q.close(place)
}

// Undo closes the charge of a request that was rejected after Admit: everything is given back,
// including the request itself. The instance has not charged it.
func (q *Quota) Undo(now types.Instant, place uint32) {
	t := &q.charges[place]
	if !t.open {
		return
	}
	q.latest = max(now, q.latest)
	types.Assert(t.paced == 0 && t.held == 0, "quota: refused, and at work")
	q.giveBack(t, 1<<MaxRules-1, t.had)
	q.close(place)
}

func (q *Quota) close(place uint32) {
	q.GrantPart(place)
	q.charges[place] = charge{}
}

// giveBack refills the counters of a request, of some rules, with bytes and, where they count
// requests, with one. A counter is refilled at most to full, so charges in vain take no more than
// the requests in progress at that time.
func (q *Quota) giveBack(t *charge, rules uint16, bytes uint64) {
	peer, late := min(bytes, t.peer), t.new(bytes)
	t.had, t.peer = t.had-bytes, t.peer-peer
	t.old = min(t.old, t.had)
	for m := q.rulesFor(&t.caller) & rules; m != 0; m &= m - 1 {
		i := bits.TrailingZeros16(m)
		g, back := &q.gauges[i], bytes
		if g.Scope == types.ScopePeer {
			back = peer
		}
		if t.since>>i&1 == 1 {
			back = min(back, late)
		}
		if g.Rate == 0 || t.since>>i&1 == 1 && (g.Unit == types.UnitRequests || late == 0) {
			continue
		}
		if g.Scope == types.ScopeRoute || g.Scope == types.ScopePeer && t.common {
			q.common[i] = g.refill(q.common[i], g.cost(back), q.latest)
			continue
		}
		of := &q.tables[g.Scope]
		if place, known := of.rows.Find(t.caller.key(g.Scope)); known {
			of.set(place, g.slot, g.refill(of.row(place)[g.slot], g.cost(back), q.latest))
			if !of.taken(place) {
				of.rows.Drop(place)
			}
		}
	}
}

// giveBackInstance gives bytes back to some rules of the instance.
func (q *Quota) giveBackInstance(bytes uint64, rules uint16) {
	for m := rules; m != 0; m &= m - 1 {
		i := bits.TrailingZeros16(m)
		if g := &q.gauges[i]; g.Rate > 0 {
			q.common[i] = g.refill(q.common[i], g.cost(bytes), q.latest)
		}
	}
}

// refill returns a counter to which a cost was given back.
func (g *gauge) refill(counter, cost nanos, now types.Instant) nanos {
	used := g.used(counter, now)
	switch {
	case used.zero():
		return counter
	case used.less(cost):
		return nanos{ns: int64(now)}
	}
	return nanos{ns: int64(now)}.plus(used.minus(cost, g.Rate), g.Rate)
}

// free returns the used part of a rule's counter without the held part.
func (q *Quota) free(rule int, used nanos) nanos {
	if q.openCharges == 0 || q.bytes>>rule&1 == 0 || used.zero() {
		return used
	}
	held := q.heldBytes(rule)
	if held == 0 {
		return used
	}
	g := &q.gauges[rule]
	cost := g.cost(held)
	if used.less(cost) {
		return nanos{}
	}
	return used.minus(cost, g.Rate)
}

// hashCharges mixes all charges into h.
func (q *Quota) hashCharges(h types.Hash64) types.Hash64 {
	for i := range q.charges {
		if t := &q.charges[i]; t.open {
			h = t.caller.key(types.ScopePeer).HashInto(h.Mix(uint64(i))).Mix(uint64(t.caller.Key)).Mix(uint64(t.caller.Tenant)).Mix(uint64(t.caller.Class)).Mix(uint64(t.caller.Route))
			h = h.Mix(t.had).Mix(t.peer).MixBool(t.common).Mix(t.paced).Mix(t.held).Mix(uint64(t.since)).Mix(t.old).Mix(t.oldest)
		}
	}
	return h
}

// checkCharges returns the first invariant of the charges that does not hold.
func (q *Quota) checkCharges() error {
	holding := 0
	for i := range q.charges {
		t := &q.charges[i]
		switch {
		case !t.open && *t != charge{}:
			return errors.New("G5: a charge without a request")
		case t.held > t.had || t.peer > t.had || t.had > math.MaxInt64 || t.old > t.had || t.oldest > t.paced:
			return errors.New("G5: a charge holds more than was charged")
		case t.held > 0:
			holding++
		}
	}
	if holding != q.openCharges {
		return errors.New("G5: the held charges differ from their count")
	}
	return q.checkHeld()
}
