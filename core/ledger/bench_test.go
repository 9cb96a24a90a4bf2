package ledger_test

import (
	"encoding/binary"
	"testing"

	"macronode/core/digest"
	"macronode/core/event"
	"macronode/core/ledger"
	"macronode/core/record"
	"macronode/core/words"
)

// The cost of one decision that is applied, between any two of so many accounts.
func BenchmarkTransfer(b *testing.B) { sizes(b, (*crowd).transfer) }
func BenchmarkHold(b *testing.B)     { sizes(b, (*crowd).hold) } // and its capture
func BenchmarkLapse(b *testing.B)    { sizes(b, (*crowd).lapse) }
func BenchmarkUndo(b *testing.B)     { sizes(b, (*crowd).undo) } // of one transfer, in a batch of 50

func sizes(b *testing.B, one func(*crowd)) {
	for _, c := range []struct {
		name string
		n    int
	}{{"1k", 1_000}, {"1M", 1_000_000}} {
		b.Run(c.name, func(b *testing.B) {
			w := newCrowd(b, c.n)
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				one(w)
			}
		})
	}
}

// crowd are accounts with money, and with a hold each.
type crowd struct {
	*testing.B
	ledger ledger.Ledger
	asset  words.Name
	ids    []words.ID
	nonces []words.Nonce
	dice   words.Dice
	at     words.Time
	opened words.LSN
	batch  []int // who paid in it
	rec    record.Record
}

func newCrowd(b *testing.B, n int) *crowd {
	most := words.MaxSupply()
	w := &crowd{B: b, asset: words.Name{ID: digest.Name([]byte("EUR")), Text: []byte("EUR")}, dice: words.NewDice(7),
		ids: make([]words.ID, n), nonces: make([]words.Nonce, n)}
	w.ledger = ledger.New(ledger.Limits{Accounts: n, Holdings: n, Assets: 1, Tenants: 1, Holds: n + 1, TenantAccounts: n, TenantHoldings: n,
		TenantAssets: 1, TenantHolds: n + 1, Amount: most, Day: most, IssueDay: most}, 12345)
	for i := range w.ids {
		w.ids[i] = digest.Name(binary.AppendUvarint(nil, uint64(i)))
		w.commit(record.Record{Op: event.Issue, To: words.Name{ID: w.ids[i]}, Amount: words.Units(1 << 40)})
	}
	for i := range w.ids {
		w.open(i)
	}
	return w
}

// commit decides and applies.
func (w *crowd) commit(r record.Record) {
	w.rec = r
	w.rec.Tenant, w.rec.Asset = 1, w.asset
	if why := w.ledger.Decide(w.at, &w.rec); why != event.None {
		w.Fatal(why)
	}
	w.ledger.Apply(w.at, w.id(), &w.rec)
}

func (w *crowd) id() words.TxID { return words.NewTxID(1, words.Place{LSN: w.opened}) }

func (w *crowd) pick() (from, to int) {
	n := uint64(len(w.ids))
	a := w.dice.Below(n)
	return int(a), int((a + 1 + w.dice.Below(n-1)) % n)
}

// open holds something of an account, for a day or so.
func (w *crowd) open(from int) {
	w.nonces[from]++
	w.opened++
	w.commit(record.Record{Op: event.Hold, From: words.Name{ID: w.ids[from]}, Amount: words.Units(2), Nonce: w.nonces[from],
		Until: w.at + 86_400_000 + words.Time(w.dice.Below(86_400_000))})
}

func (w *crowd) transfer() {
	from, to := w.pick()
	w.nonces[from]++
	w.commit(record.Record{Op: event.Transfer, From: words.Name{ID: w.ids[from]}, To: words.Name{ID: w.ids[to]}, Amount: words.Units(1), Nonce: w.nonces[from]})
}

func (w *crowd) hold() {
	from, to := w.pick()
	w.open(from)
	w.commit(record.Record{Op: event.Capture, From: words.Name{ID: w.ids[from]}, To: words.Name{ID: w.ids[to]}, Amount: words.Units(1), Hold: w.id()})
}

// lapse ends the hold that ends first, and opens another.
func (w *crowd) lapse() {
	w.at += 200_000_000
	if !w.ledger.Overdue(w.at, &w.rec) {
		w.Fatal("nothing is overdue")
	}
	w.ledger.Apply(w.at, words.TxID{}, &w.rec)
	from, _ := w.pick()
	w.open(from)
}

func (w *crowd) undo() {
	if len(w.batch) == 0 {
		w.ledger.Mark()
	}
	from, to := w.pick()
	w.nonces[from]++
	w.batch = append(w.batch, from)
	w.commit(record.Record{Op: event.Transfer, From: words.Name{ID: w.ids[from]}, To: words.Name{ID: w.ids[to]}, Amount: words.Units(1), Nonce: w.nonces[from]})
	if len(w.batch) < 50 {
		return
	}
	w.ledger.Undo()
	for _, from := range w.batch {
		w.nonces[from]--
	}
	w.batch = w.batch[:0]
}
