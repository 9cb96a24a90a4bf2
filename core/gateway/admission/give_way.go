package admission

import "macronode/core/types"

// Callers without a key are as many as there are addresses, so a few peers could hold all permits of their class with requests that
// last. Therefore a peer that holds no permit may wait longer, if another one holds many, and then takes the permit of a request
// that has lasted:
//
//	queued ──Wait──► first of a peer without a permit? ──no──► rejected
//	                  └─yes─► a peer holds many? ──no──► rejected
//	                           └─yes─► queued ──GiveWay──► its oldest request lasted for GiveWay? ──no──► rejected
//	                                                        └─yes─► out, and the oldest request is lost
//
// Before that it gets each permit that becomes free in its turn. So nothing gives way while requests end.

// manyParts is how many parts the permits of a class have, of which a peer that holds many permits holds one or more.
const manyParts = 32

// many returns how many permits of a facet are many for one peer without a key.
func (a *Admit) many(f types.Facet) int {
	most := a.limits.Facets[f].ClassPermits[types.ClassAnon]
	if most == 0 {
		most = a.limits.Facets[f].Permits
	}
	return max(2, most/manyParts)
}

// mayTakeOver reports whether a queued request could take the permit of another one: it is the first one of a peer without a
// permit, its deadline leaves the time, and its class has exactly as many permits as it may have.
func (a *Admit) mayTakeOver(place uint32) bool {
	r := &a.rows[place]
	q := &a.queues[r.facet]
	return a.limits.GiveWay > 0 && r.flow.Class == types.ClassAnon && r.patience/4 >= a.limits.GiveWay &&
		q.First(place) && q.Uses(r.flow) == 0 && q.Left(r.flow.Class) == 0
}

// givesWay returns the oldest request of the peer without a key that holds the most permits of a facet; false if none holds many.
func (a *Admit) givesWay(f types.Facet) (place uint32, ok bool) {
	most := a.many(f)
	for i := range a.rows {
		r := &a.rows[i]
		if r.state != out || r.facet != f || r.flow.Class != types.ClassAnon {
			continue
		}
		uses := a.queues[f].Uses(r.flow)
		if uses > most || uses == most && (!ok || r.since < a.rows[place].since) {
			place, most, ok = uint32(i), uses, true
		}
	}
	return place, ok
}

// waitsOn lets a queued request whose wait is over wait on, if it may take a permit over later.
func (a *Admit) waitsOn(now types.Instant, place uint32) bool {
	r := &a.rows[place]
	until := r.since.Add(a.limits.GiveWay)
	if until <= now || !a.mayTakeOver(place) {
		return false
	}
	if _, many := a.givesWay(r.facet); !many {
		return false
	}
	r.until = until
	a.moved(place)
	return true
}

// takesOver returns the request whose permit a queued request may take now.
func (a *Admit) takesOver(now types.Instant, place uint32) (from uint32, ok bool) {
	r := &a.rows[place]
	if r.since.Add(a.limits.GiveWay) > now || !a.mayTakeOver(place) {
		return 0, false
	}
	from, ok = a.givesWay(r.facet)
	return from, ok && a.rows[from].since.Add(a.limits.GiveWay) <= now
}

// takeOver gives the permit of one row to another one.
func (a *Admit) takeOver(now types.Instant, place, from uint32) Expired {
	loser := &a.rows[from]
	bytes := loser.part.bytes
	a.drop(from)
	a.revoke(from)
	a.queues[loser.facet].Take(place)
	return Expired{Ticket: a.rows[place].ticket, What: TookOver, Waited: a.grant(now, place), Bytes: bytes, Loser: loser.ticket}
}
