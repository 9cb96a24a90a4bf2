package explore

import (
	"macronode/core/command"
	"macronode/core/event"
	"macronode/core/node"
	"macronode/core/types"
)

// A client makes one request after another, and retries each a number of times until it has the
// outcome.
type client struct {
	at       uint8 // index in its script
	tries    uint8 // attempts left for its request
	state    asking
	use      uint32        // generation of its ticket
	gone     uint32        // the cancelled use, before the node handles it; 0: none
	asked    *page         // the mark of the index at the look-up; nil: none
	saw      types.LSN     // the last frame at the decision
	since    types.Instant // start of the wait
	want     fact          // the position of a stored outcome
	observed verdict       // otherwise the expected answer
	mail     event.Reply   // the reply, before it is read
	wish     *wish         // the current request
}

type asking uint8

const (
	idle    asking = iota
	looks          // has read the mark of the index
	waiting        //
	mailed         // its reply is there
)

func (c *client) mix(h types.Hash64) types.Hash64 {
	h = h.Mix(uint64(c.at) | uint64(c.tries)<<8 | uint64(c.state)<<16 | uint64(c.use)<<32).Mix(uint64(c.gone)).Mix(uint64(c.saw)).Mix(uint64(c.since))
	h = c.want.page.mix(c.asked.mix(h)).Mix(uint64(c.want.index)).Mix(uint64(c.observed.why)).Mix(uint64(c.observed.nonce)).Mix(uint64(c.observed.item))
	if h = c.mail.HashInto(h); c.wish != nil {
		h = h.Mix(uint64(c.wish.key)).Mix(uint64(c.wish.r.Nonce)).Mix(c.wish.r.Amount.Lo)
	}
	return h
}

// next returns a client's next request; nil if there is none, or it must wait.
func (w *World) next(i int) *wish {
	c := &w.clients[i]
	if i >= len(w.h.scripts) || int(c.at) >= len(w.h.scripts[i]) || c.tries == 0 {
		return nil
	}
	one := w.h.scripts[i][c.at]
	if one.hold == 0 {
		return one
	}
	f := w.facts[one.hold-1]
	if f.page == nil || f.page.books.keys[one.hold-1].problem != event.None {
		return nil
	}
	return w.h.of(one, f)
}

// ask is a request that reaches the node. Its outcome is predicted.
func (c *client) ask(w *World, one *wish) {
	c.use++
	if c.tries > 0 {
		c.tries--
	}
	r := one.r
	r.Ticket = types.NewTicket(w.slot(c), c.use)
	if p := c.asked; p != nil {
		if r.IndexedTo = p.lsn; p.books.keys[one.key].page != nil {
			k := p.books.keys[one.key]
			r.Prior = command.PriorOutcome{Hash: k.page.of.r.Hash, ID: k.id(), At: k.page.at}
		}
		if k := p.books.ref(r.Tenant, r.Ref); k != nil && k.page != nil {
			r.PriorRef = k.id()
		}
	}
	c.state, c.wish, c.mail, c.since = waiting, one, event.Reply{}, w.now.Mono
	before, closed := w.last, w.phase() >= types.Draining
	w.turn(&r)
	c.saw = w.last.lsn
	w.expect(c, before)
	w.carry()
	if w.last != before && w.last.outcome >= 0 && closed {
		w.h.fail("X7: the door is closed, and %v is decided", one)
	}
}

func (w *World) slot(c *client) uint32 {
	if c == &w.clients[0] {
		return 0
	}
	return 1
}

// expect predicts the answer to a request; before is the journal at its decision. An expired key
// may be kept longer.
func (w *World) expect(c *client, before *page) {
	k := &before.books.keys[c.wish.key]
	c.want, c.observed = fact{}, verdict{}
	decided := w.last != before && w.last.outcome >= 0
	known := k.page != nil && (w.now.Wall < k.page.at.Add(w.h.scope.ttl) || k.page.lsn > before.gone)
	switch {
	case decided:
		c.want = fact{w.last, uint16(w.last.outcome)}
	case known && k.page.of != c.wish:
		c.observed.why = event.IdempotencyConflict
	case known:
		c.want = fact{k.page, k.index}
	default:
		c.observed = before.books.expects(w.now.Wall, &c.wish.r)
	}
}

