package ledger_test

import (
	"errors"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"macronode/core/digest"
	"macronode/core/event"
	"macronode/core/ledger"
	"macronode/core/record"
	"macronode/core/words"
	model "macronode/models/ledger"
)

// reasons are the twin's words for the machine's.
var reasons = map[event.Problem]string{
	event.None: "", event.NonceAhead: "nonce ahead", event.NonceUsed: "nonce used", event.OverAmount: "amount",
	event.OverSupply: "supply", event.InsufficientFunds: "funds", event.OverDay: "day", event.TooMany: "room",
}

// chance picks one of n.
type chance func(n int) int

type tb interface {
	Helper()
	Fatalf(format string, args ...any)
}

// twins are a ledger, its dumb twin, a ledger that only reads what was recorded, and
// one that was overwritten by a copy.
type twins struct {
	tb
	pick   chance
	live   ledger.Ledger
	model  *model.State
	folded ledger.Ledger
	copied ledger.Ledger
	at     words.Time
	saw    map[string]int

	amounts []words.Amount
}

var (
	parties = []string{"ann", "bob", "cy", "dee", "eve"}
	assets  = []string{"EUR", "USD", "ann"} // an asset may be called like an account
	tenants = []words.Tenant{1, 2, 3}
)

const day = words.Time(86_400_000)

func power(n uint) words.Amount { // 2^n
	if n < 64 {
		return words.Amount{Lo: 1 << n}
	}
	return words.Amount{Hi: 1 << (n - 64)}
}

func most() words.Amount { return words.Amount{Hi: 1<<64 - 1, Lo: 1<<64 - 1} }

func less(a words.Amount) words.Amount { b, _ := a.Minus(words.Units(1)); return b }

func whole(a words.Amount) *big.Int {
	n, ok := new(big.Int).SetString(a.String(), 10)
	words.Assert(ok, "an amount is no number")
	return n
}

// newTwins begins with small limits on room and, by scale, small or enormous ceilings.
func newTwins(t tb, pick chance) *twins {
	l := ledger.Limits{Accounts: 7, Holdings: 9, Assets: 5, Tenants: 2, TenantAccounts: 4, TenantHoldings: 5, TenantAssets: 2,
		Amount: words.Units(100), Day: words.Units(110), IssueDay: words.Units(250)}
	amounts := []words.Amount{words.Units(1), words.Units(30), words.Units(60), words.Units(100), words.Units(101)}
	if pick(3) == 0 {
		l.Amount, l.Day, l.IssueDay = most(), most(), most()
		amounts = []words.Amount{words.Units(1), less(power(64)), power(64), power(126), less(power(127)), power(127), most()}
	}
	if pick(4) == 0 {
		l.TenantAccounts, l.TenantHoldings, l.TenantAssets = 9, 9, 9 // then the node's are the first to be met
	}
	seed := words.Hash64(pick(1 << 30))
	m := model.Limits{Tenants: l.Tenants, Accounts: l.Accounts, Holdings: l.Holdings, Assets: l.Assets,
		TenantAccounts: l.TenantAccounts, TenantHoldings: l.TenantHoldings, TenantAssets: l.TenantAssets,
		Amount: whole(l.Amount), Day: whole(l.Day), IssueDay: whole(l.IssueDay), Supply: whole(words.MaxSupply())}
	return &twins{tb: t, pick: pick, amounts: amounts, live: ledger.New(l, seed), model: model.New(m), folded: ledger.New(l, seed+1),
		copied: ledger.New(ledger.Limits{}, 0), at: words.Time(pick(3)) * day, saw: map[string]int{}}
}

