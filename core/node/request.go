package node

import (
	"errors"

	"macronode/core/command"
	"macronode/core/event"
	"macronode/core/idempotency"
	"macronode/core/plane"
	"macronode/core/record"
	"macronode/core/types"
)

// command answers a durable command: rejected, replayed, or decided by its plane and recorded.
func (n *Node) command(now types.Now, at types.Time, c command.Command, out *event.Effects) {
	in := c.Head()
	p := n.state.Plane(c.Plane())
	if paid := n.paid.Over(c, p, n.state.Wallet); paid != nil {
		p = paid
	} else if prepaid := n.prepaid.Over(c, p, n.state.Wallet); prepaid != nil {
		p = prepaid
	}
	n.answer = event.Reply{Ticket: in.Ticket, Problem: n.precheck(at, p, c)}
	if n.answer.Problem == event.None {
		n.resolveIdempotency(now, at, p, c, &n.answer, out)
	}
	n.reply(now, in.Tenant, n.answer, out)
}

// precheck returns why c is rejected before its key is looked up. The scopes of the caller's API key
// are checked here, because a replay is an answer too.
func (n *Node) precheck(at types.Time, p plane.Plane, c command.Command) event.Problem {
	in := c.Head()
	switch {
	case p == nil, c.ValidateFields() != nil:
		return event.BadRequest
	case !n.recovered, n.refuses(in.Permit) && !n.takesWhileDraining(c):
		return event.Unavailable
	case n.held.Full():
		return event.Busy
	case n.atTenantLimit(in.Tenant): // before authorization: a rejection waits for durability too
		return event.Busy
	case !isByNode(c) && !p.Authorized(at, &n.state.Keys, c):
		return n.deniedCommand(at, c)
	}
	return event.None
}

// deniedCommand is denied for a command: RefReserved if its caller may not use a ref of it.
func (n *Node) deniedCommand(at types.Time, c command.Command) event.Problem {
	why := n.denied(at, c.Head().Caller)
	if in, ok := c.(*event.Request); ok && why == event.Forbidden && n.state.Keys.RejectsRef(in) {
		return event.RefReserved
	}
	return why
}

// denied is the problem of a request that the key of its caller does not permit: Unauthorized if the key has ended, as for a request that
// begins later.
func (n *Node) denied(at types.Time, caller types.KeyID) event.Problem {
	if end, ends := n.state.Keys.EndOf(caller); ends && end <= at {
		return event.Unauthorized
	}
	return event.Forbidden
}

// refuses reports whether the drain rejects what a request with a permit gives. What was admitted before the drain may
// take effect until it is aborted: an abort replies to all that wait.
func (n *Node) refuses(permit types.Ticket) bool {
	return n.drain.Refusing() && !(n.drain.Phase() == types.Draining && n.admission.Admitted(permit))
}

// takesWhileDraining reports whether c is a command of the node itself, which a drain accepts and an abort does not.
func (n *Node) takesWhileDraining(c command.Command) bool {
	return isByNode(c) && n.drain.Phase() == types.Draining
}

// isByNode reports whether the node itself gives c, and no API key.
func isByNode(c command.Command) bool {
	own, ok := c.(command.ByNode)
	return ok && own.ByNode() && c.Head().Caller == 0
}

// resolveIdempotency finds the outcome of the key, or decides now. All that the outcome needs is
// reserved before it is decided: a place for the reply, rows for the key and its refs, bytes of the
// journal.
func (n *Node) resolveIdempotency(now types.Now, at types.Time, p plane.Plane, c command.Command, reply *event.Reply, out *event.Effects) {
	in := c.Head()
	cost := p.Cost(c)
	if in.Usage != nil {
		cost.Bytes += in.Usage.Bytes()
	}
	if len(in.Key.Text) == 0 {
		if _, refs := c.(command.WithRefs); refs && !n.state.Idempotency.IndexReadIsFresh(in.IndexedTo, at, true) {
			reply.Problem = event.StaleIndexRead
			return
		}
		n.decideNow(now, at, p, c, cost, reply, out)
		return
	}
	id, found, err := n.state.Idempotency.Resolve(idempotency.Key{Tenant: in.Tenant, Name: in.Key.ID}, in.Hash, in.Prior, at)
	switch place := id.Position(); {
	case errors.Is(err, idempotency.ErrConflict):
		reply.Problem = event.IdempotencyConflict
	case found && place.LSN > n.applied && int(n.replayWaiters) >= n.config.MaxReplayWaiters:
		reply.Problem = event.InProgress
	case found:
		reply.Position, reply.Replayed = place, true
	case !n.state.Idempotency.IndexReadIsFresh(in.IndexedTo, at, cost.Rows > 1):
		reply.Problem = event.StaleIndexRead
	default:
		n.decideNow(now, at, p, c, cost, reply, out)
	}
}

