package ledger_test

import (
	"errors"
	"maps"
	"math/big"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"macronode/ci/hashcoverage"
	"macronode/core/digest"
	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/types"
	"macronode/core/wallet/ledger"
	model "macronode/models/ledger"
)

// reasons maps problems to the model's names.
var reasons = map[event.Problem]string{
	event.None: "", event.NonceAhead: "nonce ahead", event.NonceUsed: "nonce used", event.AmountLimitExceeded: "amount",
	event.SupplyLimitExceeded: "supply", event.InsufficientFunds: "funds", event.DailyLimitExceeded: "day", event.CapacityExceeded: "room",
	event.AccountFrozen: "frozen", event.HoldNotActive: "hold", event.NotBeneficiary: "beneficiary", event.HoldAmountExceeded: "over hold", event.BadExpiry: "expiry",
}

var ops = map[string]event.Op{"issue": event.Issue, "transfer": event.Transfer, "burn": event.Burn, "hold": event.Hold,
	"capture": event.Capture, "release": event.Release, "freeze": event.Freeze, "unfreeze": event.Unfreeze}

// chance returns a number below n.
type chance func(n int) int

type tb interface {
	Helper()
	Fatalf(format string, args ...any)
}

// walk is a ledger, its reference model, a replica that reads committed records only, and a copy
// target.
type walk struct {
	tb
	pick   chance
	live   ledger.Ledger
	model  *model.State
	folded ledger.Ledger
	copied ledger.Ledger
	at     types.Time
	saw    map[string]int

	limits  ledger.Limits
	amounts []types.Amount
	ids     []types.TxID // of all holds so far
	hoards  bool         // it makes many small holds, and ends few

	marked bool
	then   *model.State // at the savepoint
	was    types.Hash64 // of the live ledger
	batch  []recorded   // since
}

type recorded struct {
	id   types.TxID
	at   types.Time
	body []byte
}

var (
	parties = []string{"ann", "bob", "cy", "dee", "eve"}
	assets  = []string{"EUR", "USD", "ann"} // an asset may have the name of an account
	tenants = []types.Tenant{1, 2, 3}
)

const day = types.Time(86_400_000)

func power(n uint) types.Amount { // 2^n
	if n < 64 {
		return types.Amount{Lo: 1 << n}
	}
	return types.Amount{Hi: 1 << (n - 64)}
}

func most() types.Amount { return types.Amount{Hi: 1<<64 - 1, Lo: 1<<64 - 1} }

func less(a types.Amount) types.Amount { b, _ := a.Sub(types.MinorUnits(1)); return b }

func whole(a types.Amount) *big.Int {
	n, ok := new(big.Int).SetString(a.String(), 10)
	types.Assert(ok, "an amount is not a number")
	return n
}

// newWalk starts with small row limits and, by scale, small or enormous amount limits.
func newWalk(t tb, pick chance) *walk {
	l := ledger.Limits{Accounts: 7, Holdings: 9, Assets: 5, Tenants: 2, TenantAccounts: 4, TenantHoldings: 5, TenantAssets: 2,
		Holds: 5, TenantHolds: 4, MaxAmount: types.MinorUnits(100), MaxDailyDebit: types.MinorUnits(110), MaxDailyIssue: types.MinorUnits(250)}
	amounts := []types.Amount{types.MinorUnits(1), types.MinorUnits(30), types.MinorUnits(60), types.MinorUnits(100), types.MinorUnits(101)}
	if pick(3) == 0 {
		l.MaxAmount, l.MaxDailyDebit, l.MaxDailyIssue = most(), most(), most()
		amounts = []types.Amount{types.MinorUnits(1), less(power(64)), power(64), power(126), less(power(127)), power(127), most()}
	}
	switch pick(4) {
	case 0:
		l.TenantAccounts, l.TenantHoldings, l.TenantAssets, l.TenantHolds = 9, 9, 9, 9 // the limits of the node are reached first
	case 1:
		l.TenantAccounts, l.TenantHoldings, l.TenantAssets, l.TenantHolds = 0, 0, 0, 0 // tenants leave room
	}
	if pick(4) == 0 {
		l.Holds, l.TenantHolds = 40, 40
	}
	seed := types.Hash64(pick(1 << 30))
	m := model.Limits{Tenants: l.Tenants, Accounts: l.Accounts, Holdings: l.Holdings, Assets: l.Assets, Holds: l.Holds,
		TenantAccounts: l.TenantAccounts, TenantHoldings: l.TenantHoldings, TenantAssets: l.TenantAssets, TenantHolds: l.TenantHolds,
		AccountHolds: types.MaxHolds, HoldFor: types.MaxHoldDuration.Milliseconds(),
		Amount: whole(l.MaxAmount), Day: whole(l.MaxDailyDebit), IssueDay: whole(l.MaxDailyIssue), Supply: whole(types.MaxSupply())}
	return &walk{tb: t, pick: pick, hoards: pick(3) == 0, limits: l, amounts: amounts, live: ledger.New(l, seed), model: model.New(m),
		folded: ledger.New(l, seed+1), copied: ledger.New(ledger.Limits{}, 0), at: types.Time(pick(3)) * day, saw: map[string]int{}}
}

