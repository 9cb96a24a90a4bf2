package node

import (
	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/words"
)

// enrol makes a key known, once.
func (n *Node) enrol(now words.Now, at words.Time, in *event.Enrol, out *event.Effects) {
	reply := event.Reply{Ticket: in.Ticket}
	_, known := n.state.Keys.Find(in.Key.ID)
	switch {
	case n.drain.Closed():
		reply.Problem = event.Unavailable
	case n.held.Full():
		reply.Problem = event.Busy
	case in.Caller != 0 && !(n.owns(at, in.Caller, in.Tenant, in.Key.Tenant) && n.state.Keys.Gives(at, in.Caller, in.Tenant, &in.Key)):
		reply.Problem = event.Forbidden
	case known:
	case !n.booted || !n.ready.Writes():
		reply.Problem = event.Unavailable
	case in.Key.Check() != nil, in.Key.Boot != (in.Caller == 0):
		reply.Problem = event.BadRequest
	case n.state.Keys.Admit() != nil, !in.Key.Boot && !n.state.Keys.Shares(in.Key.Tenant), in.Key.Boot && n.state.Keys.Bootstrapped() && !in.Instead:
		reply.Problem = event.TooMany
	default:
		n.begin(now, at, out)
		if old, any := n.state.Keys.First(); in.Instead && any {
			n.rec = record.Record{Kind: record.Revoked, Tenant: old.Tenant, Grant: &event.Key{ID: old.ID}}
			n.record(out)
		}
		n.rec = record.Record{Kind: record.Granted, Caller: in.Caller, Grant: &in.Key}
		if in.Key.Boot {
			n.rec = record.Record{Kind: record.KeyMade, Grant: &in.Key}
		}
		n.record(out)
		if in.Key.Boot {
			n.keyAt = n.state.LSN
		}
	}
	n.reply(now, in.Tenant, reply, out)
}

// revoke ends a key, once.
func (n *Node) revoke(now words.Now, at words.Time, in *event.Revoke, out *event.Effects) {
	reply := event.Reply{Ticket: in.Ticket}
	k, known := n.state.Keys.Find(in.Key)
	switch {
	case n.drain.Closed():
		reply.Problem = event.Unavailable
	case n.held.Full():
		reply.Problem = event.Busy
	case !n.state.Keys.Gives(at, in.Caller, in.Tenant, &event.Key{}):
		reply.Problem = event.Forbidden
	case !known, !n.owns(at, in.Caller, in.Tenant, k.Tenant):
		reply.Problem = event.NotFound
	case k.Revoked:
	case !n.booted || !n.ready.Writes():
		reply.Problem = event.Unavailable
	default:
		n.rec = record.Record{Kind: record.Revoked, Caller: in.Caller, Tenant: k.Tenant, Grant: &event.Key{ID: in.Key}}
		n.begin(now, at, out)
		n.record(out)
	}
	n.reply(now, in.Tenant, reply, out)
}

// owns reports that a caller may administer a tenant's keys: its own, and from the
// default tenant everybody's.
func (n *Node) owns(at words.Time, caller words.KeyID, of, tenant words.Tenant) bool {
	return n.state.Keys.Allows(at, caller, of, event.MayAdmin) && (of == tenant || of == words.DefaultTenant)
}
