package node

import (
	"macronode/core/event"
	"macronode/core/types"
)

// heldReply is a reply that waits until what it reveals is applied.
type heldReply struct {
	reply    event.Reply
	deadline types.Instant
	tenant   types.Tenant // 0: the node itself
	canceled bool         // its client has gone
}

// nothing is the value of a table that is used as a set.
type nothing struct{}

// HashInto returns h.
func (nothing) HashInto(h types.Hash64) types.Hash64 { return h }

// heldCount is the number of held replies of a tenant.
type heldCount uint32

// HashInto mixes c into h.
func (c heldCount) HashInto(h types.Hash64) types.Hash64 { return h.Mix(uint64(c)) }

// atTenantLimit reports whether a tenant has its maximum of held replies.
func (n *Node) atTenantLimit(t types.Tenant) bool {
	at, known := n.heldByTenant.Find(t)
	if !known {
		return n.heldByTenant.Room() == 0
	}
	_, waits := n.heldByTenant.Row(at)
	return int(waits) >= n.config.MaxHeldPerTenant
}

// countHeld adds more to the number of held replies of a tenant.
func (n *Node) countHeld(t types.Tenant, more int) {
	if t == 0 {
		return
	}
	waits, _ := n.heldByTenant.Get(t)
	n.heldByTenant.Put(t, heldCount(int(waits)+more))
}

// HashInto mixes all of w into h.
func (w heldReply) HashInto(h types.Hash64) types.Hash64 {
	return w.tenant.HashInto(w.reply.HashInto(h)).Mix(uint64(w.deadline)).MixBool(w.canceled)
}

// reply sends a reply, or holds it until everything that it may reveal is applied. A problem that
// reveals no state is sent at once; otherwise a failed journal would leave requests unanswered. A
// replay reveals only its own record.
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

// release sends the held replies that reveal only what is applied.
func (n *Node) release(out *event.Effects) {
	for n.held.Len() > 0 && n.held.At(0).reply.After <= n.applied {
		if w := n.popReply(); !w.canceled {
			n.sendReply(w.reply, out)
		}
	}
}

// expireReplies ends the held replies that are past their deadline with outcome_unknown.
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

// giveUp ends the held replies for which lost returns true with outcome_unknown.
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

// cancel discards the held reply of a ticket. The decision stands.
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

// findHeld returns the index in held of the reply to a ticket, unless it is cancelled.
func (n *Node) findHeld(t types.Ticket) (i int, ok bool) {
	place, held := n.heldAt.Find(t)
	if !held {
		return 0, false
	}
	return n.held.Find(n.numbers[place])
}

// numberOf returns the number of the i-th reply in held.
func (n *Node) numberOf(i int) uint64 { return n.held.NextNumber() - uint64(n.held.Len()-i) }

// forgetTicket removes the entry that finds the reply with a number by its ticket.
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