// asks draws an operation that the door lets in.
func (w *twins) asks() model.Op {
	low := func(n int) int { return min(w.pick(n), w.pick(n), w.pick(n)) } // so that some see much
	o := model.Op{At: w.at, Tenant: tenants[low(len(tenants))], Kind: []string{"issue", "issue", "transfer", "burn"}[w.pick(4)],
		From: parties[low(len(parties))], To: parties[w.pick(len(parties))], Asset: assets[low(len(assets))]}
	if o.Kind == "issue" {
		o.From = ""
	}
	if o.Kind == "burn" {
		o.To = ""
	}
	if o.From == o.To {
		o.To = parties[0]
		if o.From == o.To {
			o.To = parties[1]
		}
	}
	if o.Kind != "issue" {
		_, next := w.model.Balance(o.Tenant, o.From, o.Asset)
		o.Nonce = next
		switch w.pick(8) {
		case 0:
			o.Nonce++
		case 1:
			o.Nonce = max(1, next-1)
		}
	}
	o.Amount = whole(w.amounts[w.pick(len(w.amounts))])
	if o.Kind != "issue" && w.pick(2) == 0 { // what there is, or a little more or less
		o.Amount, _ = w.model.Balance(o.Tenant, o.From, o.Asset)
		if o.Amount.Add(o.Amount, big.NewInt(int64(w.pick(3))-1)).Sign() <= 0 {
			o.Amount.SetInt64(1)
		}
	}
	return o
}

func (w *twins) record(o model.Op) *record.Record {
	name := func(s string) (n words.Name) {
		if s != "" {
			n = words.Name{ID: digest.Name([]byte(s)), Text: []byte(s)}
		}
		return n
	}
	amount, err := words.ParseAmount(o.Amount.String())
	if err != nil {
		w.Fatalf("%v is no amount", o.Amount)
	}
	return &record.Record{Kind: record.Moved, Op: map[string]event.Op{"issue": event.Issue, "transfer": event.Transfer, "burn": event.Burn}[o.Kind],
		Tenant: o.Tenant, Key: name("k"), From: name(o.From), To: name(o.To), Asset: name(o.Asset), Amount: amount, Nonce: o.Nonce}
}

// step asks both the same, and holds that they say the same, have the same, and that
// what was recorded is enough to know it.
func (w *twins) step() {
	w.Helper()
	if w.pick(20) == 0 {
		w.at += words.Time(w.pick(int(day) + 1))
	}
	if w.pick(10) == 0 {
		w.live.CopyTo(&w.copied)
		if w.copied.Hash() != w.live.Hash() {
			w.Fatalf("a copy hashes to %x, not to %x", w.copied.Hash(), w.live.Hash())
		}
		w.live, w.copied = w.copied, w.live // what was copied stays behind, and lives
	}
	left := w.copied.Hash()

	o := w.asks()
	r, was := w.record(o), w.live.Hash()
	_, next := w.model.Balance(o.Tenant, o.From, o.Asset)
	fits := w.model.Fits(o)
	why := w.live.Decide(w.at, r)
	if w.live.Hash() != was {
		w.Fatalf("%+v: deciding changed the ledger", o)
	}
	if want := w.model.Do(o); reasons[why] != want {
		w.Fatalf("%+v: %q (%v), the twin says %q", o, reasons[why], why, want)
	}
	w.saw[reasons[why]]++
	if got := w.live.Fits(r); got != fits && (why == event.None || why == event.TooMany) {
		w.Fatalf("%+v: fits %v, the twin says %v", o, got, fits)
	}
	if why != event.None {
		if o.Kind != "issue" && r.Nonce != next {
			w.Fatalf("%+v: %v, expected nonce %d, the twin expects %d", o, why, r.Nonce, next)
		}
	} else {
		w.outcome(o, r)
		w.follows(r)
		w.live.Apply(w.at, r)
		w.fold(r)
	}
	w.same(o.Tenant)
	if w.copied.Hash() != left {
		w.Fatalf("a copy changed with its original")
	}
}

// outcome holds what a record says against the twin after it.
func (w *twins) outcome(o model.Op, r *record.Record) {
	issued, burned := w.model.Supply(o.Tenant, o.Asset)
	from, _ := w.model.Balance(o.Tenant, o.From, o.Asset)
	to, _ := w.model.Balance(o.Tenant, o.To, o.Asset)
	if o.Kind == "issue" {
		from = issued
	}
	if o.Kind == "burn" {
		to = burned
	}
	if whole(r.FromNow).Cmp(from) != 0 || whole(r.ToNow).Cmp(to) != 0 || whole(r.Spent).Cmp(w.model.Left(o)) != 0 ||
		r.Seq != w.model.Seq(o.Tenant) || r.Nonce != o.Nonce {
		w.Fatalf("%+v: recorded %v, %v, %v, seq %d; the twin has %v, %v, %v, seq %d",
			o, r.FromNow, r.ToNow, r.Spent, r.Seq, from, to, w.model.Left(o), w.model.Seq(o.Tenant))
	}
}

