package settings

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
	"macronode/core/state"
	"macronode/core/types"
	"macronode/core/wallet/ledger"
)

// StateLimits returns the limits of durable state.
func StateLimits(c *config.Config) state.Limits {
	l, i := &c.Wallet.Limits, &c.Wallet.Idempotency
	return state.Limits{
		Ledger: ledgerLimits(c),
		Idempotency: idempotency.Limits{Keys: i.Keys, PerTenant: i.Share, Tenants: l.Tenants, TTL: i.TTL,
			MinRetention: 2*c.HTTP.RequestDeadline + c.Node.Patience}, // longer than any request lasts
		Keys:   c.APIKeys,
		Planes: Planes().Specs(c),
	}
}

// ledgerLimits returns the limits of the ledger.
func ledgerLimits(c *config.Config) ledger.Limits {
	l := &c.Wallet.Limits
	return ledger.Limits{
		Accounts: l.Accounts, Holdings: l.Holdings, Assets: l.Assets, Tenants: l.Tenants,
		Holds: l.Holds, TenantAccounts: l.TenantAccounts, TenantHoldings: l.TenantHoldings, TenantAssets: l.TenantAssets,
		TenantHolds: l.TenantHolds,
		MaxAmount:   l.Amount, MaxDailyDebit: l.Day, MaxDailyIssue: l.IssueDay,
	}
}

// keysPerTail is the part of the window of idempotency keys, one in so many, that the index keeps in memory before
// it writes them. With one memtable that grows and one that is written, at most half of the window waits for the
// index.
const keysPerTail = 4

// indexLimits returns the limits of the index.
func indexLimits(c *config.Config) index.Limits {
	return index.Limits{Frames: c.Index.Frames, Cache: int64(c.Index.Cache), Waiters: maxWaiters(c),
		Keys: max(1, c.Wallet.Idempotency.Keys/keysPerTail)}
}

// nodeConfig returns the configuration of the core without its policy, which a reload can change.
func nodeConfig(c *config.Config) node.Config {
	return node.Config{
		State: StateLimits(c), MaxHeldReplies: workLimits(c).Total(), MaxReplayWaiters: max(1, c.Permits.Wallet/4), MaxHeldPerTenant: max(1, c.Permits.Wallet*3/4),
		MaxUnsyncedBytes: uint64(c.Journal.Backlog), MinFreeBytes: uint64(c.Journal.Reserve),
		Price: price(c), CommitTimeout: c.Node.Patience, StallThreshold: c.Journal.Stall, SyncTimeout: c.Journal.Fail, HeartbeatInterval: c.Journal.HeartbeatInterval,
		SweepInterval: 200 * time.Millisecond, StartTimeout: c.Node.StartDeadline,
		Drain:     drain.Times{LameDuck: c.Node.LameDuck, Drain: c.Node.Drain, Abort: c.Node.Abort},
		Admission: admissionLimits(c), QuotaLimits: quotaLimits(c), MaxUpstreamCalls: upstreamCalls(c), AwaitedUpstreams: requiredUpstreams(c),
	}
}

// CheckPolicy returns an error if a node cannot start with the policy of c.
func CheckPolicy(c *config.Config) error {
	gate := firstPolicy(c)
	return policycheck.Gate(nodeConfig(c).WithPolicy(&gate))
}

// firstPolicy returns the policy of a node that starts with c.
func firstPolicy(c *config.Config) event.Policy {
	is, err := Numbers{}.renumber(c)
	types.Assert(err == nil, "the configuration takes more than there are numbers for")
	return policyOf(c, is, new(Reload))
}

// workLimits returns how many requests may be in the core by class: one for each permit, and an eighth more for
// the node's own.
func workLimits(c *config.Config) loop.ClassLimits {
	return loop.ClassLimits{types.ClassInternal: max(1, c.Permits.Wallet/8), types.ClassAuthed: c.Permits.Wallet}
}

// adminConns returns the limit of connections of the admin listener.
func adminConns(c *config.Config) int { return min(c.Listen.MaxConns, 256) }

// s3Conns returns the limit of connections of the S3 listener.
func s3Conns(c *config.Config) int64 {
	if c.Listen.S3 == "" {
		return 0
	}
	return int64(c.Listen.MaxConns)
}

// minPeerConns is the smallest share of the connections of a listener that one peer gets, if the configuration
// names none.
const minPeerConns = 16

// peerLimit is how many connections of a listener one peer may have; 0: a part of them.
type peerLimit int

// of returns how many of the conns connections of a listener one peer may have.
func (l peerLimit) of(conns int) int {
	if l > 0 {
		return min(int(l), conns)
	}
	return min(max(conns/4, minPeerConns), conns)
}

// RecentFrames is how many durable frames are kept in memory to render responses; older ones are read from the
// segments.
const RecentFrames = 1 << 14

// LargeBodies is how many large bodies are read at the same time; more are rejected with 429.
const LargeBodies = 32

// maxWaiters returns how many reads may wait for a movement: one for each permit, so that none is rejected because
// others wait.
func maxWaiters(c *config.Config) int { return c.Permits.Wallet + c.Permits.Query + c.Permits.Streams }
