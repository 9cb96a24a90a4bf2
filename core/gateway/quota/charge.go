package quota

import (
	"errors"
	"math"
	"math/bits"
	"time"

	"macronode/core/types"
)

// A charge is what a request that is in has been charged, so that it is given back what it
// has not used.
type charge struct {
	open   bool
	who    Subject
	had    uint64 // bytes charged to its key and its tenant
	peer   uint64 // to its peer's counter that is its own, or that others share
	common bool   // the peer's is the one that those share who have none of their own
	paced  uint64 // to the instance
	held   uint64 // the last of them, charged and not let go yet
	since  uint16 // bit i: rule i is another than when it was opened, and has charged nothing of what is old
	old    uint64 // of had, what was charged before the last change
	oldest uint64 // of paced, the same
}

// new is how many of the last bytes of so many, that were charged, the rules as they are have charged.
func (t *charge) new(bytes uint64) uint64 { return min(bytes, t.had-t.old) }

// Admit is Take for a request whose place is free, and opens a tab for it when it is
// admitted.
func (q *Quota) Admit(now types.Instant, place uint32, who Subject, bytes uint64) Result {
	types.Assert(!q.charges[place].open, "quota: a place whose tab is open")
	v := q.Take(now, who, bytes)
	if !v.Refused {
		q.charges[place] = charge{open: true, who: who, had: bytes, peer: bytes, common: q.asked.places[types.ScopePeer] == sharedRow}
	}
	return v
}

// ChargeInstance is Spend for a request that has waited for its permit.
func (q *Quota) ChargeInstance(now types.Instant, place uint32) (shadow uint16) {
	t := &q.charges[place]
	t.paced = t.had
	return q.Spend(now, t.paced)
}

// ChargedBytes is how many bytes a request was charged.
func (q *Quota) ChargedBytes(place uint32) uint64 { return q.charges[place].had }

// CountsBytes reports that any rule counts the bytes of a request.
func (q *Quota) CountsBytes(place uint32) bool {
	return q.rulesFor(&q.charges[place].who)&q.bytes != 0 || q.HasInstanceByteQuota()
}

// HasInstanceByteQuota reports that a rule of the instance counts bytes.
func (q *Quota) HasInstanceByteQuota() bool { return q.bytes&q.paces != 0 }

