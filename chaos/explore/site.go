package explore

import (
	"bytes"
	"fmt"
	"time"

	"macronode/core/accounting"
	"macronode/core/event"
	"macronode/core/flow"
	"macronode/core/node"
	"macronode/core/plane"
	"macronode/core/pricing"
	"macronode/core/state"
	"macronode/core/storage"
	"macronode/core/types"
	"macronode/core/wallet/ledger"
)

// A Site is the node with objects and usage, two users, and its journal. A journal is durable up to a frame, and after a
// power loss it has these frames and any number of the next. World has the steps of the disk in detail, for the wallet.
//
//	ask ─► node ─► last ─sync─► safe ─confirm─► confirmed ─► hear
//
// Invariants:
//
//	P1  an answer is sent after its frame is durable, and is that of the model
//	P2  after each frame, objects, quotas, balances, holds and usage are those of the model
//	P3  an acknowledged outcome stays in the journal
//	P4  usage of slices and of open rows is that of the events that the model counts, each once
//	P5  the folded state of any journal that a power loss leaves is that of the node that wrote it
//	P6  in the end every request has its answer
type Site struct {
	h                     *siteShared
	node                  *node.Node
	now                   types.Now
	last, safe, confirmed *entry
	users                 [2]user
	facts                 [2]*entry // the last frame with an acknowledged outcome of each user
	left                  siteBudget
}

// siteBudget limits the faults.
type siteBudget struct{ powers, jumps uint8 }

// A user makes one call after another. After a power loss, it repeats the call. One that pays for an object reserves
// the price again, since it does not know what became of its hold.
type user struct {
	at    uint8 // index in its script
	tries uint8 // attempts left
	state asking
	use   uint32        // generation of its ticket
	want  event.Problem // of the answer
	frame *entry        // with the outcome; nil: nothing was recorded
	hold  types.TxID    // that it has reserved
	mail  event.Reply   // its answer, before it is read
}

type callKind uint8

const (
	callPut     callKind = iota // of an object, for nothing
	callDelete                  // of an object
	callReserve                 // the price of an object
	callPaid                    // put of an object with the reserved price
	callCancel                  // of the reservation
	callReport                  // usage events
	callPrepaid                 // usage events, paid
	callMetered                 // requests that the node has metered, paid as far as there is money; without any it pays arrears
	callIssue                   // of money to the payer
)

// A call is a request of a script. An event has its number and its units; of metered requests and of money only the units count.
type call struct {
	kind   callKind
	object uint8
	events []siteEvent
}

type siteEvent struct{ id, units uint8 }

func (c call) String() string {
	what := [...]string{"put of object", "deletion of object", "reservation for object", "paid put of object", "cancellation of", "report of", "prepaid report of", "metered requests of", "issue of"}[c.kind]
	if len(c.events) > 0 {
		return fmt.Sprintf("%s %v", what, c.events)
	}
	return fmt.Sprintf("%s %d", what, c.object)
}

// SitePlan is the size of a site.
type SitePlan struct {
	scripts [2][]call
	powers  uint8
	jumps   uint8 // times that jump passes
	jump    time.Duration
	funds   uint64
	quota   uint64 // objects of the tenant
	price   uint64 // of an object; 0: free
	unit    uint64 // price of a unit of usage
	tries   uint8  // attempts for each call
}

// siteShared is the shared part of the sites of one scope. It only caches.
type siteShared struct {
	plan    SitePlan
	config  node.Config
	prices  pricing.List
	terms   *flow.Terms
	empty   *entry
	entries int
	out     event.Effects
	view    state.State // scratch: the folded state of an entry
	err     error
	Saw     [siteSights]uint64
}

// A siteSight is something that a scope must show.
type siteSight uint8

const (
	siteDone         siteSight = iota
	siteRejected               // by a rule, not for lack of money
	siteUnpaid                 // for lack of money, or of an active hold
	siteRetried                // the first attempt was recorded, and is repeated after a power loss
	siteLost                   // frames were lost
	siteTail                   // frames were recovered that were not known to be durable
	siteExpired                // a hold expired
	siteSealed                 // usage was sealed
	siteCorrected              // and corrected
	siteAcknowledged           // a power loss after an acknowledgement
	siteKept                   // a paid put of an object that is stored already
	siteOwes                   // metered requests are recorded without all of their price
	siteSettled                // and it is paid later
	siteSights
)

