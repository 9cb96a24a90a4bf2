package explore

import (
	"macronode/core/event"
	"macronode/core/node"
	"macronode/core/types"
)

// crashes adds the possible crashes. A power loss takes unsynced data, a kill takes what was not
// written; of a batch that is being written, any part may survive.
func (w *World) crashes(to []Action) []Action {
	s := &w.h.scope
	from, upto := w.wrote.lsn, w.wrote.lsn
	if w.wrote == w.safe && !w.failing && w.life == alive {
		upto = w.last.lsn
	}
	ways := func(a act, from types.LSN) {
		for n := from; n <= upto; n++ {
			for bits := range 4 {
				torn, lost := bits&1 == 1, bits&2 == 2
				if torn && (!s.torn || n == upto) || lost && !s.lost {
					continue
				}
				to = append(to, action(a, int(n), torn, lost))
			}
		}
	}
	if w.left.kills > 0 {
		ways(actKill, from)
	}
	if w.left.powers > 0 {
		from = w.safe.lsn
		if s.lies.sync && from > 0 {
			from--
		}
		ways(actPower, from)
	}
	return to
}

// power applies a crash, and the start after it.
func (w *World) power(a Action) {
	h := w.h
	switch a.kind() {
	case actPower, actKill:
		w.crash(a)
	case actRead:
		w.life = read
	case actRewrite:
		w.safe = w.wrote
	case actBoot:
		w.boot()
	default:
		h.fail("no such action: %d", a)
	}
}

func (w *World) crash(a Action) {
	h := w.h
	if w.life != alive {
		h.saw(sawAgain)
	}
	before := w.last
	stays := w.last.upto(types.LSN(a.n()))
	if a.kind() == actPower {
		w.left.powers--
		w.tail = uint8(max(stays.lsn, w.safe.lsn) - w.safe.lsn)
		w.safe = stays
	} else {
		w.left.kills--
		w.tail = uint8(stays.lsn - w.safe.lsn)
	}
	if w.tail > 0 {
		h.saw(sawTail)
	}
	if stays != before {
		h.saw(sawLost)
	}
	if a.torn() {
		h.saw(sawTorn)
	}
	w.last, w.handed, w.wrote, w.life, w.cut = stays, stays, stays, dead, a.torn()
	w.folded, w.late, w.folds, w.failing, w.heard = h.empty, queue{}, queue{}, false, 0
	w.http, w.began, w.flushed, w.flush, w.emitted = door{}, 0, 0, 0, 0
	if a.lost() || !stays.has(w.table) {
		w.table = h.empty
	}
	w.mark = w.table
	for i := range w.clients {
		if c := &w.clients[i]; c.state != idle {
			c.forget(w)
		}
		w.clients[i].gone = 0
	}
	for _, f := range w.facts {
		if f.page != nil {
			h.saw(sawAcknowledged)
		}
	}
}

// boot folds what was read, as a start does, and starts a node.
func (w *World) boot() {
	h := w.h
	st := h.fresh()
	var frames [64]*page
	n := 0
	for p := w.wrote; p.before != nil; p = p.before {
		frames[n] = p
		n++
	}
	for n--; n >= 0; n-- {
		if err := st.Fold(frames[n].body, nil); err != nil {
			h.fail("X5: %v cannot be folded: %w", frames[n].lsn, err)
			return
		}
		if st.Hash() != frames[n].state {
			h.fail("X5: a fold of %v comes to another state than the node had", frames[n].lsn)
			return
		}
	}
	w.node = node.New(h.config, st, w.now.Mono, types.NewRand(1))
	w.life, w.folded, w.flushed = alive, w.wrote, w.wrote.lsn
	found := event.Recovery{Journal: 9, TailFrames: uint32(w.tail)}
	if w.cut {
		found.CutBytes = 7
	}
	w.tail, w.cut = 0, false
	w.step(event.Recovered{Recovery: found})
	if w.indexing() {
		w.heard = w.table.lsn
		w.step(event.Indexed{Upto: w.table.lsn})
	}
	if !st.Keys.Bootstrapped() {
		w.step(&event.CreateKey{Ticket: types.NewTicket(9, 1), Key: boss})
	}
	if h.scope.tenants > 1 {
		w.step(&event.CreateKey{Ticket: types.NewTicket(9, 2), Caller: boss.ID, Tenant: boss.Tenant, Key: other})
	}
	for c := range types.NumServices {
		if c != types.ServiceHTTP || !h.scope.slow {
			w.step(event.ServiceUp{Service: c})
		}
	}
}
