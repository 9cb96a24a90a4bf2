package explore

import (
	"fmt"
	"time"

	"macronode/core/event"
	"macronode/core/idempotency"
	"macronode/core/lifecycle/drain"
	"macronode/core/node"
	"macronode/core/state"
	"macronode/core/types"
	"macronode/core/wallet/ledger"
)

// boss is the API key of all clients.
var boss = event.Key{ID: 77, Tenant: types.DefaultTenant, Hash: [32]byte{1}, Scopes: event.AllScopes, Bootstrap: true}

// other is the API key of the second tenant.
var other = event.Key{ID: 78, Tenant: 2, Hash: [32]byte{2}, Scopes: event.AllScopes}

// A wish is a request under a key. A capture or a release refers to the hold that the request of
// another key opened; it is made when that was acknowledged.
type wish struct {
	r    event.Request
	key  int
	hold int // the key, plus 1; 0: no hold
}

func (w *wish) String() string {
	s := fmt.Sprintf("tenant %d, %s:", w.r.Tenant, w.r.Key.Text)
	if w.r.Op == event.Batch {
		s += fmt.Sprintf(" batch, atomic %v", w.r.Atomic)
	}
	for _, i := range w.r.Each {
		s += " " + operation(i)
	}
	return s
}

func operation(i *event.Item) string {
	s := i.Op.String()
	for _, n := range [...]types.Name{i.From, i.To} {
		if len(n.Text) > 0 {
			s += " " + string(n.Text)
		}
	}
	if !i.Amount.IsZero() {
		s += fmt.Sprintf(" %v", i.Amount)
	}
	if i.Nonce > 0 {
		s += fmt.Sprintf(" nonce %d", i.Nonce)
	}
	if len(i.Ref.Text) > 0 {
		s += " " + string(i.Ref.Text)
	}
	return s
}

// Plan is the size of a world: the requests, and how often each fault may happen.
type Plan struct {
	first   []wish   // done before the start, one after another
	scripts [][]wish // the requests of each client, in order
	tries   uint8    // attempts of a client for each
	empty   bool     // begins before the first start, otherwise with a ready node

	powers, kills       uint8 // power losses; kills, which keep the page cache
	torn                bool  // a crash may leave half a frame
	fails               uint8 // failed syncs
	leaves              uint8 // cancellations
	passes              uint8 // time passes until the node is due
	jumps               uint8 // time passes by jump
	jump                time.Duration
	tables              uint8 // times that the index becomes durable; 0: no index
	lost                bool  // a crash may lose the index
	drains, aborts      uint8
	downs               uint8 // times that the public listener ends by itself
	slow                bool  // it starts and ends at any time
	rash                bool  // an abort takes no time
	tenants             int   // 0: one
	keys                int   // size of the window
	ttl, trail          time.Duration
	held, waiters       int
	lies                lies
	patience, heartbeat time.Duration
}

// lies are faults that a correct environment does not have: a scope with one must fail.
type lies struct {
	sync  bool // the disk reports a frame as synced that is not
	early bool // the loop reports a batch as durable when it is written
}

// shared is the shared part of the worlds of one scope. It only caches.
type shared struct {
	scope   Plan
	config  node.Config
	wishes  []*wish // all requests
	scripts [][]*wish
	empty   *page
	pages   int
	out     event.Effects
	err     error
	spare   *World // for actions that are tried and undone
	Saw     [sights]uint64
}

// A sight is something that a scope must show, otherwise it checks nothing.
type sight uint8

const (
	sawAnswer sight = iota
	sawReplay
	sawConflict
	sawRefusal
	sawWait         // in progress
	sawUnknown      // the outcome is unknown
	sawTail         // recovery found unacknowledged frames
	sawLost         // and lost others
	sawAgain        // recovery was interrupted
	sawTorn         // half a frame
	sawAcknowledged // a crash after an acknowledgement
	sawForgot       // keys were evicted
	sawIndexed      // a replay that only the index had
	sawSentBack     // stale index read
	sawLapsed
	sawCaptured
	sawReleased
	sawTurnedAway // by a drain
	sawStopped
	sawAborted
	sawLeft
	sawFailed
	sawBatch
	sawTakenBack // an atomic batch with a rejected item
	sawUsed      // a ref
	sawFrozen
	sawOther // an outcome of the second tenant
	sights
)