func (s siteSight) String() string {
	return [siteSights]string{"done", "rejected", "unpaid", "retried", "lost", "tail", "expired", "sealed", "corrected", "acknowledged", "kept", "owes", "settled"}[s]
}

// fail records the first violated rule of the current action.
func (h *siteShared) fail(format string, args ...any) {
	if h.err == nil {
		h.err = fmt.Errorf(format, args...)
	}
}

const (
	sitePayer, siteRevenue, siteAsset = "ann", "shop", "EUR/2"

	siteWindow  = time.Minute
	siteGrace   = 10 * time.Second
	siteHoldTTL = 30 * time.Second
	siteSize    = 1 << 20 // of each object, so that it has one price
)

func newSiteShared(p SitePlan) *siteShared {
	p.tries = or(p.tries, 2)
	c := newShared(Plan{}).config
	c.State.Planes = []plane.Spec{
		storage.Spec(storage.Limits{Objects: 2 * siteObjects, Holdings: 2 * siteObjects, Buckets: 1, TenantBuckets: 1,
			TenantQuota: storage.Usage{Bytes: siteObjects * siteSize, Objects: p.quota}, BucketQuota: storage.Usage{Bytes: siteObjects * siteSize, Objects: siteObjects}}),
		accounting.Spec(accounting.Limits{Rows: 8, Streams: 2, Tenants: 1, TenantRow: 8, TenantDim: 2, Lines: 4, Window: siteWindow, Grace: siteGrace}),
	}
	c.State.Ledger = ledger.Limits{Accounts: 3, Holdings: 3, Assets: 1, Tenants: 1, TenantAccounts: 3, TenantHoldings: 3, TenantAssets: 1, Holds: siteHolds, TenantHolds: siteHolds,
		MaxBatchItems: 1, MaxAmount: types.MinorUnits(1000), MaxDailyDebit: types.MinorUnits(1000), MaxDailyIssue: types.MinorUnits(1000)}
	c.HeartbeatInterval, c.SweepInterval = 24*time.Hour, time.Second
	c.CommitTimeout, c.StallThreshold, c.SyncTimeout = 24*time.Hour, 24*time.Hour, 24*time.Hour // World has a disk that takes its time
	if p.price > 0 {
		c.Price = flow.Price{PerMiB: p.price, Asset: siteAsset, Payer: sitePayer, Beneficiary: siteRevenue, HoldTTL: siteHoldTTL}
	}
	h := &siteShared{plan: p, config: c}
	prices := pricing.List{{Name: "each", Dimension: "requests", Asset: siteAsset, Model: pricing.PerUnit, Per: 1, Tiers: []pricing.Tier{{Price: pricing.Micros(p.unit * 1_000_000)}}}}
	terms, err := flow.NewTerms(prices, sitePayer, siteRevenue)
	if err != nil {
		h.fail("terms: %w", err)
	}
	h.prices, h.terms = prices, terms
	h.view = h.fresh()
	h.empty = &entry{state: h.view.Hash()}
	return h
}

// fresh returns an empty state.
func (h *siteShared) fresh() state.State { return state.New(h.config.State, 1) }

func (h *siteShared) start(s state.State) *node.Node {
	return node.New(h.config, s, 1, types.NewRand(1))
}

// OpenSite returns the site of a plan: the node is ready, and the payer has its funds.
func OpenSite(p SitePlan) *Site {
	h := newSiteShared(p)
	w := &Site{h: h, now: types.Now{Mono: 1, Wall: begin, Synced: true}, last: h.empty, safe: h.empty, confirmed: h.empty}
	w.boot()
	w.settle()
	if p.funds > 0 {
		paid := issue(0, sitePayer, p.funds).r
		paid.Caller, paid.Tenant, paid.Ticket = boss.ID, boss.Tenant, types.NewTicket(9, 3)
		paid.Seal(nil)
		books := w.last.books
		books.funds = p.funds
		w.step(&paid, books)
		w.settle()
	}
	w.left = siteBudget{p.powers, p.jumps}
	h.Saw = [siteSights]uint64{}
	for i := range w.users {
		w.users[i].tries = h.plan.tries
	}
	return w
}

// settle makes all frames durable.
func (w *Site) settle() {
	for w.confirmed != w.last {
		w.safe = w.last
		w.confirm()
	}
}