// ReservePart charges further bytes of a request to its peer, key, tenant and route, and says how long
// they have to wait until those let them go: such are held until Let. What would wait longer
// than most is refused, and not charged.
//
// Who is held keeps nobody out who comes: what is held is no part of what Take looks at.
// So a body that is paced and requests that come share what there is; and over any time
// from the start nobody has more than burst + rate·t, and one Book, or what it came with,
// for each request of his of those that were ever in at once.
func (q *Quota) ReservePart(now types.Instant, place uint32, bytes uint64, most time.Duration) (wait time.Duration, v Result) {
	t, f := &q.charges[place], &q.asked
	types.Assert(t.open && t.held == 0, "quota: books for nobody, or what waits already")
	q.find(now, &t.who, bytes, q.rulesFor(&t.who)&q.bytes, t.common)
	refuses := -1
	for m := f.rules; m != 0; m &= m - 1 {
		i := bits.TrailingZeros16(m)
		g, of := &q.gauges[i], time.Duration(Never)
		used := q.used(i)
		if g.Rate > 0 {
			f.afterCharge[i], of = g.take(used, g.cost(bytes))
		}
		switch {
		case g.Shadow: // had it paced, it would be owed nothing
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
	var told Result
	q.charge(&t.who, &told)
	if !t.common && f.places[types.ScopePeer] == sharedRow { // its own has left, idle: all of it was back
		t.common, t.peer = true, 0
	}
	t.had, t.peer = t.had+bytes, t.peer+bytes
	if wait > 0 {
		q.startHolding(t, bytes)
	}
	return wait, v
}

// GrantPart lets go what is held of a request, whose time has come.
func (q *Quota) GrantPart(place uint32) {
	q.stopHolding(&q.charges[place])
}

// ReleasePart gives back the last bytes that were booked: they will not be had.
func (q *Quota) ReleasePart(now types.Instant, place uint32, bytes uint64) {
	q.GrantPart(place)
	q.latest = max(now, q.latest)
	t := &q.charges[place]
	types.Assert(bytes <= t.had, "quota: gives back what was not charged")
	q.giveBack(t, q.bytes, bytes)
}

// NextPart is the earliest instant at which the rules of the instance let further bytes go:
// when none is owed.
func (q *Quota) NextPart(now types.Instant) types.Instant {
	at, _ := q.next(now, 0, q.bytes)
	return at
}

// RecordPassed notes further bytes of a request that no rule counts.
func (q *Quota) RecordPassed(place uint32, bytes uint64) {
	t := &q.charges[place]
	t.had, t.peer, t.paced = t.had+bytes, t.peer+bytes, t.paced+bytes
}

// ChargeInstancePart charges further bytes of a request to the instance.
func (q *Quota) ChargeInstancePart(now types.Instant, place uint32, bytes uint64) {
	q.charges[place].paced += bytes
	q.pace(now, bytes, q.bytes)
}

// DrainTime is how long the instance takes to give so many bytes, and how long a caller's peer,
// key, tenant and route do, by the slowest of their rules.
func (q *Quota) DrainTime(who *Subject, bytes uint64) (instance, own time.Duration) {
	mine := q.rulesFor(who)
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

// Subject is whose tab it is.
func (q *Quota) Subject(place uint32) *Subject { return &q.charges[place].who }

// Finish closes the tab of a request that really had so many bytes: what was charged
// beyond them is given back, and what they were beyond that is charged, whatever there is.
func (q *Quota) Finish(now types.Instant, place uint32, bytes uint64) {
	t := &q.charges[place]
	if !t.open || q.bytes == 0 {
		q.close(place)
		return
	}
	q.latest = max(now, q.latest)
	q.GrantPart(place)
	if bytes < t.had {
		q.giveBack(t, q.bytes, t.had-bytes)
	} else {
		q.owe(&t.who, bytes-t.had, t.common)
	}
	if bytes < t.paced {
		q.slow(t.paced-bytes, q.bytes&q.paces&^t.since)
		q.slow(t.paced-max(bytes, t.oldest), q.bytes&q.paces&t.since)
	} else {
		q.pace(now, bytes-t.paced, q.bytes)
	}
	q.close(place)
}

// Undo closes the tab of a request that was refused after all: it is given back all that it
// was charged, itself too. The instance has not charged it.
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

// giveBack fills the counters of a request by some rules with so many bytes, and, where they
// count requests, one; no further than they are full. So what was charged in vain before is
// no more than was in then.
func (q *Quota) giveBack(t *charge, rules uint16, bytes uint64) {
	peer, late := min(bytes, t.peer), t.new(bytes)
	t.had, t.peer = t.had-bytes, t.peer-peer
	t.old = min(t.old, t.had)
	for m := q.rulesFor(&t.who) & rules; m != 0; m &= m - 1 {
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
			q.common[i] = g.back(q.common[i], g.cost(back), q.latest)
			continue
		}
		of := &q.tables[g.Scope]
		if place, known := of.rows.Find(t.who.key(g.Scope)); known {
			of.set(place, g.slot, g.back(of.row(place)[g.slot], g.cost(back), q.latest))
			if !of.taken(place) {
				of.rows.Drop(place)
			}
		}
	}
}

// slow gives bytes back to some rules of the instance.
func (q *Quota) slow(bytes uint64, rules uint16) {
	for m := rules; m != 0; m &= m - 1 {
		i := bits.TrailingZeros16(m)
		if g := &q.gauges[i]; g.Rate > 0 {
			q.common[i] = g.back(q.common[i], g.cost(bytes), q.latest)
		}
	}
}

// back is a counter that is given a cost back.
func (g *gauge) back(counter, cost nanos, now types.Instant) nanos {
	used := g.used(counter, now)
	switch {
	case used.zero():
		return counter
	case used.less(cost):
		return nanos{ns: int64(now)}
	}
	return nanos{ns: int64(now)}.plus(used.minus(cost, g.Rate), g.Rate)
}

// free is what is used of a rule's counter but for what is held of it.
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

// hashCharges is h after all tabs.
func (q *Quota) hashCharges(h types.Hash64) types.Hash64 {
	for i := range q.charges {
		if t := &q.charges[i]; t.open {
			h = t.who.key(types.ScopePeer).HashInto(h.Mix(uint64(i))).Mix(uint64(t.who.Key)).Mix(uint64(t.who.Tenant)).Mix(uint64(t.who.Class)).Mix(uint64(t.who.Route))
			h = h.Mix(t.had).Mix(t.peer).MixBool(t.common).Mix(t.paced).Mix(t.held).Mix(uint64(t.since)).Mix(t.old).Mix(t.oldest)
		}
	}
	return h
}

// checkCharges says what of the tabs does not hold.
func (q *Quota) checkCharges() error {
	holding := 0
	for i := range q.charges {
		t := &q.charges[i]
		switch {
		case !t.open && *t != charge{}:
			return errors.New("G5: a tab of nobody")
		case t.held > t.had || t.peer > t.had || t.had > math.MaxInt64 || t.old > t.had || t.oldest > t.paced:
			return errors.New("G5: a tab holds more than was charged")
		case t.held > 0:
			holding++
		}
	}
	if holding != q.openCharges {
		return errors.New("G5: what is held is not what is counted")
	}
	return q.checkHeld()
}
