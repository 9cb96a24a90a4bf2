package node

import (
	"errors"

	"macronode/core/event"
	"macronode/core/idem"
	"macronode/core/record"
	"macronode/core/words"
)

// request is one operation on money, or a batch of them: refused, replayed, or decided
// and recorded.
func (n *Node) request(now words.Now, at words.Time, in *event.Request, out *event.Effects) {
	reply := event.Reply{Ticket: in.Ticket}
	reply.Problem = n.unheard(at, in)
	if reply.Problem == event.None {
		n.look(now, at, in, &reply, out)
	}
	n.reply(now, in.Tenant, reply, out)
}

// unheard says why in is not looked at. The caller is held to what its key covers before
// the idempotency key is looked up: replays are an answer too.
func (n *Node) unheard(at words.Time, in *event.Request) event.Problem {
	switch {
	case in.Sane() != nil:
		return event.BadRequest
	case !n.booted, n.drain.Closed():
		return event.Unavailable
	case n.held.Full():
		return event.Busy
	case n.crowded(in.Tenant): // also those who may not: what is told them waits, too
		return event.Busy
	case !n.state.Keys.Permits(at, in):
		return event.Forbidden
	}
	return event.None
}

// look finds what became of the key before, or decides now. All that the outcome
// will need is there before it is decided: a place for the reply, for the key and its
// refs, for the frame.
func (n *Node) look(now words.Now, at words.Time, in *event.Request, reply *event.Reply, out *event.Effects) {
	id, found, err := n.state.Idem.Look(idem.Key{Tenant: in.Tenant, Name: in.Key.ID}, in.Asked, in.Seen, at)
	rows, bytes := in.Takes()
	switch place := id.Place(); {
	case errors.Is(err, idem.ErrConflict):
		reply.Problem = event.IdempotencyConflict
	case found && place.LSN > n.folded && int(n.waiters) >= n.config.Waiters:
		reply.Problem = event.InProgress
	case found:
		reply.Place, reply.Replayed = place, true
	case !n.state.Idem.Fresh(in.Upto, at, rows > 1):
		reply.Problem = event.LookAgain
	case !n.ready.Verdict().Writes:
		reply.Problem = event.Unavailable
	default:
		reply.Problem = n.room(in.Tenant, rows, bytes+words.MaxLapse*lapsed)
		if reply.Problem == event.None {
			n.decide(now, at, in, reply, out)
		}
	}
}

// find says what became of a key. What it tells of may still wait for the disk.
func (n *Node) find(now words.Now, at words.Time, in *event.Find, out *event.Effects) {
	reply := event.Reply{Ticket: in.Ticket}
	seen, found := n.state.Idem.Find(idem.Key{Tenant: in.Tenant, Name: in.Key.ID}, in.Seen, at)
	switch {
	case !n.booted, n.drain.Closed():
		reply.Problem = event.Unavailable
	case n.held.Full():
		reply.Problem = event.Busy
	case n.crowded(in.Tenant):
		reply.Problem = event.Busy
	case !n.state.Keys.Allows(at, in.Caller, in.Tenant, event.MayRead):
		reply.Problem = event.Forbidden
	case found:
		reply.Place = seen.ID.Place()
	case !n.state.Idem.Fresh(in.Upto, at, false):
		reply.Problem = event.LookAgain
	default:
		reply.Problem = event.NotFound
	}
	n.reply(now, in.Tenant, reply, out)
}

const lapsed = 64 // bytes of a record that ends a hold, at most

// room says what there is no room for.
func (n *Node) room(t words.Tenant, rows, bytes int) event.Problem {
	switch err := n.state.Idem.Admit(t, rows); {
	case errors.Is(err, idem.ErrShare):
		return event.IdempotencyFull
	case err != nil:
		return event.Unavailable // until the index has caught up
	case n.backlog+uint64(bytes) > n.config.Backlog:
		return event.Busy
	}
	return event.None
}

