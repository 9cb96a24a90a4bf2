// Package twin answers what clients ask about money, as the contract says and in the
// journal's order: the dumb ledger, with the words of each answer around it. It shares no
// code with what it is held against but core/types.
package twin

import (
	"math/big"
	"slices"
	"strings"
	"time"

	"macronode/core/types"
	"macronode/models/ledger"
)

// A Kind says what is asked.
type Kind uint8

const (
	Single Kind = iota + 1 // one operation
	Batch                  // several
	Look                   // at a balance; nothing moves
	Lapse                  // the node's own: a hold is over
)

// An Ask is what somebody asked.
type Ask struct {
	Kind   Kind
	Tenant types.Tenant
	Atomic bool       // a batch of all or nothing
	Items  []Item     // of a Look the account and its asset, of a Lapse the hold
	At     types.Time // of a Look: of the frame that it saw
}

// An Item is one operation, in the words of a body.
type Item struct {
	Op, From, To, Asset, Ref string
	Amount                   string // digits; empty where none is said
	Nonce                    types.Nonce
	Until                    types.Time
	Hold                     types.TxID // that is captured or released; its holder may be left out
}

// A Twin is everybody's money, and what became of refs.
type Twin struct {
	Journal types.JournalID
	Time    func(types.LSN) types.Time // of a frame

	books *ledger.State
	refs  map[ref]types.TxID // who has them
}

type ref struct {
	tenant types.Tenant
	name   string
}

// New has seen nothing.
func New(l ledger.Limits, journal types.JournalID, time func(types.LSN) types.Time) *Twin {
	return &Twin{Journal: journal, Time: time, books: ledger.New(l), refs: map[ref]types.TxID{}}
}

// Step does what is asked, of a record at a place, and says what should be answered.
func (w *Twin) Step(at types.Position, q *Ask) (answer string, changed bool) {
	was := w.books.Seq(q.Tenant)
	switch q.Kind {
	case Look:
		return w.balance(q).String(), false
	case Lapse:
		if _, active := w.books.Hold(q.Items[0].Hold); !active {
			return "no such hold", false
		}
		w.books.Lapse(q.Items[0].Hold)
	case Batch:
		answer = w.batch(at, q)
	default:
		answer = w.one(at, q.Tenant, q.Items[0]).String()
	}
	return answer, w.books.Seq(q.Tenant) != was
}

func (w *Twin) balance(q *Ask) Balance {
	account, asset := q.Items[0].From, q.Items[0].Asset
	has, next := w.books.Balance(q.Tenant, account, asset)
	held := w.books.Kept(q.At, q.Tenant, account, asset)
	return Balance{Seq: w.books.Seq(q.Tenant), Amount: has.String(), Held: held.String(),
		Available: new(big.Int).Sub(has, held).String(), Next: uint64(next)}
}

// batch does its items in order, one record each behind its own. One of all or nothing is
// the problem of the first that is refused, and then nothing of it was done.
func (w *Twin) batch(at types.Position, q *Ask) string {
	before := w.books
	if q.Atomic {
		w.books = before.Clone()
	}
	var lines []string
	var named []ref
	for n, i := range q.Items {
		t := w.one(types.Position{LSN: at.LSN, Index: at.Index + 1 + uint16(n)}, q.Tenant, i)
		if q.Atomic && t.Code != "" {
			w.books = before
			for _, r := range named {
				delete(w.refs, r)
			}
			if slices.Contains(named, ref{q.Tenant, i.Ref}) {
				t.Code = inItself
			}
			t.At, t.Index = at, uint16(n)
			return t.String()
		}
		if i.Ref != "" && t.Code == "" {
			named = append(named, ref{q.Tenant, i.Ref})
		}
		lines = append(lines, t.String())
	}
	return strings.Join(lines, "; ")
}

// one does an operation whose record stands at a place.
func (w *Twin) one(at types.Position, of types.Tenant, i Item) Told {
	id := types.NewTxID(w.Journal, at)
	o := ledger.Op{At: w.Time(at.LSN), Tenant: of, Kind: i.Op, From: i.From, To: i.To, Asset: i.Asset,
		Nonce: i.Nonce, Until: i.Until, Hold: i.Hold}
	if i.Amount != "" {
		o.Amount, _ = new(big.Int).SetString(i.Amount, 10)
	}
	if i.Op == "hold" {
		o.Hold = id
	}
	h, _ := w.books.Hold(i.Hold)
	if i.Op == "release" {
		i.Amount = h.Amount.String()
	}
	if i.From == "" && i.Hold != (types.TxID{}) {
		o.From, o.Asset = h.From, h.Asset
	}
	who, used := w.refs[ref{of, i.Ref}]
	if i.Ref != "" && used {
		return Told{At: at, Code: "ref_used", Used: who}
	}
	if why := w.books.Do(o); why != "" {
		return Told{At: at, Code: codes[why], Expected: w.expected(o)}
	}
	if i.Ref != "" {
		w.refs[ref{of, i.Ref}] = id
	}
	t := Told{At: at, Op: i.Op, From: o.From, To: i.To, Asset: o.Asset, Ref: i.Ref, Amount: i.Amount, Nonce: uint64(i.Nonce),
		Seq: w.books.Seq(of), Hold: o.Hold}
	if i.Op == "hold" {
		t.Expires = time.UnixMilli(int64(i.Until)).UTC().Format("2006-01-02T15:04:05.000Z")
	}
	return t
}

// inItself is the code of an atomic batch in which two items have one ref.
const inItself = "bad_request"

// codes are how the contract calls what the books say.
var codes = map[string]string{"nonce ahead": "nonce_conflict", "nonce used": "nonce_conflict", "amount": "limits_exceeded",
	"supply": "limits_exceeded", "day": "limits_exceeded", "room": "limits_exceeded", "funds": "insufficient_funds",
	"over hold": "insufficient_funds", "hold": "hold_not_active", "beneficiary": "not_beneficiary", "frozen": "account_frozen", "expiry": "bad_request"}

// expected is the nonce that the refusal of a payment tells.
func (w *Twin) expected(o ledger.Op) uint64 {
	if o.Nonce == 0 {
		return 0
	}
	_, next := w.books.Balance(o.Tenant, o.From, o.Asset)
	return uint64(next)
}
