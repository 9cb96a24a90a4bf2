package kill

import (
	"encoding/json"
	"math/big"
	"strings"
	"time"

	"macronode/core/event"
	"macronode/core/receipt"
	"macronode/core/words"
	"macronode/models/ledger"
)

// twin answers what clients ask, as the contract says and in the journal's order: the
// dumb ledger, with each answer's words around it.
type twin struct {
	found *memory
	books *ledger.State
	refs  map[string]bool
}

// newTwin has no limit that these clients meet.
func newTwin(found *memory) *twin {
	const room = 1 << 20
	much := new(big.Int).Lsh(big.NewInt(1), 100)
	return &twin{found: found, refs: map[string]bool{}, books: ledger.New(ledger.Limits{Tenants: room, Accounts: room, Holdings: room, Assets: room,
		Holds: room, TenantAccounts: room, TenantHoldings: room, TenantAssets: room, TenantHolds: room, AccountHolds: room,
		HoldFor: words.HoldFor.Milliseconds(), Amount: much, Day: much, IssueDay: much, Supply: much})}
}

// item is one operation, as a body has it.
type item struct {
	Op, From, To, Asset, Ref string
	Amount                   string `json:"amount_minor"`
	Nonce                    uint64
	Expires                  string `json:"expires_at"`

	hold words.TxID
}

func (w *twin) Step(at words.Place, q *ask) (answer string, changed bool) {
	if q.path == balancePath {
		return w.balance(q.body).String(), false
	}
	was := w.books.Seq(words.DefaultTenant)
	if q.path == "/v1/batch" {
		answer = w.batch(at, q)
	} else {
		answer = w.one(at, single(q)).String()
	}
	return answer, w.books.Seq(words.DefaultTenant) != was
}

func (w *twin) balance(account string) balance {
	has, next := w.books.Balance(words.DefaultTenant, account, "EUR/2")
	held := w.books.Kept(0, words.DefaultTenant, account, "EUR/2")
	return balance{Seq: w.books.Seq(words.DefaultTenant), Amount: has.String(), Held: held.String(),
		Available: new(big.Int).Sub(has, held).String(), Next: uint64(next)}
}

// batch does its items in order, one record each behind its own. Those of ours fail alone
// or not at all.
func (w *twin) batch(at words.Place, q *ask) string {
	var asked struct{ Items []item }
	parse(q.body, &asked)
	var lines []string
	for _, i := range asked.Items {
		at.Index++
		lines = append(lines, w.one(at, i).String())
	}
	return strings.Join(lines, "; ")
}

// single is the one operation of a request that is no batch.
func single(q *ask) (i item) {
	parse(q.body, &i)
	parts := strings.Split(q.path, "/")
	i.Op = parts[len(parts)-1]
	if len(parts) == 5 { // /v1/holds/{hold_id}/capture
		hold, err := receipt.ParseHoldID(parts[3])
		words.Assert(err == nil, "a hold that is none")
		i.hold = hold
	}
	if i.Op == "holds" {
		i.Op = "hold"
	}
	return i
}

// one does an operation whose record stands at a place.
func (w *twin) one(at words.Place, i item) told {
	id := words.NewTxID(w.found.journal, at)
	o := ledger.Op{At: w.found.times[at.LSN], Tenant: words.DefaultTenant, Kind: i.Op, From: i.From, To: i.To, Asset: i.Asset,
		Nonce: words.Nonce(i.Nonce), Hold: i.hold}
	if i.Amount != "" {
		o.Amount, _ = new(big.Int).SetString(i.Amount, 10)
	}
	switch i.Op {
	case "hold":
		until, err := time.Parse(time.RFC3339, i.Expires)
		words.Assert(err == nil, "a time that is none")
		o.Hold, o.Until = id, words.Time(until.UnixMilli())
	case "capture", "release":
		h, _ := w.books.Hold(i.hold)
		o.From, o.Asset = h.From, h.Asset
		if i.Op == "release" {
			i.To, i.Amount = h.To, h.Amount.String()
		}
	}
	if why := w.why(o, i.Ref); why != event.None {
		return told{at: at, Code: why.Code(), Expected: w.expected(o)}
	}
	t := told{at: at, Op: i.Op, From: o.From, To: i.To, Asset: o.Asset, Ref: i.Ref, Amount: i.Amount, Nonce: i.Nonce,
		Seq: w.books.Seq(words.DefaultTenant), Expires: i.Expires}
	if o.Hold != (words.TxID{}) {
		name := receipt.HoldID(o.Hold)
		t.Hold = string(name[:])
	}
	return t
}

// why does o, or says why not.
func (w *twin) why(o ledger.Op, ref string) event.Problem {
	if ref != "" && w.refs[ref] {
		return event.RefUsed
	}
	why, known := map[string]event.Problem{"": event.None, "nonce ahead": event.NonceAhead, "nonce used": event.NonceUsed,
		"funds": event.InsufficientFunds, "hold": event.HoldState, "over hold": event.OverHold, "expiry": event.BadExpiry}[w.books.Do(o)]
	words.Assert(known, "a refusal that these clients do not meet")
	if why == event.None && ref != "" {
		w.refs[ref] = true
	}
	return why
}

// expected is the nonce that the refusal of a payment tells.
func (w *twin) expected(o ledger.Op) uint64 {
	if o.Nonce == 0 {
		return 0
	}
	_, next := w.books.Balance(o.Tenant, o.From, o.Asset)
	return uint64(next)
}

// parse reads what a client of ours wrote.
func parse(body string, into any) {
	words.Assert(json.Unmarshal([]byte(body), into) == nil, "a client that writes no JSON")
}
