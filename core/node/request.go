package node

import (
	"errors"

	"macronode/core/event"
	"macronode/core/idem"
	"macronode/core/record"
	"macronode/core/words"
)

// request is one operation on money: refused, replayed, or decided and recorded.
func (n *Node) request(now words.Now, at words.Time, in *event.Request, out *event.Effects) {
	reply := event.Reply{Ticket: in.Ticket}
	reply.Problem = n.admit(in)
	if reply.Problem == event.None {
		n.look(now, at, in, &reply, out)
	}
	if reply.Problem == event.Unavailable && n.drain.Closed() {
		n.report.Refused++
	}
	n.reply(now, reply, out)
}

// admit says why in is not looked at. The caller is held to its scopes before its
// key is looked up: replays are an answer too.
func (n *Node) admit(in *event.Request) event.Problem {
	switch {
	case in.Sane() != nil:
		return event.BadRequest
	case !n.booted, n.drain.Closed():
		return event.Unavailable
	case n.held.Full():
		return event.Busy
	case !n.state.Keys.Allows(in.Caller, in.Tenant, in.Op.Scope()):
		return event.Forbidden
	}
	return event.None
}

// look finds what became of the key before, or decides now. All that the outcome
// will need is there before it is decided: a place for the reply, for the key, for
// the frame.
func (n *Node) look(now words.Now, at words.Time, in *event.Request, reply *event.Reply, out *event.Effects) {
	place, found, err := n.state.Idem.Look(idem.Key{Tenant: in.Tenant, Name: in.Key.ID}, in.Asked)
	switch {
	case errors.Is(err, idem.ErrConflict):
		reply.Problem = event.IdempotencyConflict
	case found && place.LSN > n.folded && int(n.waiters) >= n.config.Waiters:
		reply.Problem = event.InProgress
	case found:
		reply.Place, reply.Replayed = place, true
	case !n.ready.Verdict().Writes:
		reply.Problem = event.Unavailable
	case n.state.Idem.Admit(in.Tenant) != nil:
		reply.Problem = event.IdempotencyFull
	case n.backlog+2*words.MaxRecord > n.config.Backlog:
		reply.Problem = event.Busy
	default:
		n.decide(now, at, in, reply, out)
	}
}

// decide asks the ledger, and records its outcome where the key shall keep it.
func (n *Node) decide(now words.Now, at words.Time, in *event.Request, reply *event.Reply, out *event.Effects) {
	n.rec = record.Record{Kind: record.Moved, Op: in.Op, Tenant: in.Tenant, Caller: in.Caller, Key: in.Key, Asked: in.Asked,
		From: in.From, To: in.To, Asset: in.Asset, Amount: in.Amount, Nonce: in.Nonce, Memo: in.Memo}
	why := n.state.Ledger.Decide(at, &n.rec)
	if !why.Stored() {
		reply.Problem, reply.Nonce = why, 0
		if why == event.NonceAhead {
			reply.Nonce = n.rec.Nonce
		}
		return
	}
	if why != event.None {
		n.rec.Kind, n.rec.Problem = record.Refused, why
	}
	n.open(now, at, out)
	reply.Place = words.Place{LSN: n.state.LSN, Index: n.record(out)}
	if upto, any := n.state.Idem.Expired(at, words.MaxExpireEach); any && !n.clock.Doubted() {
		n.rec = record.Record{Kind: record.Forgot, Upto: upto}
		n.record(out)
	}
}
