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

// boss is the key that everybody comes with.
var boss = event.Key{ID: 77, Tenant: types.DefaultTenant, Hash: [32]byte{1}, Scopes: event.AllScopes, Bootstrap: true}

// other is the key that the second tenant comes with.
var other = event.Key{ID: 78, Tenant: 2, Hash: [32]byte{2}, Scopes: event.AllScopes}

// A wish is one request: what is asked, under which key. A capture or a release is of
// the hold that the outcome of another key opened; it is asked when that was told.
type wish struct {
	r    event.Request
	key  int
	hold int // the key, and 1; 0: of no hold
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

// Plan is how small a world is: who wants what, and what may befall it, each so often.
type Plan struct {
	first   []wish   // done before the start, one after another
	scripts [][]wish // what each client wants, one after another
	tries   uint8    // how often a client asks for each
	empty   bool     // begins before the first start, else when all is well

	powers, kills   uint8 // the power goes; the process goes and its pages stay
	torn            bool  // and what is left may end in half a frame
	fails           uint8 // a sync fails
	leaves          uint8 // a client no longer waits
	passes          uint8 // time goes by, to when the node has something to do
	jumps           uint8 // time goes by, jump at once
	jump            time.Duration
	tables          uint8 // the index makes what it has durable; 0: there is no index
	lost            bool  // a crash may take all of the index
	drains, aborts  uint8
	downs           uint8 // the public listener ends by itself
	slow            bool  // it comes up and goes down when it likes
	rash            bool  // an abort takes no time
	tenants         int   // 0: one
	keys            int   // the window takes
	ttl, trail      time.Duration
	held, waiters   int
	lies            lies
	patience, vouch time.Duration
}

// lies are what no law allows: a scope with one must be found broken.
type lies struct {
	sync  bool // the disk says that it has a frame, and has not
	early bool // the shell says that a batch is on the disk when it was written
}

// house is what the worlds of one scope share, and none of them changes but for what it
// has learned.
type house struct {
	scope   Plan
	config  node.Config
	wishes  []*wish // every one that was ever made up
	scripts [][]*wish
	empty   *page
	pages   int
	out     event.Effects
	err     error
	spare   *World // for what is tried and taken back
	Saw     [sights]uint64
}

// A sight is what a scope is there to show. A scope that never shows it checks nothing.
type sight uint8

const (
	sawAnswer sight = iota
	sawReplay
	sawConflict
	sawRefusal
	sawWait     // in progress
	sawUnknown  // told that nobody knows
	sawTail     // recovery found frames that nobody had promised
	sawLost     // and lost others
	sawAgain    // recovery was cut short
	sawTorn     // half a frame
	sawTold     // a crash, and somebody had been told
	sawForgot   // keys left the window
	sawIndexed  // a replay that only the index knew
	sawSentBack // to look again
	sawLapsed
	sawCaptured
	sawReleased
	sawTurnedAway // by a drain
	sawStopped
	sawAborted
	sawLeft
	sawFailed
	sawBatch
	sawTakenBack // a batch of all or nothing, with an item that is refused
	sawUsed      // a ref
	sawFrozen
	sawOther // what became of the second tenant's
	sights
)

func (s sight) String() string {
	return [sights]string{"answer", "replay", "conflict", "refusal", "wait", "unknown", "tail", "lost", "again", "torn", "told", "forgot", "indexed",
		"sent back", "lapsed", "captured", "released", "turned away", "stopped", "aborted", "left", "failed", "batch", "taken back", "used", "frozen", "other"}[s]
}

func (h *house) saw(s sight) { h.Saw[s]++ }

// fail notes the first rule that the action at hand breaks.
func (h *house) fail(format string, args ...any) {
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

func newHouse(s Plan) *house {
	s.keys, s.held, s.tries = or(s.keys, 16), or(s.held, 3), or(s.tries, 2)
	s.ttl, s.trail, s.tenants = or(s.ttl, time.Hour), or(s.trail, 2*second), or(s.tenants, 1)
	l := state.Limits{
		Ledger: ledger.Limits{Accounts: 3 * s.tenants, Holdings: 3 * s.tenants, Assets: s.tenants, Tenants: s.tenants, TenantAccounts: 3, TenantHoldings: 3, TenantAssets: 1,
			Holds: maxHolds, TenantHolds: maxHolds, MaxBatchItems: 2, MaxAmount: types.MinorUnits(most), MaxDailyDebit: types.MinorUnits(1000), MaxDailyIssue: types.MinorUnits(1000)},
		Idempotency: idempotency.Limits{Keys: s.keys, PerTenant: s.keys, Tenants: s.tenants, TTL: s.ttl, MinRetention: s.trail},
		Keys:        2*s.tenants - 1, // the last one is for the first key again
	}
	c := node.Config{State: l, MaxHeldReplies: s.held, MaxReplayWaiters: s.waiters, MaxUnsyncedBytes: 1 << 20, MinFreeBytes: 1 << 10, CommitTimeout: or(s.patience, 3*second),
		StallThreshold: second / 5, SyncTimeout: 5 * second, HeartbeatInterval: or(s.vouch, second), SweepInterval: second, StartTimeout: 30 * second,
		Drain: drain.Times{LameDuck: second / 2, Drain: 3 * second, Abort: second}}
	if s.rash {
		c.Drain.Abort = 0
	}
	h := &house{scope: s, config: c}
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

// of is a wish about the hold that a fact tells of.
func (h *house) of(w *wish, f fact) *wish {
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

// wish notes one, sealed. The same wish is noted once.
func (h *house) wish(w *wish) *wish {
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
