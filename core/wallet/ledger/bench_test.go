package ledger_test

import (
	"encoding/binary"
	"testing"

	"macronode/core/digest"
	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/types"
	"macronode/core/wallet/ledger"
)

// The benchmarks decide and apply one operation on random accounts.
func BenchmarkTransfer(b *testing.B) { sizes(b, (*crowd).transfer) }
func BenchmarkHold(b *testing.B)     { sizes(b, (*crowd).hold) } // and its capture
func BenchmarkLapse(b *testing.B)    { sizes(b, (*crowd).expire) }
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

// crowd is a ledger of accounts with money and a hold each.
type crowd struct {
	*testing.B
	ledger ledger.Ledger
	asset  types.Name
	ids    []types.NameHash
	nonces []types.Nonce
	dice   types.Rand
	at     types.Time
	opened types.LSN
	batch  []int // payers of the batch
	rec    record.Record
}

func newCrowd(b *testing.B, n int) *crowd {
	most := types.MaxSupply()
	w := &crowd{B: b, asset: types.Name{ID: digest.Name([]byte("EUR")), Text: []byte("EUR")}, dice: types.NewRand(7),
		ids: make([]types.NameHash, n), nonces: make([]types.Nonce, n)}
	w.ledger = ledger.New(ledger.Limits{Accounts: n, Holdings: n, Assets: 1, Tenants: 1, Holds: n + 1, TenantAccounts: n, TenantHoldings: n,
		TenantAssets: 1, TenantHolds: n + 1, MaxAmount: most, MaxDailyDebit: most, MaxDailyIssue: most}, 12345)
	for i := range w.ids {
		w.ids[i] = digest.Name(binary.AppendUvarint(nil, uint64(i)))
		w.commit(record.Record{Op: event.Issue, To: types.Name{ID: w.ids[i]}, Amount: types.MinorUnits(1 << 40)})
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

func (w *crowd) id() types.TxID { return types.NewTxID(1, types.Position{LSN: w.opened}) }

func (w *crowd) pick() (from, to int) {
	n := uint64(len(w.ids))
	a := w.dice.Uint64n(n)
	return int(a), int((a + 1 + w.dice.Uint64n(n-1)) % n)
}

// open holds an amount of an account, for about a day.
func (w *crowd) open(from int) {
	w.nonces[from]++
	w.opened++
	w.commit(record.Record{Op: event.Hold, From: types.Name{ID: w.ids[from]}, Amount: types.MinorUnits(2), Nonce: w.nonces[from],
		ExpiresAt: w.at + 86_400_000 + types.Time(w.dice.Uint64n(86_400_000))})
}

func (w *crowd) transfer() {
	from, to := w.pick()
	w.nonces[from]++
	w.commit(record.Record{Op: event.Transfer, From: types.Name{ID: w.ids[from]}, To: types.Name{ID: w.ids[to]}, Amount: types.MinorUnits(1), Nonce: w.nonces[from]})
}

func (w *crowd) hold() {
	from, to := w.pick()
	w.open(from)
	w.commit(record.Record{Op: event.Capture, From: types.Name{ID: w.ids[from]}, To: types.Name{ID: w.ids[to]}, Amount: types.MinorUnits(1), Hold: w.id()})
}

// expire expires the next hold and opens another.
func (w *crowd) expire() {
	w.at += 200_000_000
	if !w.ledger.ExpireNextHold(w.at, &w.rec) {
		w.Fatal("no hold has expired")
	}
	w.ledger.Apply(w.at, types.TxID{}, &w.rec)
	from, _ := w.pick()
	w.open(from)
}

func (w *crowd) undo() {
	if len(w.batch) == 0 {
		w.ledger.Savepoint()
	}
	from, to := w.pick()
	w.nonces[from]++
	w.batch = append(w.batch, from)
	w.commit(record.Record{Op: event.Transfer, From: types.Name{ID: w.ids[from]}, To: types.Name{ID: w.ids[to]}, Amount: types.MinorUnits(1), Nonce: w.nonces[from]})
	if len(w.batch) < 50 {
		return
	}
	w.ledger.Undo()
	for _, from := range w.batch {
		w.nonces[from]--
	}
	w.batch = w.batch[:0]
}
