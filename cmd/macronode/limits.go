package main

import (
	"time"
	"unsafe"

	"macronode/adapters/config"
	"macronode/adapters/loop"
	"macronode/core/drain"
	"macronode/core/event"
	"macronode/core/idem"
	"macronode/core/ledger"
	"macronode/core/node"
	"macronode/core/state"
	"macronode/core/words"
)

// stateLimits is the room that the configuration gives to durable state.
func stateLimits(c *config.Config) state.Limits {
	l, i := &c.Wallet.Limits, &c.Wallet.Idempotency
	return state.Limits{
		Ledger: ledger.Limits{
			Accounts: l.Accounts, Holdings: l.Holdings, Assets: l.Assets, Tenants: l.Tenants,
			TenantAccounts: l.TenantAccounts, TenantHoldings: l.TenantHoldings, TenantAssets: l.TenantAssets,
			Amount: l.Amount, Day: l.Day, IssueDay: l.IssueDay,
		},
		Idem: idem.Limits{Keys: i.Keys, Share: i.Share, Tenants: l.Tenants, TTL: i.TTL},
		Keys: c.APIKeys,
	}
}

// memory is what the configuration bounds, in bytes. The collector is told the sum, so
// that what it has not yet given back counts as well.
type memory struct {
	State       int64 // taken at the start, by the node and by its follower each
	Rings       int64 // requests that are in, batches that grow, are flushed and are folded, and the frames at hand
	Connections int64 // on both listeners
	Spare       int64 // the program, its goroutines, garbage
}

// Total is all of it.
func (m memory) Total() int64 { return 2*m.State + m.Rings + m.Connections + m.Spare }

const (
	texts      = 2*words.MaxAccount + words.MaxAsset + words.MaxKey + words.MaxMemo // of one request, at most
	connection = 16 << 10                                                           // buffers and a goroutine's stack
	spare      = 96 << 20
	largeBody  = 3 * words.MaxBody // as it came, inflated, and while either grows
)

func memoryBound(c *config.Config) memory {
	request := int64(unsafe.Sizeof(event.Request{})) + texts
	return memory{
		State:       state.Bytes(stateLimits(c)),
		Rings:       int64(c.Node.InFlight)*request + 3*int64(c.Journal.Backlog) + recent*words.MaxRecord + largeBodies*largeBody,
		Connections: 2 * int64(c.Listen.MaxConns) * connection,
		Spare:       spare,
	}
}

// nodeConfig is what the configuration says to the node.
func nodeConfig(c *config.Config) node.Config {
	return node.Config{
		State: stateLimits(c), Held: c.Node.InFlight, Waiters: max(1, c.Node.InFlight/4),
		Backlog: uint64(c.Journal.Backlog), Reserve: uint64(c.Journal.Reserve),
		Patience: c.Node.Patience, Stall: c.Journal.Stall, Fail: c.Journal.Fail, Vouch: c.Journal.Vouch,
		Sweep: time.Second, Start: c.Node.StartDeadline,
		Drain: drain.Times{LameDuck: c.Node.LameDuck, Drain: c.Node.Drain, Abort: c.Node.Abort},
	}
}

// door shares the requests that may be in: an eighth for the node itself, an eighth
// for whoever has shown no key.
func door(c *config.Config) loop.Door {
	part := max(1, c.Node.InFlight/8)
	return loop.Door{loop.Internal: part, loop.Authed: max(1, c.Node.InFlight-2*part), loop.Anon: part}
}