// step makes one operation on ledger and model. The results and the states must be equal, and the
// record must be enough to reproduce the outcome.
func (w *walk) step() {
	w.Helper()
	switch w.pick(20) {
	case 0:
		w.at += types.Time(w.pick(int(day) + 1))
	case 1, 2, 3, 4:
		w.at += types.Time(w.pick(3))
	}
	w.moves()
	left := w.copied.Hash()
	o := w.drawOp()
	if w.pick(5) > 0 { // as the node does; otherwise expired holds still count as held
		w.expire(o.Tenant, o.From)
	}
	if w.pick(8) == 0 {
		w.expire(o.Tenant, "")
	}
	r, was := w.record(o), w.live.Hash()
	_, next := w.model.Balance(o.Tenant, o.From, o.Asset)
	fits := w.model.Fits(o)
	why := w.live.Decide(w.at, r)
	if w.live.Hash() != was {
		w.Fatalf("%+v: deciding changed the ledger", o)
	}
	if want := w.model.Do(o); reasons[why.General()] != want {
		w.Fatalf("%+v: %q (%v), the model has %q", o, reasons[why.General()], why, want)
	}
	w.saw[reasons[why.General()]]++
	if got := w.live.Fits(r); got != fits && (why == event.None || why.General() == event.CapacityExceeded) {
		w.Fatalf("%+v: fits %v, the model has %v", o, got, fits)
	}
	if why != event.None {
		if o.Nonce > 0 && r.Nonce != next {
			w.Fatalf("%+v: %v, expected nonce %d, the model expects %d", o, why, r.Nonce, next)
		}
	} else {
		w.saw["did "+o.Kind]++
		w.compareOutcome(o, r)
		w.checkReplay(r)
		if o.Kind == "hold" {
			w.ids = append(w.ids, o.Hold)
		}
		w.live.Apply(w.at, o.Hold, r)
		w.fold(o.Hold, r)
	}
	w.compareTenant(o.Tenant)
	if w.copied.Hash() != left {
		w.Fatalf("a copy changed with its original")
	}
}

// moves begins or ends a batch, or copies the ledger.
func (w *walk) moves() {
	switch what := w.pick(30); {
	case what < 2 && !w.marked:
		w.live.Savepoint()
		w.marked, w.then, w.was, w.batch = true, w.model.Clone(), w.live.Hash(), nil
	case what < 2 && w.marked:
		w.live.Undo()
		w.marked, w.model = false, w.then
		if w.saw["undo"]++; w.live.Hash() != w.was {
			w.Fatalf("undone, the ledger hashes to %x, not to %x", w.live.Hash(), w.was)
		}
		for t := range tenants {
			w.compareTenant(tenants[t])
		}
	case what < 4 && w.marked:
		w.live.Commit()
		w.marked = false
		for _, r := range w.batch {
			w.read(r)
		}
		w.saw["keep"]++
	case what < 9 && !w.marked:
		w.live.CopyTo(&w.copied)
		if w.copied.Hash() != w.live.Hash() {
			w.Fatalf("a copy has another hash: %s", hashcoverage.Apart(&w.live, &w.copied))
		}
		w.live, w.copied = w.copied, w.live // continue with the copy
	case what == 9 && !w.marked:
		w.live = w.loaded()
	}
}

