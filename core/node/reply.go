package node

import (
	"macronode/core/event"
	"macronode/core/words"
)

// waiting is a reply that is held.
type waiting struct {
	reply event.Reply
	until words.Instant
	of    words.Tenant // 0: the node itself
	gone  bool         // nobody waits for it any more
}

// nothing is the value of a row that is all key.
type nothing struct{}

// Mix is h.
func (nothing) Mix(h words.Hash64) words.Hash64 { return h }

// count is how many of a tenant's replies are held.
type count uint32

// Mix is h after all of c.
func (c count) Mix(h words.Hash64) words.Hash64 { return h.Mix(uint64(c)) }

// crowded reports that a tenant has as many replies waiting as it may: the rest is for
// the others.
func (n *Node) crowded(t words.Tenant) bool {
	at, known := n.crowd.Find(t)
	if !known {
		return n.crowd.Room() == 0
	}
	_, waits := n.crowd.Row(at)
	return int(waits) >= n.config.Share
}

// crowds counts a reply that comes to be held, or leaves.
func (n *Node) crowds(t words.Tenant, more int) {
	if t == 0 {
		return
	}
	waits, _ := n.crowd.Get(t)
	n.crowd.Put(t, count(int(waits)+more))
}

// Mix is h after all of w.
func (w waiting) Mix(h words.Hash64) words.Hash64 {
	return w.of.Mix(w.reply.Mix(h)).Mix(uint64(w.until)).MixBit(w.gone)
}

// reply lets a reply go, or holds it until all that it may tell of is folded. Some
// tell of nothing; were they to wait, a failed journal would never answer. A replay
// of what is folded tells of that alone.
func (n *Node) reply(now words.Now, of words.Tenant, r event.Reply, out *event.Effects) {
	switch {
	case r.Problem.Blank():
	case r.Place.LSN > 0 && r.Place.LSN <= n.folded:
		r.After = r.Place.LSN
	default:
		r.After = n.state.LSN
	}
	if r.After <= n.folded {
		n.say(r, out)
		return
	}
	if n.ready.Has(words.JournalFailed) && r.After > n.durable {
		n.say(event.Reply{Ticket: r.Ticket, Problem: event.Unknown}, out)
		return
	}
	n.hold(waiting{reply: r, of: of, until: now.Mono.Plus(n.config.Patience)})
}

func (n *Node) say(r event.Reply, out *event.Effects) {
	out.Replies = append(out.Replies, r)
}

// release says what is folded.
func (n *Node) release(out *event.Effects) {
	for n.held.Len() > 0 && n.held.At(0).reply.After <= n.folded {
		if w := n.pop(); !w.gone {
			n.say(w.reply, out)
		}
	}
}

// expire tells those who have waited too long that nobody knows yet.
func (n *Node) expire(out *event.Effects, now words.Instant) {
	for n.held.Len() > 0 && n.held.At(0).until <= now {
		w := n.pop()
		why := event.Unknown
		if w.reply.Replayed {
			why = event.InProgress
		}
		if !w.gone {
			n.say(event.Reply{Ticket: w.reply.Ticket, Problem: why}, out)
		}
	}
}

// giveUp tells those whose reply is one to give up that nobody knows.
func (n *Node) giveUp(out *event.Effects, lost func(waiting) bool) {
	for range n.held.Len() {
		switch w := n.pop(); {
		case !lost(w):
			n.hold(w)
		case !w.gone:
			n.say(event.Reply{Ticket: w.reply.Ticket, Problem: event.Unknown}, out)
		}
	}
}

// cancel discards the reply that is held for a ticket. What was decided stands.
func (n *Node) cancel(t words.Ticket) {
	i, held := n.findHeld(t)
	if !held {
		return
	}
	w := n.held.At(i)
	w.gone = true
	n.held.Set(i, w)
	n.forgetTicket(w, n.numberOf(i))
}

// findHeld returns where the reply to a ticket stands in held, if it is not cancelled.
func (n *Node) findHeld(t words.Ticket) (i int, ok bool) {
	place, held := n.heldAt.Find(t)
	if !held {
		return 0, false
	}
	return n.held.Find(n.numbers[place])
}

// numberOf returns the number of the i-th reply in held.
func (n *Node) numberOf(i int) uint64 { return n.held.NextNumber() - uint64(n.held.Len()-i) }

// forgetTicket removes the way from a reply's ticket to the reply, which has that number.
func (n *Node) forgetTicket(w waiting, number uint64) {
	if place, known := n.heldAt.Find(w.reply.Ticket); known && n.numbers[place] == number {
		n.heldAt.Drop(place)
	}
}

func (n *Node) hold(w waiting) {
	if w.reply.Replayed {
		n.waiters++
	}
	n.crowds(w.of, 1)
	if _, known := n.heldAt.Find(w.reply.Ticket); !w.gone && !known {
		n.numbers[n.heldAt.Put(w.reply.Ticket, nothing{})] = n.held.NextNumber()
	}
	err := n.held.Push(w)
	words.Assert(err == nil, "node: admitted a reply without a place to wait")
}

func (n *Node) pop() waiting {
	number := n.numberOf(0)
	w, _ := n.held.Pop()
	n.crowds(w.of, -1)
	n.forgetTicket(w, number)
	if w.reply.Replayed {
		n.waiters--
	}
	return w
}
