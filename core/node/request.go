package node

import (
	"errors"

	"macronode/core/event"
	"macronode/core/idempotency"
	"macronode/core/record"
	"macronode/core/types"
)

// request is one operation on money, or a batch of them: refused, replayed, or decided
// and recorded.
func (n *Node) request(now types.Now, at types.Time, in *event.Request, out *event.Effects) {
	reply := event.Reply{Ticket: in.Ticket}
	reply.Problem = n.precheck(at, in)
	if reply.Problem == event.None {
		n.resolveIdempotency(now, at, in, &reply, out)
	}
	n.reply(now, in.Tenant, reply, out)
}

// precheck says why in is not looked at. The caller is held to what its key covers before
// the idempotency key is looked up: replays are an answer too.
func (n *Node) precheck(at types.Time, in *event.Request) event.Problem {
	switch {
	case in.ValidateFields() != nil:
		return event.BadRequest
	case !n.recovered, n.drain.Refusing():
		return event.Unavailable
	case n.held.Full():
		return event.Busy
	case n.atTenantLimit(in.Tenant): // also those who may not: what is told them waits, too
		return event.Busy
	case !n.state.Keys.Authorizes(at, in):
		return event.Forbidden
	}
	return event.None
}

// resolveIdempotency finds what became of the key before, or decides now. All that the outcome
// will need is there before it is decided: a place for the reply, for the key and its
// refs, for the frame.
func (n *Node) resolveIdempotency(now types.Now, at types.Time, in *event.Request, reply *event.Reply, out *event.Effects) {
	id, found, err := n.state.Idempotency.Resolve(idempotency.Key{Tenant: in.Tenant, Name: in.Key.ID}, in.Hash, in.Prior, at)
	rows, bytes := in.Cost()
	switch place := id.Position(); {
	case errors.Is(err, idempotency.ErrConflict):
		reply.Problem = event.IdempotencyConflict
	case found && place.LSN > n.applied && int(n.replayWaiters) >= n.config.MaxReplayWaiters:
		reply.Problem = event.InProgress
	case found:
		reply.Position, reply.Replayed = place, true
	case !n.state.Idempotency.IndexReadIsFresh(in.IndexedTo, at, rows > 1):
		reply.Problem = event.StaleIndexRead
	case !n.readiness.Verdict().Writes:
		reply.Problem = event.Unavailable
	default:
		reply.Problem = n.checkRoom(in.Tenant, rows, bytes+types.MaxExpiriesPerStep*expiryRecordBytes)
		if reply.Problem == event.None {
			n.decide(now, at, in, reply, out)
		}
	}
}

// findOutcome says what became of a key. What it tells of may still wait for the disk.
func (n *Node) findOutcome(now types.Now, at types.Time, in *event.FindOutcome, out *event.Effects) {
	reply := event.Reply{Ticket: in.Ticket}
	seen, found := n.state.Idempotency.Find(idempotency.Key{Tenant: in.Tenant, Name: in.Key.ID}, in.Prior, at)
	switch {
	case !n.recovered, n.drain.Refusing():
		reply.Problem = event.Unavailable
	case n.held.Full():
		reply.Problem = event.Busy
	case n.atTenantLimit(in.Tenant):
		reply.Problem = event.Busy
	case !n.state.Keys.Allows(at, in.Caller, in.Tenant, event.ScopeRead):
		reply.Problem = event.Forbidden
	case found:
		reply.Position = seen.ID.Position()
	case !n.state.Idempotency.IndexReadIsFresh(in.IndexedTo, at, false):
		reply.Problem = event.StaleIndexRead
	default:
		reply.Problem = event.NotFound
	}
	n.reply(now, in.Tenant, reply, out)
}

const expiryRecordBytes = 64 // bytes of a record that ends a hold, at most

// checkRoom says what there is no room for.
func (n *Node) checkRoom(t types.Tenant, rows, bytes int) event.Problem {
	switch err := n.state.Idempotency.Admit(t, rows); {
	case errors.Is(err, idempotency.ErrTenantLimit):
		return event.IdempotencyCapacity
	case err != nil:
		return event.Unavailable // until the index has caught up
	case n.backlog+uint64(bytes) > n.config.MaxUnsyncedBytes:
		return event.Busy
	}
	return event.None
}