// loaded returns a new ledger loaded from a dump of the live one.
func (w *walk) loaded() ledger.Ledger {
	fresh := ledger.New(w.limits, types.Hash64(w.pick(1<<30)))
	w.live.Dump(func(kind uint8, b []byte) {
		if err := fresh.Load(kind, b); err != nil {
			w.Fatalf("%v", err)
		}
	})
	if fresh.Hash() != w.live.Hash() {
		w.Fatalf("loaded, the ledger hashes to %x, not to %x", fresh.Hash(), w.live.Hash())
	}
	return fresh
}

// expire expires the holds of an account, or for "" one hold of any account.
func (w *walk) expire(t types.Tenant, account string) {
	for {
		id, of, over := w.model.Over(w.at, t, account)
		r := record.Record{Memo: []byte("left from before")}
		was := w.live.Hash()
		var due bool
		if account == "" {
			due = w.live.ExpireNextHold(w.at, &r)
		} else if due = w.live.HasExpiredHold(w.at, t, digest.Name([]byte(account))); due {
			w.live.ExpireHoldOf(w.at, t, digest.Name([]byte(account)), &r)
		}
		if due != over || w.live.Hash() != was {
			w.Fatalf("at %d %q has an expired hold: %v, the model has %v; %x was %x", w.at, account, due, over, w.live.Hash(), was)
		}
		if !over {
			return
		}
		h, _ := w.model.Hold(id)
		w.model.Lapse(id)
		if r.Kind != record.HoldExpired || r.Hold != id || r.Tenant != of || r.Seq != w.model.Seq(of) || len(r.Memo) > 0 ||
			whole(r.HeldBalance).Cmp(w.model.Kept(0, of, h.From, h.Asset)) != 0 {
			w.Fatalf("%+v lapsed, the model ends %x", r, id)
		}
		w.saw["lapse"]++
		w.checkReplay(&r)
		w.live.Apply(w.at, types.TxID{}, &r)
		w.fold(types.TxID{}, &r)
		if account == "" {
			return
		}
	}
}

// compareOutcome compares the results in a record with the model.
func (w *walk) compareOutcome(o model.Op, r *record.Record) {
	issued, burned := w.model.Supply(o.Tenant, o.Asset)
	from, _ := w.model.Balance(o.Tenant, o.From, o.Asset)
	to, _ := w.model.Balance(o.Tenant, o.To, o.Asset)
	held, spent := w.model.Kept(0, o.Tenant, o.From, o.Asset), w.model.Left(o)
	kind := record.Posted
	switch o.Kind {
	case "issue":
		from, held = issued, new(big.Int)
	case "transfer":
		held = new(big.Int)
	case "burn":
		to, held = burned, new(big.Int)
	case "hold":
		kind, from, to, spent = record.HoldOpened, new(big.Int), new(big.Int), new(big.Int)
	case "capture":
		kind = record.HoldCaptured
	case "release":
		kind, from, to, spent = record.HoldReleased, new(big.Int), new(big.Int), new(big.Int)
	default:
		kind, from, to, spent, held = record.FreezeChanged, new(big.Int), new(big.Int), new(big.Int), new(big.Int)
	}
	if r.Kind != kind || whole(r.FromBalance).Cmp(from) != 0 || whole(r.ToBalance).Cmp(to) != 0 || whole(r.DebitedToday).Cmp(spent) != 0 ||
		whole(r.HeldBalance).Cmp(held) != 0 || r.Seq != w.model.Seq(o.Tenant) || r.Nonce != o.Nonce {
		w.Fatalf("%+v: recorded %v: %v, %v, %v, held %v, seq %d; the model has %v, %v, %v, %v, seq %d",
			o, r.Kind, r.FromBalance, r.ToBalance, r.DebitedToday, r.HeldBalance, r.Seq, from, to, spent, held, w.model.Seq(o.Tenant))
	}
}

