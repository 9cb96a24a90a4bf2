package sim

import (
	"time"

	"macronode/core/event"
	"macronode/core/types"
)

// A visitor makes requests other than wallet operations: it passes the gate, keeps its permit for
// some time, and leaves.
type visitor struct {
	pass
	number  int
	trip    trip
	stalls  bool // keeps its permit until the end of the run
	again   bool // was rejected, and retried at once
	streams bool // waits for a decision on reserved bytes
	went    uint64
}

// visits are the moves of visitors; the first is the default.
var visits = [...]func(*World){
	func(w *World) { w.turn(0) },
	(*World).comes, (*World).comes, (*World).comes, (*World).comes, (*World).bursts, (*World).bursts, (*World).floods, (*World).crowds,
	(*World).ends, (*World).ends, (*World).ends, (*World).ends,
	(*World).changes, (*World).changes, (*World).streams, (*World).streams, (*World).pours, (*World).turnsAway, (*World).holdsOn, (*World).awhile, (*World).awhile,
	(*World).travels, (*World).travels, (*World).travels, (*World).travels, (*World).turnsMood, (*World).queriesUpstream, (*World).failsForOne,
	(*World).brink, (*World).spree, (*World).finds, (*World).trusts, (*World).closes,
}

// visit is a move at the gate.
func (w *World) visit() {
	if w.c.Choose("gate/deaf", 4) != 1 {
		w.listens()
	}
	visits[w.c.Choose("gate/what", len(visits))](w)
}

// listens delivers the decisions.
func (w *World) listens() {
	for i := range w.visitors {
		v := &w.visitors[i]
		if v.is == works && v.streams {
			w.hearsFurther(v)
		}
		if v.is != knocks {
			continue
		}
		switch testified, ok := w.hears(&v.pass); {
		case !ok:
		case testified.Problem == event.None:
			v.again = false
		case v.again:
			w.Saw["came again at once, and was refused again"]++
			v.again = false
		case w.c.Choose("gate/again", 3) == 1: // without waiting for RetryAfter
			w.knock(&v.pass, v.in)
			v.again = true
		}
	}
}

// arrives makes a new visitor, if one is left.
func (w *World) arrives(in event.Admit) *visitor {
	for i := range w.visitors {
		if v := &w.visitors[i]; v.is == away {
			*v = visitor{number: i}
			w.knock(&v.pass, in)
			return v
		}
	}
	return nil
}

// keylessArrival returns a request without a key.
func keylessArrival(peer int) (in event.Admit) {
	in = event.Admit{Class: types.ClassAnon, DeclaredBytes: 100, TimeLeft: time.Second}
	in.Peer[7] = byte(peer)
	return in
}

// arrival draws a request.
func (w *World) arrival() (in event.Admit) {
	in = keylessArrival(1 + w.c.Choose("gate/peer", 6))
	if goalClient := w.c.Choose("gate/who", 10); goalClient > 2 { // three tenants; the first is that of the clients
		in.Class, in.Tenant = types.ClassAuthed, types.Tenant(1+goalClient%3)
		if in.Key = types.KeyID(200 + in.Tenant); w.clerk.known && in.Tenant == boss.Tenant && !w.clerk.ended[w.clerk.id] {
			in.Key = w.clerk.id
		}
		if goalClient > 7 {
			in.Class, in.Tenant, in.Key = types.ClassInternal, boss.Tenant, boss.ID
		}
	}
	in.Facet, in.Route = types.Facet(w.c.Choose("gate/facet", int(types.NumFacets))), uint16(w.c.Choose("gate/route", 4))
	in.DeclaredBytes = []int64{100, 2000, 9000, -1}[w.c.Choose("gate/bytes", 4)]
	in.TimeLeft = []time.Duration{time.Second, 40 * time.Millisecond, 4 * time.Second}[w.c.Choose("gate/patience", 3)]
	in.PermitFor = []time.Duration{0, 3 * time.Second}[w.c.Choose("gate/keeps", 2)]
	return in
}

// decides usually lets the node decide at once.
func (w *World) decides() {
	if w.c.Choose("gate/at-once", 3) != 1 {
		w.lets()
	}
}

func (w *World) comes() {
	w.arrives(w.arrival())
	w.decides()
}

// bursts: one caller makes the same request many times.
func (w *World) bursts() {
	in := w.arrival()
	for range 2 + w.c.Choose("gate/burst", 6) {
		w.arrives(in)
	}
	w.decides()
}

// floods: requests come from many addresses without a key.
func (w *World) floods() {
	in := keylessArrival(0)
	in.Facet = types.Facet(w.c.Choose("gate/facet", int(types.NumFacets)))
	for n := range 4 + w.c.Choose("gate/burst", 6) {
		in.Peer[6], in.Peer[7] = 1, byte(n)
		w.arrives(in)
	}
	w.Saw["keyless flood"]++
	w.decides()
}

// crowds: all classes use one facet, with several callers each.
func (w *World) crowds() {
	facet, first := types.Facet(w.c.Choose("gate/facet", int(types.NumFacets))), w.c.Choose("gate/first", int(types.NumClasses))
	for n := range 7*int(types.NumClasses) - 1 {
		in := keylessArrival(1 + n)
		if c := types.Class((first + n) % int(types.NumClasses)); c != types.ClassAnon {
			in.Class, in.Tenant = c, types.Tenant(1+n/int(types.NumClasses))
			in.Key = types.KeyID(200 + in.Tenant)
		}
		in.Facet = facet
		w.arrives(in)
	}
	w.lets()
}

// any returns a random visitor in a state.
func (w *World) any(is visit) *visitor {
	from := w.c.Choose("gate/which", len(w.visitors))
	for n := range w.visitors {
		if v := &w.visitors[(from+n)%len(w.visitors)]; v.is == is && !(is == works && v.stalls) {
			return v
		}
	}
	return nil
}

// ends finishes a visitor, with the declared number of bytes or a very different one.
func (w *World) ends() {
	v := w.any(works)
	if v == nil || v.trip.is != home {
		return
	}
	bytes := uint64(max(v.in.DeclaredBytes, 0)) + v.went
	more := w.c.Choose("gate/more", 40_000)
	switch w.c.Choose("gate/lies", 4) {
	case 2: // truncated
		bytes /= 2
	case 1:
		bytes += uint64(more)
		var s event.Status
		if w.node.Status(&s); s.Queued[v.in.Facet][v.in.Class] > 0 {
			w.Saw["declared a wrong length while others of its class wait"]++
		}
	}
	w.settles(&v.pass, bytes)
	w.decides()
}

// turnsAway cancels a waiting visitor.
func (w *World) turnsAway() {
	if v := w.any(knocks); v != nil {
		w.Saw["left the gate"]++
		w.leaves(&v.pass)
		w.decides()
	}
}

// holdsOn makes a visitor keep its permit.
func (w *World) holdsOn() {
	if v := w.any(works); v != nil {
		v.stalls = true
	}
}

// awhile advances time by an amount that matters at the gate; the tick after it may be late.
func (w *World) awhile() {
	gone := time.Duration(w.c.Choose("gate/gone", 60)) * time.Millisecond
	if w.c.Choose("gate/late", 4) == 1 {
		w.gone(gone)
		return
	}
	w.pass(gone)
}

// goes ends a visitor.
func (v *visitor) goes(w *World) {
	w.comesHome(v)
	if w.leaves(&v.pass); v.is == works && w.now.Mono >= w.places[v.at].until {
		w.Saw["ended when its permit had been taken back"]++
	}
	w.settles(&v.pass, 0)
}
