package main

import (
	"time"

	"macronode/adapters/config"
	"macronode/adapters/indexer"
	"macronode/adapters/loop"
	"macronode/core/drain"
	"macronode/core/event"
	"macronode/core/idem"
	"macronode/core/ledger"
	"macronode/core/node"
	"macronode/core/rehearse"
	"macronode/core/state"
	"macronode/core/words"
)

// stateLimits is the room that the configuration gives to durable state.
func stateLimits(c *config.Config) state.Limits {
	l, i := &c.Wallet.Limits, &c.Wallet.Idempotency
	return state.Limits{
		Ledger: ledger.Limits{
			Accounts: l.Accounts, Holdings: l.Holdings, Assets: l.Assets, Tenants: l.Tenants,
			Holds: l.Holds, TenantAccounts: l.TenantAccounts, TenantHoldings: l.TenantHoldings, TenantAssets: l.TenantAssets,
			TenantHolds: l.TenantHolds,
			Amount:      l.Amount, Day: l.Day, IssueDay: l.IssueDay,
		},
		Idem: idem.Limits{Keys: i.Keys, Share: i.Share, Tenants: l.Tenants, TTL: i.TTL,
			Trail: 2*c.HTTP.RequestDeadline + c.Node.Patience}, // longer than any request is on its way
		Keys: c.APIKeys,
	}
}

// keysPerTail is the part of the window of idempotency keys, one in so many, that the index
// takes into memory before it writes them: with one tail that grows and one that is being
// written, at most half of the window waits for the index.
const keysPerTail = 4

// indexLimits is the room that the configuration gives to the views.
func indexLimits(c *config.Config) indexer.Limits {
	return indexer.Limits{Frames: c.Index.Frames, Cache: int64(c.Index.Cache), Waiters: waiters(c),
		Keys: max(1, c.Wallet.Idempotency.Keys/keysPerTail)}
}

// nodeConfig is what the configuration says to the node, but for its gate: that may change.
func nodeConfig(c *config.Config) node.Config {
	return node.Config{
		State: stateLimits(c), Held: door(c).All(), Waiters: max(1, c.Permits.Money/4), Share: max(1, c.Permits.Money*3/4),
		Backlog: uint64(c.Journal.Backlog), Reserve: uint64(c.Journal.Reserve),
		Patience: c.Node.Patience, Stall: c.Journal.Stall, Fail: c.Journal.Fail, Vouch: c.Journal.Vouch,
		Sweep: 200 * time.Millisecond, Start: c.Node.StartDeadline,
		Drain: drain.Times{LameDuck: c.Node.LameDuck, Drain: c.Node.Drain, Abort: c.Node.Abort},
		Admit: admitted(c), Subjects: subjects(c), Calls: calls(c), Awaited: awaited(c),
	}
}

// usable says why a node is not to be started with this gate.
func usable(c *config.Config) error {
	gate := firstGate(c)
	return rehearse.Gate(nodeConfig(c).With(&gate))
}

// firstGate is the gate of a node that is started with c.
func firstGate(c *config.Config) event.Gate {
	is, err := numbering{}.renumber(c)
	words.Assert(err == nil, "the configuration takes more than there are numbers for")
	return gateOf(c, is, &edition{})
}

// door is how many requests may be with the node: as many as have a permit for it, and an
// eighth more of the node's own.
func door(c *config.Config) loop.Door {
	return loop.Door{words.Internal: max(1, c.Permits.Money/8), words.Authed: c.Permits.Money}
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
