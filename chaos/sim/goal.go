package sim

import (
	"math"
	"slices"
	"time"

	"macronode/core/event"
	"macronode/core/types"
	meaning "macronode/models/ledger"
)

// A goal is the cell that a run aims at. Two thirds of the runs have one, so that each cell is
// the goal of some. The run prefers what the cell needs, and the world creates the conditions of
// its outcome. It is still random: not every run reaches its goal.
type goal struct {
	Cell
	set    bool
	waited bool // until earlier keys were evicted
	bent   bool // the world creates the conditions
}

// goals exceeds the number of cells, so that a log keeps its meaning when cells are added.
const goals = 1 << 12

// reachable are the cells that can be goals.
var reachable = slices.DeleteFunc(Cells(), func(c Cell) bool { return c.Never() != "" })

// aim draws the goal of a run.
func (w *World) aim() {
	if w.c.Choose("goal", 3) == 0 {
		return
	}
	w.goal = goal{Cell: reachable[w.c.Choose("goal/cell", goals)%len(reachable)], set: true}
	w.odds = odds{busy: 1, reorder: w.odds.reorder, duplicate: w.odds.duplicate}
}

// wants reports whether the outcome of the goal is one of these.
func (g *goal) wants(any ...event.Problem) bool { return g.set && slices.Contains(any, g.Outcome) }

// outlives reports whether the goal is a retry after the key was evicted.
func (w *World) outlives() bool {
	g := &w.goal
	return g.wants(event.RefUsed) && (g.Class == Plain || g.Class == Large)
}

// goalClient returns the client of the goal.
func (w *World) goalClient() *client {
	switch {
	case w.goal.Class == NoKey:
		return w.clients[3]
	case w.goal.Class == Barred || w.goal.Class == Again || w.goal.Class == Other || w.goal.wants(event.CapacityExceeded):
		return w.clients[1]
	}
	return w.clients[w.c.Choose("goal/who", 3)]
}

// bend creates what the outcome of the goal needs once in is submitted.
func (w *World) bend(c *client, in *event.Request) {
	if w.goal.bent {
		return // other clients move for it
	}
	w.goal.bent = true
	defer func() { w.goal.bent = false }()
	if w.outlives() && !c.doubts && c.out != 0 {
		w.turn(len(w.enter))
		c.leave(w)
		return
	}
	switch w.goal.Outcome {
	case event.Busy: // other requests wait, of other clients and of its own
		for _, other := range w.clients {
			if other != c {
				other.move(w)
			}
		}
		fallthrough
	case event.InProgress: // one is decided, one waits for it, and one is too many
		w.double(c, in)
		w.double(c, in)
		w.turn(len(w.enter))
	case event.Unavailable: // a drain begins
		w.draining = true
		w.step(event.Signal{Kind: event.Drain})
		w.pass(config().Drain.LameDuck)
		w.turn(len(w.enter))
	case event.OutcomeUnknown: // nothing is written
		for _, other := range w.clients[:2] { // otherwise a forbidden client has nothing to wait for
			if w.goal.Class == NoKey {
				other.move(w)
			}
		}
		w.turn(len(w.enter))
		w.pass(2 * time.Second)
		w.pass(2 * time.Second)
	default:
	}
}

// forget advances time until keys are evicted, and makes the index keep up.
func (w *World) forget() {
	for range 3 {
		w.settle()
		w.folds(math.MaxInt)
		w.table()
		w.turn(0)
		w.pass(limits().Idempotency.TTL/2 + time.Second)
	}
	w.settle()
}

// before returns an operation that the goal needs first, if any.
func (c *client) before(w *World) (r event.Item, any bool) {
	g := &w.goal
	if g.Class == Malformed || g.Class == NoKey {
		return r, false
	}
	ends := g.Op == event.Freeze || g.Op == event.Unfreeze
	frozen := w.fol.Frozen(c.tenant, []byte(c.account))
	again := (g.Class == Again || g.Class == Other) && len(c.kept(g.Op)) == 0
	b := w.fol.Balance(c.tenant, []byte(c.account), []byte("EUR/2"))
	switch {
	case (g.Class == NonceLow || g.wants(event.NonceUsed)) && b.NextNonce < 2 && !frozen:
		return c.pay(w, b, event.Transfer, 1), true
	case frozen && !ends && !g.wants(event.AccountFrozen):
		return event.Item{Op: event.Unfreeze, From: name(c.account)}, true
	case !frozen && g.wants(event.AccountFrozen) && !again && !(g.holds() && c.fresh(&w.goal) < 0):
		return event.Item{Op: event.Freeze, From: name(c.account)}, true
	case (g.Class == OldRef && !decided(g.Outcome) || g.Class >= OldRef && g.wants(event.RefUsed)) && c.refs == 0:
		c.refs++
		r = c.issue(12)
		r.Ref.Text = c.named()
		return r, true
	case g.Class == OldRef && decided(g.Outcome) && !g.wants(event.RefUsed) && !c.unused: // it was rejected, and its ref is free
		c.unused = true
		c.refs++
		r = event.Item{Op: event.Burn, From: name(c.account), Asset: name("EUR/2"), Amount: types.MinorUnits(39), Nonce: b.NextNonce}
		r.Ref.Text = c.named()
		return r, true
	case ends, frozen, g.Class >= Again && g.Class <= Other && !again && !g.once():
		return r, false
	case g.wants(event.DailyLimitExceeded) && g.Op != event.Issue && w.spent(c) < 32:
		return c.pay(w, b, event.Transfer, 9), true
	case again && g.once() && b.Available.Less(types.MinorUnits(30)):
		return c.later(w, b), true
	case g.pays() && !g.wants(event.InsufficientFunds) && b.Available.Less(types.MinorUnits(g.need())):
		return c.issue(g.need()), true
	case g.holds() && c.fresh(&w.goal) < 0 && !g.wants(event.HoldNotActive):
		r = c.pay(w, b, event.Hold, g.need()*3/4)
		if r.Op == event.Hold && g.wants(event.HoldAmountExceeded) {
			r.Amount = types.MinorUnits(1)
		}
		if r.Op == event.Hold && g.wants(event.NotBeneficiary) {
			r.To = name("till")
		}
		return r, true
	}
	return r, false
}

