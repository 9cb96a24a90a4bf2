package main

import (
	"time"

	"macronode/adapters/config"
	"macronode/adapters/index"
	"macronode/adapters/loop"
	"macronode/core/event"
	"macronode/core/gateway/policycheck"
	"macronode/core/idempotency"
	"macronode/core/lifecycle/drain"
	"macronode/core/node"
	"macronode/core/plane"
	"macronode/core/state"
	"macronode/core/storage"
	"macronode/core/types"
	"macronode/core/wallet/ledger"
)

// stateLimits is the room that the configuration gives to durable state.
func stateLimits(c *config.Config) state.Limits {
	l, i := &c.Wallet.Limits, &c.Wallet.Idempotency
	return state.Limits{
		Ledger: ledger.Limits{
			Accounts: l.Accounts, Holdings: l.Holdings, Assets: l.Assets, Tenants: l.Tenants,
			Holds: l.Holds, TenantAccounts: l.TenantAccounts, TenantHoldings: l.TenantHoldings, TenantAssets: l.TenantAssets,
			TenantHolds: l.TenantHolds,
			MaxAmount:   l.Amount, MaxDailyDebit: l.Day, MaxDailyIssue: l.IssueDay,
		},
		Idempotency: idempotency.Limits{Keys: i.Keys, PerTenant: i.Share, Tenants: l.Tenants, TTL: i.TTL,
			MinRetention: 2*c.HTTP.RequestDeadline + c.Node.Patience}, // longer than any request is on its way
		Keys:   c.APIKeys,
		Planes: []plane.Spec{storage.Spec(storageLimits(c))},
	}
}

// keysPerTail is the part of the window of idempotency keys, one in so many, that the index
// takes into memory before it writes them: with one tail that grows and one that is being
// written, at most half of the window waits for the index.
const keysPerTail = 4

// indexLimits is the room that the configuration gives to the views.
func indexLimits(c *config.Config) index.Limits {
	return index.Limits{Frames: c.Index.Frames, Cache: int64(c.Index.Cache), Waiters: waiters(c),
		Keys: max(1, c.Wallet.Idempotency.Keys/keysPerTail)}
}

// nodeConfig is what the configuration says to the node, but for its gate: that may change.
func nodeConfig(c *config.Config) node.Config {
	return node.Config{
		State: stateLimits(c), MaxHeldReplies: door(c).All(), MaxReplayWaiters: max(1, c.Permits.Money/4), MaxHeldPerTenant: max(1, c.Permits.Money*3/4),
		MaxUnsyncedBytes: uint64(c.Journal.Backlog), MinFreeBytes: uint64(c.Journal.Reserve),
		CommitTimeout: c.Node.Patience, StallThreshold: c.Journal.Stall, SyncTimeout: c.Journal.Fail, HeartbeatInterval: c.Journal.Vouch,
		SweepInterval: 200 * time.Millisecond, StartTimeout: c.Node.StartDeadline,
		Drain:     drain.Times{LameDuck: c.Node.LameDuck, Drain: c.Node.Drain, Abort: c.Node.Abort},
		Admission: admitted(c), QuotaLimits: subjects(c), MaxUpstreamCalls: calls(c), AwaitedUpstreams: awaited(c),
	}
}

// usable says why a node is not to be started with this gate.
func usable(c *config.Config) error {
	gate := firstGate(c)
	return policycheck.Gate(nodeConfig(c).WithPolicy(&gate))
}

// firstGate is the gate of a node that is started with c.
func firstGate(c *config.Config) event.Policy {
	is, err := numbering{}.renumber(c)
	types.Assert(err == nil, "the configuration takes more than there are numbers for")
	return gateOf(c, is, &edition{})
}

// door is how many requests may be with the node: as many as have a permit for it, and an
// eighth more of the node's own.
func door(c *config.Config) loop.Door {
	return loop.Door{types.ClassInternal: max(1, c.Permits.Money/8), types.ClassAuthed: c.Permits.Money}
}

// adminConns is how many connections the admin listener holds: operators are few.
func adminConns(c *config.Config) int { return min(c.Listen.MaxConns, 256) }

// minPeerConns is the least share that a peer has of the connections of a listener, if the
// configuration names none.
const minPeerConns = 16

// peerConns returns how many connections one peer may have of a listener that has so many.
func peerConns(c *config.Config, conns int) int {
	if c.Listen.MaxPeerConns > 0 {
		return min(c.Listen.MaxPeerConns, conns)
	}
	return min(max(conns/4, minPeerConns), conns)
}