func (s sight) String() string {
	return [sights]string{"answer", "replay", "conflict", "refusal", "wait", "unknown", "tail", "lost", "again", "torn", "told", "forgot", "indexed",
		"sent back", "lapsed", "captured", "released", "turned away", "stopped", "aborted", "left", "failed", "batch", "taken back", "used", "frozen", "other"}[s]
}

func (h *shared) saw(s sight) { h.Saw[s]++ }

// fail records the first violated rule of the current action.
func (h *shared) fail(format string, args ...any) {
	if h.err == nil {
		h.err = fmt.Errorf(format, args...)
	}
}

const second = time.Second

func or[T comparable](x, otherwise T) T {
	var zero T
	if x == zero {
		return otherwise
	}
	return x
}

func newShared(s Plan) *shared {
	s.keys, s.held, s.tries = or(s.keys, 16), or(s.held, 3), or(s.tries, 2)
	s.ttl, s.trail, s.tenants = or(s.ttl, time.Hour), or(s.trail, 2*second), or(s.tenants, 1)
	l := state.Limits{
		Ledger: ledger.Limits{Accounts: 3 * s.tenants, Holdings: 3 * s.tenants, Assets: s.tenants, Tenants: s.tenants, TenantAccounts: 3, TenantHoldings: 3, TenantAssets: 1,
			Holds: maxHolds, TenantHolds: maxHolds, MaxBatchItems: 2, MaxAmount: types.MinorUnits(most), MaxDailyDebit: types.MinorUnits(1000), MaxDailyIssue: types.MinorUnits(1000)},
		Idempotency: idempotency.Limits{Keys: s.keys, PerTenant: s.keys, Tenants: s.tenants, TTL: s.ttl, MinRetention: s.trail},
		Keys:        2*s.tenants - 1, // the last one is for the first key again
	}
	c := node.Config{State: l, MaxHeldReplies: s.held, MaxReplayWaiters: s.waiters, MaxUnsyncedBytes: 1 << 20, MinFreeBytes: 1 << 10, CommitTimeout: or(s.patience, 3*second),
		StallThreshold: second / 5, SyncTimeout: 5 * second, HeartbeatInterval: or(s.heartbeat, second), SweepInterval: second, StartTimeout: 30 * second,
		Drain: drain.Times{LameDuck: second / 2, Drain: 3 * second, Abort: second}}
	if s.rash {
		c.Drain.Abort = 0
	}
	h := &shared{scope: s, config: c}
	blank := h.fresh()
	h.empty = &page{state: blank.Hash(), outcome: -1}
	for _, w := range s.first {
		h.wish(&w)
	}
	for _, all := range s.scripts {
		var sealed []*wish
		for _, w := range all {
			sealed = append(sealed, h.wish(&w))
		}
		h.scripts = append(h.scripts, sealed)
	}
	return h
}

// of returns a request for the hold of a fact.
func (h *shared) of(w *wish, f fact) *wish {
	id := types.NewTxID(f.page.journal, types.Position{LSN: f.page.lsn, Index: f.index})
	for _, known := range h.wishes {
		if known.key == w.key && known.r.Op == w.r.Op && known.r.Hold == id {
			return known
		}
	}
	one := *w
	one.r.Hold = id
	return h.wish(&one)
}

// wish stores a request, sealed. Equal requests are stored once.
func (h *shared) wish(w *wish) *wish {
	one := *w
	if one.r.Caller = boss.ID; one.r.Tenant == other.Tenant {
		one.r.Caller = other.ID
	} else {
		one.r.Tenant = boss.Tenant
	}
	one.r.Seal(nil)
	for _, known := range h.wishes {
		if known.r.Hash == one.r.Hash && known.key == one.key {
			return known
		}
	}
	h.wishes = append(h.wishes, &one)
	return &one
}
