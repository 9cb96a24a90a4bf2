package snapshot_test

import (
	"context"
	"flag"
	"fmt"
	"syscall"
	"testing"
	"time"

	"macronode/adapters/fs"
	"macronode/adapters/journalfile"
	"macronode/adapters/snapshot"
	"macronode/core/event"
	"macronode/core/idempotency"
	"macronode/core/record"
	"macronode/core/state"
	"macronode/core/types"
	"macronode/core/wallet/ledger"
)

var benched = flag.Int("frames", 100_000, "frames of the measured journal; published numbers use a million")

// wide are the default limits of a node.
func wide(keys int) state.Limits {
	most := types.MaxSupply()
	return state.Limits{
		Ledger: ledger.Limits{Accounts: 100_000, Holdings: 100_000, Assets: 1000, Tenants: 100, TenantAccounts: 100_000, TenantHoldings: 100_000,
			TenantAssets: 1000, Holds: 1000, TenantHolds: 1000, MaxAmount: most, MaxDailyDebit: most, MaxDailyIssue: most},
		Idempotency: idempotency.Limits{Keys: 1_000_000, PerTenant: keys, Tenants: 100, TTL: 24 * time.Hour},
		Keys:        100,
	}
}

// busy writes a journal of transfers among a thousand accounts. A number of their keys stay in
// the window, as on a node whose index keeps up.
func busy(b *testing.B, dir fs.FS, frames, keys int) {
	b.Helper()
	j, _, err := journalfile.Recover(dir, ours, nil)
	must(b, err)
	st := state.New(wide(keys), 1)
	r := record.Record{Kind: record.Started, Journal: ours}
	var arena []byte
	var batch []event.Frame
	frame := func() {
		lsn, off := st.LSN+1, uint32(len(arena))
		st.Open(lsn, types.Time(lsn))
		arena = record.Begin(arena, lsn, types.Time(lsn))
		if r.Kind != record.Started && r.Kind != record.KeysForgotten {
			if why := st.Wallet.Ledger.Decide(types.Time(lsn), &r); why != event.None {
				b.Fatal(why)
			}
		}
		arena, _ = record.Add(arena, off, &r)
		st.Apply(0, &r)
		if batch = append(batch, event.Frame{LSN: lsn, Off: off, Len: uint32(len(arena)) - off}); len(batch) < 1000 && int(lsn) < frames {
			return
		}
		_, err := j.Write(arena, batch)
		must(b, err)
		_, err = j.Sync()
		must(b, err)
		arena, batch = arena[:0], batch[:0]
	}
	frame()
	nonces := make([]types.Nonce, 1000)
	for n := 0; int(st.LSN) < frames; n++ {
		if st.Idempotency.Len() >= keys {
			r = record.Record{Kind: record.KeysForgotten, Upto: st.Idempotency.ForgottenTo() + 100}
			frame()
			continue
		}
		from, to := n%1000, (n*7+1)%1000
		r = record.Record{Op: event.Transfer, Tenant: 1, Key: name("payment-2024-%09d", n), From: name("customer:%09d", from), To: name("customer:%09d", to),
			Asset: name("EUR/2"), Amount: types.MinorUnits(1)}
		if r.Nonce = nonces[from] + 1; n < 1000 {
			r.Op, r.Nonce, r.To, r.From, r.Amount = event.Issue, 0, r.From, types.Name{}, types.MinorUnits(1_000_000)
		} else {
			nonces[from]++
		}
		frame()
	}
	must(b, j.Close())
}

func behind(dir fs.FS) func(snapshot.Head, types.LSN, func([]record.Sealed) error) error {
	return func(h snapshot.Head, upto types.LSN, each func([]record.Sealed) error) error {
		_, err := journalfile.Reading{From: journalfile.From{LSN: h.LSN, Root: h.Root, Journal: h.Journal}, Upto: upto, Each: each}.Scan(dir)
		return err
	}
}

// busyFor returns the CPU time of this process, because the machine may be shared.
func busyFor() time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// BenchmarkStart recovers a journal with a snapshot of all but 10,000 frames, and without one,
// and makes that snapshot.
func BenchmarkStart(b *testing.B) {
	for _, keys := range []int{100_000, 500_000} {
		segments, kept := fs.Dir(b.TempDir()), fs.Dir(b.TempDir())
		busy(b, segments, *benched, min(keys, *benched/2))
		upto := types.LSN(*benched - 10_000)
		m := snapshot.New(snapshot.Config{Limits: wide(keys), Rest: func(context.Context, time.Duration) error { return nil },
			Made: func(m snapshot.Made) { b.Logf("%d keys: a snapshot of %d bytes", keys, m.Bytes) }},
			kept, snapshot.Source{Grown: func() int64 { return 0 }, Durable: func() types.LSN { return upto }, Read: behind(segments)})
		must(b, m.Make(b.Context()))
		b.Run(fmt.Sprintf("make/%d", keys), func(b *testing.B) {
			for b.Loop() {
				must(b, snapshot.Sweep(kept, func(types.LSN) bool { return false }))
				must(b, m.Make(b.Context()))
			}
		})
		for _, from := range []types.LSN{upto, 0} {
			b.Run(fmt.Sprintf("from/%d/%d", from, keys), func(b *testing.B) {
				began := busyFor()
				for b.Loop() {
					st := state.New(wide(keys), 5)
					h := snapshot.Head{}
					if from > 0 {
						var err error
						h, err = snapshot.Load(kept, from, &st, nil)
						must(b, err)
					}
					must(b, behind(segments)(h, types.LSN(*benched), func(all []record.Sealed) error {
						for i := range all {
							must(b, st.Fold(all[i].Body, nil))
						}
						return nil
					}))
					if int(st.LSN) != *benched {
						b.Fatal(st.LSN)
					}
				}
				b.ReportMetric((busyFor()-began).Seconds()/float64(b.N), "cpu-s/start")
			})
		}
	}
}