// follows: CheckReplay accepts the record and rejects a changed one.
func (w *walk) checkReplay(r *record.Record) {
	if why := w.live.CheckReplay(r); why != nil {
		w.Fatalf("%v: %v", r, why)
	}
	other := *r
	what := []string{"nonce", "seq", "amount", "unchanged", "from", "to", "held", "hold", "kind"}[w.pick(9)]
	switch {
	case what == "nonce" && r.Kind != record.HoldExpired:
		other.Nonce++
	case what == "amount" && r.Op > 0 && r.Op < event.Freeze:
		other.Amount.Lo ^= 1
	case what == "unchanged" && r.Op > 0 && r.Op <= event.Burn: // with matching balances
		other.Amount = types.Amount{}
		other.ToBalance, _ = r.ToBalance.Sub(r.Amount)
		if other.FromBalance, _ = r.FromBalance.Add(r.Amount); r.Op == event.Issue {
			other.FromBalance, _ = r.FromBalance.Sub(r.Amount)
		}
	case what == "from" && (r.Kind == record.Posted || r.Kind == record.HoldCaptured):
		other.FromBalance.Hi ^= 1
	case what == "to" && (r.Kind == record.Posted || r.Kind == record.HoldCaptured):
		other.ToBalance.Lo ^= 1
	case what == "held" && (r.Op >= event.Hold && r.Op <= event.Release || r.Kind == record.HoldExpired):
		other.HeldBalance.Lo ^= 1
	case what == "hold" && (r.Op == event.Capture || r.Op == event.Release || r.Kind == record.HoldExpired):
		other.Hold[15] ^= 0x80
	case what == "kind" && r.Kind != record.HoldExpired:
		if other.Kind = record.Posted; r.Kind == record.Posted {
			other.Kind = record.HoldOpened
		}
	default:
		what = "seq"
		other.Seq++
	}
	if why := w.live.CheckReplay(&other); !errors.Is(why, ledger.ErrReplay) {
		w.Fatalf("%v with another %s: %v", r, what, why)
	}
}

// fold keeps the record for the replica, which reads it once it cannot be undone.
func (w *walk) fold(id types.TxID, r *record.Record) {
	body, _ := record.Add(record.Begin(nil, 1, w.at), 0, r)
	if w.batch = append(w.batch, recorded{id, w.at, body}); !w.marked {
		w.read(w.batch[len(w.batch)-1])
		w.batch = w.batch[:0]
		if w.folded.Hash() != w.live.Hash() {
			w.Fatalf("folded, the ledger hashes to %x, not to %x", w.folded.Hash(), w.live.Hash())
		}
	}
}

// read applies a record as read from a journal, twice: a snapshot may already contain it.
func (w *walk) read(from recorded) {
	var r record.Record
	if _, err := record.Read(from.body, 0, &r); err != nil {
		w.Fatalf("%v", err)
	}
	r.Identify()
	if !w.folded.Fits(&r) || w.folded.CheckReplay(&r) != nil {
		w.Fatalf("%+v does not fit, or follow: %v", r, w.folded.CheckReplay(&r))
	}
	w.folded.Apply(from.at, from.id, &r)
	if w.pick(4) == 0 {
		w.folded.Apply(from.at, from.id, &r)
	}
}