// follows holds that the outcome follows from what is there, and no other does.
func (w *twins) follows(r *record.Record) {
	if why := w.live.Follows(r); why != nil {
		w.Fatalf("%v: %v", r, why)
	}
	other := *r
	what := []string{"nonce", "seq", "amount", "nothing", "from", "to"}[w.pick(6)]
	switch what {
	case "nonce":
		other.Nonce++
	case "seq":
		other.Seq++
	case "amount":
		other.Amount.Lo ^= 1
	case "nothing": // and books that agree
		other.Amount = words.Amount{}
		other.ToNow, _ = r.ToNow.Minus(r.Amount)
		if other.FromNow, _ = r.FromNow.Plus(r.Amount); r.Op == event.Issue {
			other.FromNow, _ = r.FromNow.Minus(r.Amount)
		}
	case "from":
		other.FromNow.Hi ^= 1
	case "to":
		other.ToNow.Lo ^= 1
	}
	if why := w.live.Follows(&other); !errors.Is(why, ledger.ErrFollows) {
		w.Fatalf("%v with another %s: %v", r, what, why)
	}
}

// fold applies the record as it is read from a journal; and once more, because a
// snapshot may hold already what is folded onto it.
func (w *twins) fold(r *record.Record) {
	var read record.Record
	body, _ := record.Add(record.Begin(nil, 1, w.at), 0, r)
	if _, err := record.Read(body, 0, &read); err != nil {
		w.Fatalf("%v", err)
	}
	read.Identify()
	w.folded.Apply(w.at, &read)
	if w.pick(4) == 0 {
		w.folded.Apply(w.at, &read)
	}
	if w.folded.Hash() != w.live.Hash() {
		w.Fatalf("folded, the ledger hashes to %x, not to %x", w.folded.Hash(), w.live.Hash())
	}
}

// same holds the books of a tenant against the twin's.
func (w *twins) same(t words.Tenant) {
	if err := errors.Join(w.live.Check(), w.copied.Check()); err != nil {
		w.Fatalf("%v", err)
	}
	for _, asset := range assets {
		for _, account := range parties {
			got, next := w.live.Balance(t, digest.Name([]byte(account)), digest.Name([]byte(asset)))
			want, after := w.model.Balance(t, account, asset)
			if whole(got).Cmp(want) != 0 || next != after {
				w.Fatalf("tenant %d: %s has %v %s and nonce %d, the twin says %v and %d", t, account, got, asset, next, want, after)
			}
		}
		issued, burned := w.live.Supply(t, digest.Name([]byte(asset)))
		in, out := w.model.Supply(t, asset)
		if whole(issued).Cmp(in) != 0 || whole(burned).Cmp(out) != 0 {
			w.Fatalf("tenant %d: %v %s issued, %v burned; the twin says %v and %v", t, issued, asset, burned, in, out)
		}
	}
	if w.live.Seq(t) != w.model.Seq(t) || w.live.Accounts() != w.model.Accounts() {
		w.Fatalf("tenant %d: seq %d of %d accounts, the twin has %d of %d", t, w.live.Seq(t), w.live.Accounts(), w.model.Seq(t), w.model.Accounts())
	}
}

// TestAgrees walks a ledger and its twin through the same random life.
func TestAgrees(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newTwins(t, func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "pick") })
		t.Repeat(map[string]func(*rapid.T){"step": func(*rapid.T) { w.step() }})
	})
}

// TestAgreesOnAll: of the lives that everybody walks, none of the answers is missing.
func TestAgreesOnAll(t *testing.T) {
	saw := map[string]int{}
	for seed := range uint64(40) {
		dice := words.NewDice(seed)
		w := newTwins(t, func(n int) int { return int(dice.Below(uint64(n))) })
		for range 150 {
			w.step()
		}
		for why, n := range w.saw {
			saw[why] += n
		}
	}
	for p, why := range reasons {
		if saw[why] < 10 {
			t.Errorf("%q (%v) was said %d times: %v", why, p, saw[why], saw)
		}
	}
	t.Log(saw)
}
