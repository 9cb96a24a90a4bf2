// Package refmodel is a reference model of the wallet's API: the model of the ledger with the
// answers around it, in the order of the journal. It shares no code with the node except
// core/types.
package refmodel

import (
	"math/big"
	"slices"
	"strings"
	"time"

	"macronode/core/types"
	"macronode/models/ledger"
)

// A Kind is the kind of a call.
type Kind uint8

const (
	Single Kind = iota + 1 // one operation
	Batch                  // several operations
	Look                   // a balance; changes nothing
	Lapse                  // of the node itself: a hold expires
)

// An Ask is a call.
type Ask struct {
	Kind   Kind
	Tenant types.Tenant
	Atomic bool       // an atomic batch
	Items  []Item     // of a Look, the account and its asset; of a Lapse, the hold
	At     types.Time // of a Look: the time of the frame that it saw
}

// An Item is an operation, as in a request body.
type Item struct {
	Op, From, To, Asset, Ref string
	Amount                   string // digits; may be empty
	Nonce                    types.Nonce
	Until                    types.Time
	Hold                     types.TxID // the hold that is captured or released; its holder may be omitted
}

// Frames tell of each frame what answers have of it.
type Frames interface {
	Journal(types.LSN) types.JournalID // that it was written to
	Time(types.LSN) types.Time
}

// A Model has the ledgers of all tenants, and the refs.
type Model struct {
	frames Frames
	books  *ledger.State
	refs   map[ref]types.TxID // records that have them
}

type ref struct {
	tenant types.Tenant
	name   string
}

// New returns an empty model.
func New(l ledger.Limits, frames Frames) *Model {
	return &Model{frames: frames, books: ledger.New(l), refs: map[ref]types.TxID{}}
}

// Step makes a call whose record is at a position, and returns the expected answer.
func (w *Model) Step(at types.Position, q *Ask) (answer string, changed bool) {
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

func (w *Model) balance(q *Ask) Balance {
	account, asset := q.Items[0].From, q.Items[0].Asset
	has, next := w.books.Balance(q.Tenant, account, asset)
	held := w.books.Kept(q.At, q.Tenant, account, asset)
	return Balance{Seq: w.books.Seq(q.Tenant), Amount: has.String(), Held: held.String(),
		Available: new(big.Int).Sub(has, held).String(), Next: uint64(next)}
}

// batch does its items in order, with a record each after its own. If an item of an atomic batch
// is rejected, the answer is its problem and nothing is done.
func (w *Model) batch(at types.Position, q *Ask) string {
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

// one does an operation whose record is at a position.
func (w *Model) one(at types.Position, of types.Tenant, i Item) Outcome {
	id := types.NewTxID(w.frames.Journal(at.LSN), at)
	o := ledger.Op{At: w.frames.Time(at.LSN), Tenant: of, Kind: i.Op, From: i.From, To: i.To, Asset: i.Asset,
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
	owner, used := w.refs[ref{of, i.Ref}]
	if i.Ref != "" && used {
		return Outcome{At: at, Code: "ref_used", Used: owner}
	}
	if why := w.books.Do(o); why != "" {
		return Outcome{At: at, Code: codes[why], Expected: w.expected(o)}
	}
	if i.Ref != "" {
		w.refs[ref{of, i.Ref}] = id
	}
	t := Outcome{At: at, Op: i.Op, From: o.From, To: i.To, Asset: o.Asset, Ref: i.Ref, Amount: i.Amount, Nonce: uint64(i.Nonce),
		Seq: w.books.Seq(of), Hold: o.Hold}
	if i.Op == "hold" {
		t.Expires = time.UnixMilli(int64(i.Until)).UTC().Format("2006-01-02T15:04:05.000Z")
	}
	return t
}

// inItself is the code of an atomic batch in which two items have the same ref.
const inItself = "bad_request"

// codes maps the problems of the ledger to those of the API.
var codes = map[string]string{"nonce ahead": "nonce_conflict", "nonce used": "nonce_conflict", "amount": "limits_exceeded",
	"supply": "limits_exceeded", "day": "limits_exceeded", "room": "limits_exceeded", "funds": "insufficient_funds",
	"over hold": "insufficient_funds", "hold": "hold_not_active", "beneficiary": "not_beneficiary", "frozen": "account_frozen", "expiry": "bad_request"}

// expected returns the expected nonce of a rejected debit.
func (w *Model) expected(o ledger.Op) uint64 {
	if o.Nonce == 0 {
		return 0
	}
	_, next := w.books.Balance(o.Tenant, o.From, o.Asset)
	return uint64(next)
}
