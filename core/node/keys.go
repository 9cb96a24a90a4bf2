package node

import (
	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/types"
)

// createKey records an API key, once.
func (n *Node) createKey(now types.Now, at types.Time, in *event.CreateKey, out *event.Effects) {
	reply := event.Reply{Ticket: in.Ticket}
	_, known := n.state.Keys.Find(in.Key.ID)
	switch {
	case n.refuses(in.Permit):
		reply.Problem = event.Unavailable
	case n.held.Full():
		reply.Problem = event.Busy
	case in.Caller != 0 && !(n.mayAdminister(at, in.Caller, in.Tenant, in.Key.Tenant) && n.state.Keys.CanGrant(at, in.Caller, in.Tenant, &in.Key)):
		reply.Problem = n.denied(at, in.Caller)
	case known:
	case !n.recovered || !n.readiness.AcceptsWrites():
		reply.Problem = event.Unavailable
	case in.Key.Check() != nil, in.Key.Bootstrap != (in.Caller == 0):
		reply.Problem = event.BadRequest
	case in.Key.Bootstrap && n.state.Keys.Bootstrapped() && !in.ReplaceBootstrap:
		reply.Problem = event.CapacityExceeded
	default:
		if reply.Problem = n.state.Keys.Admit(&in.Key); reply.Problem == event.None {
			n.recordKey(now, at, in, out)
		}
	}
	n.reply(now, in.Tenant, reply, out)
}

// recordKey records a new key and, if it is to replace the bootstrap key, that one's revocation.
func (n *Node) recordKey(now types.Now, at types.Time, in *event.CreateKey, out *event.Effects) {
	n.beginFrame(now, at, out)
	if old, any := n.state.Keys.Bootstrap(); in.ReplaceBootstrap && any {
		n.rec = record.Record{Kind: record.KeyRevoked, Tenant: old.Tenant, APIKey: &event.Key{ID: old.ID}}
		n.addRecord(out)
	}
	n.rec = record.Record{Kind: record.KeyCreated, Caller: in.Caller, APIKey: &in.Key}
	if in.Key.Bootstrap {
		n.rec = record.Record{Kind: record.BootstrapKeyCreated, APIKey: &in.Key}
	}
	n.addRecord(out)
	if in.Key.Bootstrap {
		n.firstKeyAt = n.state.LSN
		n.endRequests(now.Mono, at, out)
	}
}

// revokeKey records the revocation of an API key, once. It does so on a full disk, too: a stolen key is ended at once.
func (n *Node) revokeKey(now types.Now, at types.Time, in *event.RevokeKey, out *event.Effects) {
	reply := event.Reply{Ticket: in.Ticket}
	k, known := n.state.Keys.Find(in.Key)
	switch {
	case n.refuses(in.Permit):
		reply.Problem = event.Unavailable
	case n.held.Full():
		reply.Problem = event.Busy
	case !n.state.Keys.CanGrant(at, in.Caller, in.Tenant, &event.Key{}):
		reply.Problem = n.denied(at, in.Caller)
	case !known, !n.mayAdminister(at, in.Caller, in.Tenant, k.Tenant):
		reply.Problem = event.NotFound
	case k.Revoked:
	case !n.recovered || !n.readiness.AcceptsRevocations():
		reply.Problem = event.Unavailable
	default:
		n.rec = record.Record{Kind: record.KeyRevoked, Caller: in.Caller, Tenant: k.Tenant, APIKey: &event.Key{ID: in.Key}}
		n.beginFrame(now, at, out)
		n.addRecord(out)
		n.endRequests(now.Mono, at, out)
	}
	n.reply(now, in.Tenant, reply, out)
}

// mayAdminister reports whether a caller may administer the keys of a tenant: its own tenant's, and from
// the default tenant those of all tenants.
func (n *Node) mayAdminister(at types.Time, caller types.KeyID, of, tenant types.Tenant) bool {
	return n.state.Keys.Allows(at, caller, of, event.ScopeAdmin) && (of == tenant || of == types.DefaultTenant)
}