// compareTenant compares the state of a tenant with the model.
func (w *walk) compareTenant(t types.Tenant) {
	if err := errors.Join(w.live.Check(), w.copied.Check(), w.folded.Check()); err != nil {
		w.Fatalf("%v", err)
	}
	for _, asset := range assets {
		for _, account := range parties {
			w.compareAccount(t, account, asset)
		}
		issued, burned := w.live.Supply(t, digest.Name([]byte(asset)))
		in, out := w.model.Supply(t, asset)
		held := w.live.Held(t, digest.Name([]byte(asset)))
		if whole(issued).Cmp(in) != 0 || whole(burned).Cmp(out) != 0 || whole(held).Cmp(w.model.Held(t, asset)) != 0 {
			w.Fatalf("tenant %d: %v %s issued, %v burned, %v held; the model has %v, %v and %v", t, issued, asset, burned, held, in, out, w.model.Held(t, asset))
		}
	}
	for _, id := range w.ids {
		h, active := w.live.Hold(id)
		want, known := w.model.Hold(id)
		if active != known {
			w.Fatalf("hold %x is active: %v, the model has %v", id, active, known)
		}
		to := types.NameHash{}
		if want.To != "" {
			to = digest.Name([]byte(want.To))
		}
		if active && (h != ledger.Hold{Tenant: want.Tenant, From: digest.Name([]byte(want.From)), Asset: digest.Name([]byte(want.Asset)),
			To: to, Amount: h.Amount, ExpiresAt: want.Until} || whole(h.Amount).Cmp(want.Amount) != 0) {
			w.Fatalf("hold %x is %+v, the model has %+v", id, h, want)
		}
	}
	if w.live.Seq(t) != w.model.Seq(t) || w.live.Accounts() != w.model.Accounts() ||
		w.live.Holds() != len(w.model.Active()) || w.live.TenantHolds(t) != w.model.Holds(t) {
		w.Fatalf("tenant %d: seq %d, %d accounts, %d holds; the model has %d, %d and %d", t,
			w.live.Seq(t), w.live.Accounts(), w.live.Holds(), w.model.Seq(t), w.model.Accounts(), len(w.model.Active()))
	}
}

func (w *walk) compareAccount(t types.Tenant, account, asset string) {
	id := digest.Name([]byte(account))
	got, held, next := w.live.Balance(w.at, t, id, digest.Name([]byte(asset)))
	want, after := w.model.Balance(t, account, asset)
	kept := w.model.Kept(w.at, t, account, asset)
	if whole(got).Cmp(want) != 0 || whole(held).Cmp(kept) != 0 || next != after {
		w.Fatalf("tenant %d: %s has %v %s, %v held, and nonce %d; the model has %v, %v and %d", t, account, got, asset, held, next, want, kept, after)
	}
	if got, want := w.live.DebitLimit(w.at, t, id, digest.Name([]byte(asset))), w.model.DebitLimit(w.at, t, account, asset); whole(got).Cmp(want) != 0 {
		w.Fatalf("tenant %d: %v %s of %s may be debited at once, the model has %v", t, got, asset, account, want)
	}
	_, _, due := w.model.Over(w.at, t, account)
	if w.live.Frozen(t, id) != w.model.Frozen(t, account) || w.live.HasExpiredHold(w.at, t, id) != due {
		w.Fatalf("tenant %d: %s is frozen: %v, the model has %v", t, account, w.live.Frozen(t, id), w.model.Frozen(t, account))
	}
}

// TestMatchesModel compares the ledger with its reference model under random operations.
func TestMatchesModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWalk(t, func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "pick") })
		t.Repeat(map[string]func(*rapid.T){"step": func(*rapid.T) { w.step() }})
	})
}

// TestModelCoversEveryProblem: the random walks produce every problem often.
func TestModelCoversEveryProblem(t *testing.T) {
	saw := map[string]int{}
	for seed := range uint64(90) {
		dice := types.NewRand(seed)
		w := newWalk(t, func(n int) int { return int(dice.Uint64n(uint64(n))) })
		for range 200 {
			w.step()
		}
		for why, n := range w.saw {
			saw[why] += n
		}
	}
	for p, why := range reasons {
		if saw[why] < 10 {
			t.Errorf("%q (%v) was returned %d times: %v", why, p, saw[why], saw)
		}
	}
	for _, op := range slices.Sorted(maps.Keys(ops)) {
		if saw["did "+op] < 10 {
			t.Errorf("%s was done %d times: %v", op, saw["did "+op], saw)
		}
	}
	for _, what := range []string{"lapse", "undo", "keep"} {
		if saw[what] < 10 {
			t.Errorf("%s came %d times: %v", what, saw[what], saw)
		}
	}
	t.Log(saw)
}