// idles reports whether c waits until the table is full: it has what it needs.
func (c *client) idles(w *World) bool {
	return w.goal.wants(event.CapacityExceeded) && !w.crowded(w.goal.Op)
}

// once reports whether the goal is to retry a rejection for funds with a nonce that is still
// unused.
func (g *goal) once() bool {
	return (g.Class == Again || g.Class == Other) && g.pays() &&
		(g.wants(event.DailyLimitExceeded, event.CapacityExceeded, event.AccountFrozen) || g.wants(event.None) && g.Class == Other)
}

// holds reports whether the goal needs an active hold.
func (g *goal) holds() bool {
	return g.Op == event.Capture || g.Op == event.Release || g.Op == event.Batch && g.wants(event.HoldAmountExceeded, event.NotBeneficiary)
}

// need returns the amount that the goal needs.
func (g *goal) need() uint64 {
	if g.Class == Large || g.once() {
		return 30
	}
	return 12
}

func (c *client) issue(amount uint64) event.Item {
	return event.Item{Op: event.Issue, To: name(c.account), Asset: name("EUR/2"), Amount: types.MinorUnits(amount)}
}

// pay returns a payment of c, or an issue of the money for it.
func (c *client) pay(w *World, b event.Balance, op event.Op, amount uint64) event.Item {
	if b.Available.Less(types.MinorUnits(amount)) {
		return c.issue(amount + 3)
	}
	r := event.Item{Op: op, From: name(c.account), Asset: name("EUR/2"), Amount: types.MinorUnits(amount), Nonce: b.NextNonce}
	switch op {
	case event.Transfer:
		r.To = name("shop")
	case event.Hold:
		r.ExpiresAt = w.now.Wall.Add(time.Hour)
	default:
	}
	return r
}

// later returns a payment that c cannot make now, and retries when it can.
func (c *client) later(w *World, b event.Balance) event.Item {
	g := &w.goal
	r := event.Item{Op: g.Op, From: name(c.account), Asset: name("EUR/2"), Amount: types.MinorUnits(30), Nonce: b.NextNonce}
	switch g.Op {
	case event.Batch:
		r.Op = event.Transfer
		fallthrough
	case event.Transfer:
		r.To = name(elsewhere)
	case event.Hold:
		r.ExpiresAt = w.now.Wall.Add(time.Hour)
	default:
	}
	return r
}

// elsewhere is an account without other payments. The clerk's key covers it.
const elsewhere = "shy"

// crowded reports whether a table is full for an operation.
func (w *World) crowded(op event.Op) bool {
	if op == event.Hold {
		return w.audit.model.Holds(types.DefaultTenant) >= limits().Ledger.TenantHolds
	}
	return w.audit.model.Accounts() >= limits().Ledger.TenantAccounts
}

// spent returns what the daily limit of an account counts: its debits today, and what is held.
func (w *World) spent(c *client) uint64 {
	debited := w.audit.model.Left(meaning.Op{At: w.audit.at, Tenant: c.tenant, Kind: "burn", From: c.account, Asset: "EUR/2"})
	return debited.Uint64() + w.audit.model.Kept(0, c.tenant, c.account, "EUR/2").Uint64()
}

// fresh returns the index of the last hold without a request to end it, with a beneficiary if the
// goal needs one; negative if there is none.
func (c *client) fresh(g *goal) int {
	for i := len(c.holds) - 1; i >= 0; i-- {
		if !c.holds[i].tried && (len(c.holds[i].to.Text) > 0 || !g.wants(event.NotBeneficiary)) {
			return i
		}
	}
	return -1
}

// kept returns the old requests of an operation.
func (c *client) kept(op event.Op) (all []*event.Request) {
	for _, r := range c.past {
		if r.Op == op {
			all = append(all, r)
		}
	}
	return all
}

// fills returns the operations of the other clients while the goal is a full table.
func (c *client) fills(w *World) (r event.Item) {
	b := w.fol.Balance(c.tenant, []byte(c.account), []byte("EUR/2"))
	if w.goal.Op == event.Hold {
		return c.pay(w, b, event.Hold, 1)
	}
	if r = c.pay(w, b, event.Transfer, 1); r.Op == event.Transfer {
		r.To = name([]string{"till", "cat", "dog", "eel"}[w.c.Choose("goal/fills", 4)])
	}
	return r
}
