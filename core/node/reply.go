package node

import (
	"macronode/core/event"
	"macronode/core/types"
)

// heldReply is a reply that is held.
type heldReply struct {
	reply    event.Reply
	deadline types.Instant
	tenant   types.Tenant // 0: the node itself
	canceled bool         // nobody waits for it any more
}

// nothing is the value of a row that is all key.
type nothing struct{}

// HashInto is h.
func (nothing) HashInto(h types.Hash64) types.Hash64 { return h }

// heldCount is how many of a tenant's replies are held.
type heldCount uint32

// HashInto is h after all of c.
func (c heldCount) HashInto(h types.Hash64) types.Hash64 { return h.Mix(uint64(c)) }

// atTenantLimit reports that a tenant has as many replies waiting as it may: the rest is for
// the others.
func (n *Node) atTenantLimit(t types.Tenant) bool {
	at, known := n.heldByTenant.Find(t)
	if !known {
		return n.heldByTenant.Room() == 0
	}
	_, waits := n.heldByTenant.Row(at)
	return int(waits) >= n.config.MaxHeldPerTenant
}

// countHeld counts a reply that comes to be held, or leaves.
func (n *Node) countHeld(t types.Tenant, more int) {
	if t == 0 {
		return
	}
	waits, _ := n.heldByTenant.Get(t)
	n.heldByTenant.Put(t, heldCount(int(waits)+more))
}

// HashInto is h after all of w.
func (w heldReply) HashInto(h types.Hash64) types.Hash64 {
	return w.tenant.HashInto(w.reply.HashInto(h)).Mix(uint64(w.deadline)).MixBool(w.canceled)
}

// reply lets a reply go, or holds it until all that it may tell of is folded. Some
// tell of nothing; were they to wait, a failed journal would never answer. A replay
// of what is folded tells of that alone.
func (n *Node) reply(now types.Now, of types.Tenant, r event.Reply, out *event.Effects) {
	switch {
	case r.Problem.NeedsNoDurability():
	case r.Position.LSN > 0 && r.Position.LSN <= n.applied:
		r.After = r.Position.LSN
	default:
		r.After = n.state.LSN
	}
	if r.After <= n.applied {
		n.sendReply(r, out)
		return
	}
	if n.readiness.Has(types.JournalFailed) && r.After > n.durable {
		n.sendReply(event.Reply{Ticket: r.Ticket, Problem: event.OutcomeUnknown}, out)
		return
	}
	n.holdReply(heldReply{reply: r, tenant: of, deadline: now.Mono.Add(n.config.CommitTimeout)})
}

func (n *Node) sendReply(r event.Reply, out *event.Effects) {
	out.Replies = append(out.Replies, r)
}

// release says what is folded.
func (n *Node) release(out *event.Effects) {
	for n.held.Len() > 0 && n.held.At(0).reply.After <= n.applied {
		if w := n.popReply(); !w.canceled {
			n.sendReply(w.reply, out)
		}
	}
}

// expireReplies tells those who have waited too long that nobody knows yet.
func (n *Node) expireReplies(out *event.Effects, now types.Instant) {
	for n.held.Len() > 0 && n.held.At(0).deadline <= now {
		w := n.popReply()
		why := event.OutcomeUnknown
		if w.reply.Replayed {
			why = event.InProgress
		}
		if !w.canceled {
			n.sendReply(event.Reply{Ticket: w.reply.Ticket, Problem: why}, out)
		}
	}
}

// giveUp tells those whose reply is one to give up that nobody knows.
func (n *Node) giveUp(out *event.Effects, lost func(heldReply) bool) {
	for range n.held.Len() {
		switch w := n.popReply(); {
		case !lost(w):
			n.holdReply(w)
		case !w.canceled:
			n.sendReply(event.Reply{Ticket: w.reply.Ticket, Problem: event.OutcomeUnknown}, out)
		}
	}
}

// cancel discards the reply that is held for a ticket. What was decided stands.
func (n *Node) cancel(t types.Ticket) {
	i, held := n.findHeld(t)
	if !held {
		return
	}
	w := n.held.At(i)
	w.canceled = true
	n.held.Set(i, w)
	n.forgetTicket(w, n.numberOf(i))
}

// findHeld returns where the reply to a ticket stands in held, if it is not cancelled.
func (n *Node) findHeld(t types.Ticket) (i int, ok bool) {
	place, held := n.heldAt.Find(t)
	if !held {
		return 0, false
	}
	return n.held.Find(n.numbers[place])
}

// numberOf returns the number of the i-th reply in held.
func (n *Node) numberOf(i int) uint64 { return n.held.NextNumber() - uint64(n.held.Len()-i) }

// forgetTicket removes the way from a reply's ticket to the reply, which has that number.
func (n *Node) forgetTicket(w heldReply, number uint64) {
	if place, known := n.heldAt.Find(w.reply.Ticket); known && n.numbers[place] == number {
		n.heldAt.Drop(place)
	}
}

func (n *Node) holdReply(w heldReply) {
	if w.reply.Replayed {
		n.replayWaiters++
	}
	n.countHeld(w.tenant, 1)
	if _, known := n.heldAt.Find(w.reply.Ticket); !w.canceled && !known {
		n.numbers[n.heldAt.Put(w.reply.Ticket, nothing{})] = n.held.NextNumber()
	}
	err := n.held.Push(w)
	types.Assert(err == nil, "node: admitted a reply without a place to wait")
}

func (n *Node) popReply() heldReply {
	number := n.numberOf(0)
	w, _ := n.held.Pop()
	n.countHeld(w.tenant, -1)
	n.forgetTicket(w, number)
	if w.reply.Replayed {
		n.replayWaiters--
	}
	return w
}