// decideNow decides a command that has no outcome yet, if the node takes writes and has room.
func (n *Node) decideNow(now types.Now, at types.Time, p plane.Plane, c command.Command, cost command.Cost, reply *event.Reply, out *event.Effects) {
	reply.Problem = event.Unavailable
	if n.readiness.Verdict().Writes {
		reply.Problem = n.checkRoom(c.Head().Tenant, cost)
	}
	if reply.Problem == event.None {
		n.decide(now, at, p, c, reply, out)
	}
}

// findOutcome returns the outcome of an idempotency key. The reply waits until that is applied.
func (n *Node) findOutcome(now types.Now, at types.Time, in *event.FindOutcome, out *event.Effects) {
	reply := event.Reply{Ticket: in.Ticket}
	seen, found := n.state.Idempotency.Find(idempotency.Key{Tenant: in.Tenant, Name: in.Key.ID}, in.Prior, at)
	switch {
	case !n.recovered, n.refuses(in.Permit):
		reply.Problem = event.Unavailable
	case n.held.Full():
		reply.Problem = event.Busy
	case n.atTenantLimit(in.Tenant):
		reply.Problem = event.Busy
	case !n.state.Keys.Allows(at, in.Caller, in.Tenant, event.ScopeRead):
		reply.Problem = n.denied(at, in.Caller)
	case found:
		reply.Position = seen.ID.Position()
	case !n.state.Idempotency.IndexReadIsFresh(in.IndexedTo, at, false):
		reply.Problem = event.StaleIndexRead
	default: // it need not wait: if the newest state has no such key, no durable one has it
		reply.Problem = event.NotFound
		n.sendReply(reply, out)
		return
	}
	n.reply(now, in.Tenant, reply, out)
}

// checkRoom returns why a command of that cost cannot be recorded now.
func (n *Node) checkRoom(t types.Tenant, cost command.Cost) event.Problem {
	var err error
	switch {
	case cost.Rows == 0:
	case cost.LowPriority:
		err = n.state.Idempotency.AdmitLowPriority(t, cost.Rows)
	default:
		err = n.state.Idempotency.Admit(t, cost.Rows)
	}
	switch {
	case errors.Is(err, idempotency.ErrTooMany):
		return event.TooManyEvents
	case errors.Is(err, idempotency.ErrReserved):
		return event.EventsDeferred
	case errors.Is(err, idempotency.ErrTenantLimit):
		return event.IdempotencyCapacity
	case err != nil:
		return event.Unavailable // until the index has caught up
	case n.backlog+uint64(cost.Bytes) > n.config.MaxUnsyncedBytes:
		return event.Busy
	}
	return event.None
}

// hasEffect reports whether the step has recorded an outcome of c that is no rejection. The last record of the step tells: of a batch
// that takes effect, it is that of an item, which may be rejected.
func (n *Node) hasEffect(c command.Command, reply *event.Reply) bool {
	if reply.Problem != event.None || !n.frameOpen || reply.Position.LSN != n.state.LSN {
		return false
	}
	in, isWallet := c.(*event.Request)
	return !isWallet || n.rec.Problem == event.None || in.Op == event.Batch && n.rec.Kind != record.Batched
}

// decide lets the plane decide and record, then counts the request and evicts a few old keys in the same frame.
func (n *Node) decide(now types.Now, at types.Time, p plane.Plane, c command.Command, reply *event.Reply, out *event.Effects) {
	n.frame = frame{node: n, now: now, at: at, out: out}
	p.Decide(at, c, &n.frame, reply)
	if n.hasEffect(c, reply) {
		reply.Counted = n.prepaid.CountRequest(at, n.state.Plane(types.PlaneAccounting), c.Head(), &n.frame)
	}
	n.frame = frame{}
	if upto, any := n.state.Idempotency.Evictable(at, n.indexed, types.MaxForgottenPerRequest); any && n.frameOpen && !n.clock.Untrusted() {
		n.rec = record.Record{Kind: record.KeysForgotten, Upto: upto}
		n.addRecord(out)
	}
}