// CopyTo overwrites dst, reusing its memory.
func (w *Site) CopyTo(dst *Site) {
	n := dst.node
	if *dst = *w; n == nil {
		n = w.h.start(w.h.fresh())
	}
	w.node.CopyTo(n)
	dst.node = n
}

// Hash covers everything that affects later steps.
func (w *Site) Hash() types.Hash64 {
	h := w.node.Hash().Mix(uint64(w.now.Mono)).Mix(uint64(w.now.Wall))
	for _, e := range [...]*entry{w.last, w.safe, w.confirmed, w.facts[0], w.facts[1]} {
		h = e.mix(h)
	}
	for i := range w.users {
		u := &w.users[i]
		h = u.frame.mix(h.Mix(uint64(u.at) | uint64(u.tries)<<8 | uint64(u.state)<<16 | uint64(u.use)<<32).Mix(uint64(u.want)))
		h = u.mail.HashInto(u.hold.HashInto(h))
	}
	return h.Mix(uint64(w.left.powers) | uint64(w.left.jumps)<<8)
}

// Check checks the invariants of the node, and of the site.
func (w *Site) Check() error {
	switch {
	case w.node.LSN() != w.last.lsn:
		return fmt.Errorf("P5: the node is at %v, its frames at %v", w.node.LSN(), w.last.lsn)
	case !w.last.has(w.safe) || !w.safe.has(w.confirmed):
		return fmt.Errorf("P3: last %v, safe %v, confirmed %v", w.last.lsn, w.safe.lsn, w.confirmed.lsn)
	}
	for i, f := range w.facts {
		if f != nil && !w.safe.has(f) {
			return fmt.Errorf("P3: user %d has the outcome %v, which is lost", i, f.lsn)
		}
	}
	return w.node.Check()
}

// Rest checks the end of a schedule.
func (w *Site) Rest() error {
	for i := range w.users {
		if u := &w.users[i]; u.state != idle || int(u.at) < len(w.h.plan.scripts[i]) {
			return fmt.Errorf("P6: user %d is in state %d of call %d", i, u.state, u.at)
		}
	}
	return nil
}

// An entry is a frame with all earlier ones: a journal is its last entry. Equal journals have the same entry.
type entry struct {
	before   *entry // nil: of an empty journal
	children []*entry
	lsn      types.LSN
	body     []byte
	hash     types.Hash64 // of all bytes up to here
	state    types.Hash64 // durable state of the node that wrote it
	books    siteBooks    // after it
}

func (e *entry) mix(h types.Hash64) types.Hash64 {
	if e == nil {
		return h.Mix(1)
	}
	return h.Mix(uint64(e.hash))
}

// upto returns the entry with an LSN, e or an earlier one; nil if there is none.
func (e *entry) upto(lsn types.LSN) *entry {
	for ; e != nil && e.lsn > lsn; e = e.before {
	}
	if e == nil || e.lsn != lsn {
		return nil
	}
	return e
}

// has reports whether one is e or before it.
func (e *entry) has(one *entry) bool { return e.upto(one.lsn) == one }

// next returns the entry after e with a body. It checks one that is new; one that is known must have the same state and
// the same model.
func (h *siteShared) next(e *entry, body []byte, lsn types.LSN, state types.Hash64, books siteBooks) *entry {
	if err := h.read(body, &books); err != nil {
		h.fail("%w", err)
	}
	for _, c := range e.children {
		if bytes.Equal(c.body, body) {
			if c.state != state || c.books != books {
				h.fail("P2: two states after the same journal up to %v", lsn)
			}
			return c
		}
	}
	c := &entry{before: e, lsn: lsn, body: bytes.Clone(body), hash: mixBytes(e.hash, body), state: state, books: books}
	e.children = append(e.children, c)
	h.entries++
	h.compare(c)
	return c
}

// fold folds a journal into the view.
func (h *siteShared) fold(e *entry) {
	if e.before == nil {
		h.view = h.fresh()
		return
	}
	h.fold(e.before)
	if err := h.view.Fold(e.body, nil); err != nil {
		h.fail("P5: %v cannot be folded: %w", e.lsn, err)
		return
	}
	if h.view.Hash() != e.state {
		h.fail("P5: a fold of %v is another state than the node had", e.lsn)
	}
}