// decide ends the holds whose time is over, then asks the ledger, and records its
// outcome where the key shall keep it.
func (n *Node) decide(now words.Now, at words.Time, in *event.Request, reply *event.Reply, out *event.Effects) {
	if !n.lapse(now, at, in, out) {
		reply.Problem = event.Busy
		return
	}
	if in.Op == event.Batch {
		n.batch(now, at, in, reply, out)
	} else {
		n.single(now, at, in, reply, out)
	}
	if upto, any := n.state.Idem.Spare(at, n.indexed, words.MaxExpireEach); any && n.begun && !n.clock.Doubted() {
		n.rec = record.Record{Kind: record.Forgot, Upto: upto}
		n.record(out)
	}
}

// lapse ends the holds of all who pay by in, of which none that is due may count; false
// when there are more than one step ends.
func (n *Node) lapse(now words.Now, at words.Time, in *event.Request, out *event.Effects) bool {
	left := words.MaxLapse
	for _, item := range in.Each {
		for len(item.From.Text) > 0 && n.state.Ledger.Due(at, in.Tenant, item.From.ID) {
			if left == 0 {
				return false
			}
			left--
			n.rec = record.Record{}
			n.state.Ledger.Lapse(at, in.Tenant, item.From.ID, &n.rec)
			n.begin(now, at, out)
			n.record(out)
		}
	}
	return true
}

func (n *Node) single(now words.Now, at words.Time, in *event.Request, reply *event.Reply, out *event.Effects) {
	why := n.judge(at, in, &in.Item)
	if !why.Stored() {
		n.refusal(reply, why)
		return
	}
	n.begin(now, at, out)
	reply.Place = words.Place{LSN: n.state.LSN, Index: n.record(out)}
}

// judge fills n.rec with what becomes of one operation.
func (n *Node) judge(at words.Time, in *event.Request, item *event.Item) (why event.Problem) {
	n.rec = record.Record{Op: item.Op, Tenant: in.Tenant, Caller: in.Caller, Key: in.Key, Asked: in.Asked,
		From: item.From, To: item.To, Asset: item.Asset, Amount: item.Amount, Nonce: item.Nonce,
		Until: item.Until, Hold: item.Hold, Ref: item.Ref, Memo: item.Memo}
	used := false
	if len(item.Ref.Text) > 0 {
		n.rec.Used, used = n.state.Idem.Used(idem.Key{Tenant: in.Tenant, Name: item.Ref.ID, Ref: true}, item.Used)
	}
	if used {
		why, n.rec.Nonce = event.RefUsed, 0
	} else {
		why = n.state.Ledger.Decide(at, &n.rec)
	}
	if why != event.None {
		n.rec.Kind, n.rec.Problem, n.rec.Ref = record.Refused, why, words.Name{}
	}
	return why
}

func (n *Node) refusal(reply *event.Reply, why event.Problem) {
	reply.Problem, reply.Nonce = why, 0
	if why == event.NonceAhead {
		reply.Nonce = n.rec.Nonce
	}
}

// batch decides its items in order, each in sight of those before it. One of all or
// nothing is taken back when an item is refused, and keeps that as its outcome.
func (n *Node) batch(now words.Now, at words.Time, in *event.Request, reply *event.Reply, out *event.Effects) {
	head := record.Record{Kind: record.Batched, Op: event.Batch, Tenant: in.Tenant, Caller: in.Caller, Key: in.Key,
		Asked: in.Asked, Items: uint16(len(in.Items)), Atomic: in.Atomic}
	d := n.draft(out)
	n.begin(now, at, out)
	n.rec = head
	reply.Place = words.Place{LSN: n.state.LSN, Index: n.record(out)}
	for i := range in.Items {
		why := n.judge(at, in, &in.Items[i])
		if why == event.None || !in.Atomic {
			n.record(out)
			continue
		}
		if why == event.RefUsed && n.rec.Used.Place().LSN == n.state.LSN {
			why = event.BadRequest // used by an item before it, of which nothing stays
		}
		n.undo(d, out)
		if !why.Stored() {
			reply.Place, reply.Item = words.Place{}, uint16(i+1)
			n.refusal(reply, why)
			return
		}
		head.Problem, head.Nonce, head.Used, head.Items = why, n.rec.Nonce, n.rec.Used, uint16(i)
		n.begin(now, at, out)
		n.rec = head
		reply.Place = words.Place{LSN: n.state.LSN, Index: n.record(out)}
		return
	}
	n.state.Keep()
}