// decide ends the holds whose time is over, then asks the ledger, and records its
// outcome where the key shall keep it.
func (n *Node) decide(now types.Now, at types.Time, in *event.Request, reply *event.Reply, out *event.Effects) {
	if !n.expireHolds(now, at, in, out) {
		reply.Problem = event.Busy
		return
	}
	if in.Op == event.Batch {
		n.decideBatch(now, at, in, reply, out)
	} else {
		n.decideSingle(now, at, in, reply, out)
	}
	if upto, any := n.state.Idempotency.Evictable(at, n.indexed, types.MaxForgottenPerRequest); any && n.frameOpen && !n.clock.Untrusted() {
		n.rec = record.Record{Kind: record.KeysForgotten, Upto: upto}
		n.addRecord(out)
	}
}

// expireHolds ends the holds of all who pay by in, of which none that is due may count; false
// when there are more than one step ends.
func (n *Node) expireHolds(now types.Now, at types.Time, in *event.Request, out *event.Effects) bool {
	left := types.MaxExpiriesPerStep
	for _, item := range in.Each {
		for len(item.From.Text) > 0 && n.state.Ledger.HasExpiredHold(at, in.Tenant, item.From.ID) {
			if left == 0 {
				return false
			}
			left--
			n.rec = record.Record{}
			n.state.Ledger.ExpireHoldOf(at, in.Tenant, item.From.ID, &n.rec)
			n.beginFrame(now, at, out)
			n.addRecord(out)
		}
	}
	return true
}

func (n *Node) decideSingle(now types.Now, at types.Time, in *event.Request, reply *event.Reply, out *event.Effects) {
	why := n.decideItem(at, in, &in.Item)
	if !why.Stored() {
		n.setProblem(reply, why)
		return
	}
	n.beginFrame(now, at, out)
	reply.Position = types.Position{LSN: n.state.LSN, Index: n.addRecord(out)}
}

// decideItem fills n.rec with what becomes of one operation.
func (n *Node) decideItem(at types.Time, in *event.Request, item *event.Item) (why event.Problem) {
	n.rec = record.Record{Op: item.Op, Tenant: in.Tenant, Caller: in.Caller, Key: in.Key, Hash: in.Hash,
		From: item.From, To: item.To, Asset: item.Asset, Amount: item.Amount, Nonce: item.Nonce,
		ExpiresAt: item.ExpiresAt, Hold: item.Hold, Ref: item.Ref, Memo: item.Memo}
	used := false
	if len(item.Ref.Text) > 0 {
		n.rec.PriorRef, used = n.state.Idempotency.FindRef(idempotency.Key{Tenant: in.Tenant, Name: item.Ref.ID, Ref: true}, item.PriorRef)
	}
	if used {
		why, n.rec.Nonce = event.RefUsed, 0
	} else {
		why = n.state.Ledger.Decide(at, &n.rec)
	}
	if why != event.None {
		n.rec.Kind, n.rec.Problem, n.rec.Ref = record.Rejected, why, types.Name{}
	}
	return why
}

func (n *Node) setProblem(reply *event.Reply, why event.Problem) {
	reply.Problem, reply.Nonce = why, 0
	if why == event.NonceAhead {
		reply.Nonce = n.rec.Nonce
	}
}

// decideBatch decides its items in order, each in sight of those before it. One of all or
// nothing is taken back when an item is refused, and keeps that as its outcome.
func (n *Node) decideBatch(now types.Now, at types.Time, in *event.Request, reply *event.Reply, out *event.Effects) {
	head := record.Record{Kind: record.Batched, Op: event.Batch, Tenant: in.Tenant, Caller: in.Caller, Key: in.Key,
		Hash: in.Hash, Items: uint16(len(in.Items)), Atomic: in.Atomic}
	d := n.savepoint(out)
	n.beginFrame(now, at, out)
	n.rec = head
	reply.Position = types.Position{LSN: n.state.LSN, Index: n.addRecord(out)}
	for i := range in.Items {
		why := n.decideItem(at, in, &in.Items[i])
		if why == event.None || !in.Atomic {
			n.addRecord(out)
			continue
		}
		if why == event.RefUsed && n.rec.PriorRef.Position().LSN == n.state.LSN {
			why = event.BadRequest // used by an item before it, of which nothing stays
		}
		n.undo(d, out)
		if !why.Stored() {
			reply.Position, reply.Item = types.Position{}, uint16(i+1)
			n.setProblem(reply, why)
			return
		}
		head.Problem, head.Nonce, head.PriorRef, head.Items = why, n.rec.Nonce, n.rec.PriorRef, uint16(i)
		n.beginFrame(now, at, out)
		n.rec = head
		reply.Position = types.Position{LSN: n.state.LSN, Index: n.addRecord(out)}
		return
	}
	n.state.Commit()
}
