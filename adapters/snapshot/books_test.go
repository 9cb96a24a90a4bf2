package snapshot_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"go.uber.org/goleak"

	"macronode/adapters/fs"
	"macronode/adapters/snapshot"
	"macronode/chaos/world"
	"macronode/core/digest"
	"macronode/core/event"
	"macronode/core/idempotency"
	"macronode/core/record"
	"macronode/core/state"
	"macronode/core/types"
	"macronode/core/wallet/ledger"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const ours types.JournalID = 0x0123456789abcdef

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func limits() state.Limits {
	most := types.MaxSupply()
	return state.Limits{
		Ledger: ledger.Limits{Accounts: 64, Holdings: 64, Assets: 4, Tenants: 3, TenantAccounts: 64, TenantHoldings: 64, TenantAssets: 4,
			Holds: 64, TenantHolds: 64, MaxAmount: most, MaxDailyDebit: most, MaxDailyIssue: most},
		Idempotency: idempotency.Limits{Keys: 256, PerTenant: 256, Tenants: 3, TTL: time.Minute},
		Keys:        8,
	}
}

// books makes a journal of movements: sealed frames, and the state after them.
type books struct {
	state  state.State
	sealed []record.Sealed
	dice   types.Rand
	root   types.Root
}

func newBooks(seed uint64) *books {
	return &books{state: state.New(limits(), 1), dice: types.NewRand(seed)}
}

func name(format string, args ...any) types.Name {
	text := fmt.Appendf(nil, format, args...)
	return types.Name{Text: text, ID: digest.Name(text)}
}

// add appends a frame.
func (b *books) add(t testing.TB) {
	t.Helper()
	lsn, at := b.state.LSN+1, b.state.At+types.Time(b.dice.Uint64n(3000))
	body := record.Begin(nil, lsn, at)
	r := record.Record{Op: event.Issue, Tenant: types.Tenant(1 + b.dice.Uint64n(2)), Key: name("key-%d", lsn), Asset: name("EUR/2"),
		To: name("account-%d", b.dice.Uint64n(20)), Amount: types.MinorUnits(1 + b.dice.Uint64n(1000))}
	switch {
	case lsn == 1:
		r = record.Record{Kind: record.Started, Journal: ours}
	case b.dice.Uint64n(20) == 0 && !b.state.Keys.Full():
		r = record.Record{Kind: record.KeyCreated, APIKey: &event.Key{ID: types.KeyID(lsn), Tenant: 1, Scopes: event.ScopeRead}}
	case b.dice.Uint64n(5) == 0:
		upto, any := b.state.Idempotency.Evictable(at, lsn-1, 3)
		if r = (record.Record{Kind: record.KeysForgotten, Upto: upto}); !any {
			r.Kind = 0
		}
	case b.state.Idempotency.Fits(r.Tenant, 1):
		if why := b.state.Wallet.Ledger.Decide(at, &r); why != event.None {
			t.Fatal(why)
		}
	default:
		r.Kind = 0
	}
	if r.Kind > 0 {
		body, _ = record.Add(body, 0, &r)
	}
	must(t, b.state.Fold(body, nil))
	prev := b.root
	b.root, _ = digest.Chain(nil, prev, body)
	b.sealed = append(b.sealed, record.Sealed{Journal: ours, LSN: lsn, Body: body, Prev: prev, Root: b.root})
}

// head returns the head of a snapshot of the current state.
func (b *books) head() snapshot.Head {
	return snapshot.Head{LSN: b.state.LSN, At: b.state.At, Journal: ours, Root: b.root}
}

// as returns the books as of a frame.
func (b *books) as(t testing.TB, lsn types.LSN) *books {
	t.Helper()
	was := newBooks(1)
	for _, s := range b.sealed[:lsn] {
		must(t, was.state.Fold(s.Body, nil))
		was.sealed, was.root = append(was.sealed, s), s.Root
	}
	return was
}

func kept(t testing.TB, frames int) *books {
	t.Helper()
	b := newBooks(7)
	for range frames {
		b.add(t)
	}
	return b
}

// loaded loads a snapshot and compares it with the state of the books at that frame.
func (b *books) loaded(t testing.TB, d fs.FS, lsn types.LSN) state.State {
	t.Helper()
	st := state.New(limits(), 3)
	h, err := snapshot.Load(d, lsn, &st, nil)
	must(t, err)
	if want := b.as(t, lsn); st.Hash() != want.state.Hash() || h != want.head() {
		t.Fatalf("%v: loaded %x of %+v, want %x of %+v", lsn, st.Hash(), h, want.state.Hash(), want.head())
	}
	return st
}

// written returns the bytes of a snapshot.
func written(t testing.TB, b *books) []byte {
	t.Helper()
	d := world.NewDisk()
	n, err := snapshot.Write(d, b.head(), &b.state, nil)
	must(t, err)
	text := read(t, d, b.state.LSN)
	if int64(len(text)) != n {
		t.Fatalf("%d bytes, Write returned %d", len(text), n)
	}
	return text
}

func read(t testing.TB, d fs.FS, lsn types.LSN) []byte {
	t.Helper()
	text, err := fs.ReadAll(d, snapshot.Name(lsn))
	must(t, err)
	return text
}

// put writes a file, synced.
func put(t testing.TB, d *world.Disk, name string, text []byte) {
	t.Helper()
	f, err := d.Create(name)
	must(t, err)
	_, err = f.WriteAt(text, 0)
	must(t, errors.Join(err, f.Sync(), f.Close(), d.SyncDir()))
}

func listed(t testing.TB, d fs.FS) []types.LSN {
	t.Helper()
	all, err := snapshot.List(d)
	must(t, err)
	return all
}

// source returns the books as a source, which delivers some frames at a time.
func (b *books) source() snapshot.Source {
	return snapshot.Source{
		Durable: func() types.LSN { return b.state.LSN },
		Grown:   func() int64 { return int64(b.state.LSN) * 100 },
		Read: func(after snapshot.Head, upto types.LSN, each func([]record.Sealed) error) error {
			if after.LSN > 0 && (after.LSN > b.state.LSN || b.sealed[after.LSN-1].Root != after.Root || after.Journal != ours) {
				return snapshot.ErrApart
			}
			for all := b.sealed[after.LSN:upto]; len(all) > 0; {
				n := min(3, len(all))
				if err := each(all[:n]); err != nil {
					return err
				}
				all = all[n:]
			}
			return nil
		},
	}
}

func same(a, b []byte) bool { return bytes.Equal(a, b) }