// hear handles a client's reply.
func (c *client) hear(w *World) {
	r, one := c.mail, c.wish
	h := w.h
	c.state, c.mail, c.wish, c.saw, c.want, c.observed, c.asked = idle, event.Reply{}, nil, 0, fact{}, verdict{}, nil
	done := true
	switch r.Problem {
	case event.None:
		p := w.last.upto(r.Position.LSN)
		f := &w.facts[one.key]
		if f.page != nil && *f != (fact{p, r.Position.Index}) && p.at < f.page.at.Add(h.scope.ttl) {
			h.fail("X2: key%d got %v, now %v", one.key, f.page.lsn, r.Position)
		}
		*f = fact{p, r.Position.Index}
		h.answered(r, p, w.last.gone)
	case event.IdempotencyConflict:
		h.saw(sawConflict)
	case event.Busy, event.Unavailable, event.OutcomeUnknown, event.InProgress, event.IdempotencyCapacity, event.StaleIndexRead:
		if r.Problem == event.StaleIndexRead {
			h.saw(sawSentBack)
		}
		done = c.tries == 0
	default:
		if h.saw(sawRefusal); r.Problem == event.AccountFrozen {
			h.saw(sawFrozen)
		}
	}
	if done {
		c.at++
		c.tries = h.scope.tries
	}
}

func (h *shared) answered(r event.Reply, p *page, gone types.LSN) {
	k := &p.books.keys[p.of.key]
	switch {
	case r.Replayed && gone >= r.Position.LSN:
		h.saw(sawIndexed)
	case r.Replayed:
		h.saw(sawReplay)
	case k.problem == event.RefUsed:
		h.saw(sawUsed)
	case k.item > 0:
		h.saw(sawTakenBack)
	case k.problem != event.None:
		h.saw(sawRefusal)
	case p.of.r.Tenant != boss.Tenant:
		h.saw(sawOther)
	case p.of.r.Op == event.Batch:
		h.saw(sawBatch)
	case p.of.r.Op == event.Capture:
		h.saw(sawCaptured)
	case p.of.r.Op == event.Release:
		h.saw(sawReleased)
	default:
		h.saw(sawAnswer)
	}
}

// reply handles a reply of the node.
func (w *World) reply(r event.Reply) {
	slot := int(r.Ticket.Slot())
	if slot >= len(w.clients) {
		return // the node's own
	}
	h, c := w.h, &w.clients[slot]
	use := uint32(r.Ticket >> 32)
	if use == c.gone {
		return // it cancelled, and the node has not handled that yet
	}
	if use != c.use || c.state != waiting {
		h.fail("a reply without a request: %+v", r)
		return
	}
	if r.After > w.safe.lsn || r.After > w.folded.lsn {
		h.fail("X1: reply for %v, durable is %v, folded %v", r.After, w.safe.lsn, w.folded.lsn)
	}
	switch {
	case blank(r.Problem):
		if r.Problem == event.InProgress {
			h.saw(sawWait)
		}
		if r.Problem == event.OutcomeUnknown {
			h.saw(sawUnknown)
			if !w.mayGiveUp(c) {
				h.fail("X6: client %d is given up, without a need", slot)
			}
		}
		if r.Problem == event.Unavailable && w.phase() >= types.Draining {
			h.saw(sawTurnedAway)
		}
	case r.Problem != event.None:
		if c.saw > w.folded.lsn {
			h.fail("X1: %v shows %v, folded is %v", r.Problem, c.saw, w.folded.lsn)
		}
		if stays(r.Problem) {
			h.fail("one outcome: %v gets %q, but its key has no outcome", c.wish, r.Problem.Code())
		}
		if got := (verdict{r.Problem, r.Nonce, r.Item}); got != c.observed {
			h.fail("the model: %v gets %+v, want %+v", c.wish, got, c.observed)
		}
	default:
		p := w.folded.upto(r.Position.LSN)
		if p == nil {
			h.fail("X1: reply for %v, folded is %v", r.Position, w.folded.lsn)
			return
		}
		if (fact{p, r.Position.Index}) != c.want {
			h.fail("one outcome: %v gets %v, not its outcome", c.wish, r.Position)
		}
	}
	c.since = 0
	c.state, c.mail = mailed, event.Reply{Problem: r.Problem, Position: r.Position, Replayed: r.Replayed}
}

// mayGiveUp reports whether a client may get an unknown outcome: its deadline has passed, the
// journal has failed, or a drain gave up.
func (w *World) mayGiveUp(c *client) bool {
	var v node.SpecView
	w.node.SpecView(&v)
	d, now := &w.h.config.Drain, w.now.Mono
	aborted := w.began > 0 && (w.left.aborts < w.h.scope.aborts || now >= w.began.Add(d.LameDuck+d.Drain))
	return v.Failed || aborted || now >= c.since.Add(w.h.config.CommitTimeout)
}

// blank problems show nothing that a crash could undo.
func blank(p event.Problem) bool {
	switch p {
	case event.Busy, event.Unavailable, event.OutcomeUnknown, event.InProgress, event.IdempotencyCapacity, event.StaleIndexRead:
		return true
	default:
		return false
	}
}
