package readmodel_test

import (
	"errors"
	"fmt"
	"testing"

	"macronode/adapters/readmodel"
	"macronode/core/digest"
	"macronode/core/event"
	"macronode/core/idempotency"
	"macronode/core/record"
	"macronode/core/state"
	"macronode/core/types"
	"macronode/core/wallet/ledger"
	"macronode/core/wallet/receipt"
)

func roomy() state.Limits {
	return state.Limits{Ledger: ledger.Limits{Accounts: 8, Holdings: 8, Assets: 2, Tenants: 2, Holds: 4, TenantAccounts: 8, TenantHoldings: 8,
		TenantAssets: 2, TenantHolds: 4}, Idempotency: idempotency.Limits{Keys: 32, PerTenant: 32, Tenants: 2}, Keys: 8}
}

func called(s string) types.Name { return types.Name{Text: []byte(s)} }

// chain seals frames of some records.
func chain(frames ...[]record.Record) (all []record.Sealed) {
	prev := types.Root{}
	for i, records := range frames {
		lsn := types.LSN(i + 1)
		body := record.Begin(nil, lsn, 1000)
		for n := range records {
			body, _ = record.Add(body, 0, &records[n])
		}
		root, _ := digest.Chain(nil, prev, body)
		all = append(all, record.Sealed{Journal: 5, LSN: lsn, Body: body, Prev: prev, Root: root})
		prev = root
	}
	return all
}

// year returns the frames of one account: an issue, a batch with a hold and a rejected release,
// and a freeze.
func year() []record.Sealed {
	ten, four, ann, eur := types.MinorUnits(10), types.MinorUnits(4), called("ann"), called("EUR/2")
	of := record.Record{Tenant: 1, Caller: 7, Asset: eur}
	boot := record.Record{Kind: record.Started, Journal: 5}
	issue, head, held, refused, frozen := of, of, of, of, of
	issue.Kind, issue.Op, issue.Key, issue.To, issue.Amount, issue.FromBalance, issue.ToBalance, issue.Seq = record.Posted, event.Issue, called("k1"), ann, ten, ten, ten, 1
	head.Kind, head.Op, head.Key, head.Items = record.Batched, event.Batch, called("k2"), 2
	held.Kind, held.Op, held.Key, held.From, held.Amount, held.Nonce, held.ExpiresAt, held.HeldBalance, held.Seq = record.HoldOpened, event.Hold, called("k2"), ann, four, 1, 9999, four, 2
	refused.Kind, refused.Op, refused.Key, refused.Problem = record.Rejected, event.Release, called("k2"), event.HoldNotActive
	frozen.Kind, frozen.Op, frozen.Key, frozen.From, frozen.Seq, frozen.Memo = record.FreezeChanged, event.Freeze, called("k3"), ann, 3, []byte("why")
	return chain([]record.Record{boot}, []record.Record{issue}, []record.Record{head, held, refused}, []record.Record{frozen})
}

// TestAskedReturnsRequest: of a record or of the items of a batch, with the ID of an opened hold;
// an error where there is no request.
func TestAskedReturnsRequest(t *testing.T) {
	f := readmodel.New(state.New(roomy(), 1), 8, 1, nil)
	if err := f.Fold(year()); err != nil {
		t.Fatal(err)
	}
	hold := name(types.NewTxID(5, types.Position{LSN: 3, Index: 1}))
	for _, c := range []struct {
		at   types.Position
		want string
	}{
		{types.Position{LSN: 2}, "issue to ann 10 EUR/2"},
		{types.Position{LSN: 3}, "batch: hold of ann 4 EUR/2 as " + hold + ", release"},
		{types.Position{LSN: 3, Index: 1}, "hold of ann 4 EUR/2 as " + hold},
		{types.Position{LSN: 3, Index: 2}, "release"},
		{types.Position{LSN: 4}, "freeze of ann"},
		{types.Position{LSN: 1}, "receipt: no answer there"},
		{types.Position{LSN: 2, Index: 1}, "receipt: no answer there"},
		{types.Position{LSN: 9}, "receipt: no answer there"},
		{types.Position{}, "receipt: no answer there"},
	} {
		var in event.Request
		of, err := f.RequestAt(c.at, &in)
		got := ""
		if err != nil {
			got = err.Error()
		} else if got = reported(&in); of != 5 || in.Tenant != 1 || in.Caller != 7 {
			t.Errorf("%v: %d in tenant %d, in the journal %d", c.at, in.Caller, in.Tenant, of)
		}
		if got != c.want {
			t.Errorf("%v: %s, want %s", c.at, got, c.want)
		}
	}
}

func name(id types.TxID) string {
	text := receipt.HoldID(id)
	return string(text[:])
}

func reported(in *event.Request) (s string) {
	if in.Op == event.Batch {
		s = "batch: "
	}
	for n, i := range in.Each {
		if n > 0 {
			s += ", "
		}
		s += i.Op.String()
		if len(i.From.Text) > 0 {
			s += " of " + string(i.From.Text)
		}
		if len(i.To.Text) > 0 {
			s += " to " + string(i.To.Text)
		}
		if !i.Amount.IsZero() {
			s += fmt.Sprintf(" %v %s", i.Amount, i.Asset.Text)
		}
		if i.Hold != (types.TxID{}) {
			s += " as " + name(i.Hold)
		}
	}
	return s
}

// TestReadsMatchLedger: frozen, held and issued amounts, the last seq, and the change of a
// movement.
func TestReadsMatchLedger(t *testing.T) {
	f := readmodel.New(state.New(roomy(), 1), 8, 1, nil)
	if err := f.Fold(year()); err != nil {
		t.Fatal(err)
	}
	issued, burned, held := f.Supply(1, []byte("EUR/2"))
	if issued != types.MinorUnits(10) || !burned.IsZero() || held != types.MinorUnits(4) {
		t.Errorf("%v issued, %v burned, %v held", issued, burned, held)
	}
	if !f.Frozen(1, []byte("ann")) || f.Frozen(2, []byte("ann")) || f.Frozen(1, []byte("bob")) {
		t.Error("ann of one tenant alone is frozen")
	}
	if f.Seq(1) != 3 || f.Seq(2) != 0 {
		t.Errorf("seq %d and %d", f.Seq(1), f.Seq(2))
	}
	want, _, err := receipt.Change(nil, &year()[1], 0)
	if err != nil {
		t.Fatal(err)
	}
	if got, owner, err := f.Change([]byte("+"), types.Position{LSN: 2}); err != nil || owner != 1 || string(got) != "+"+string(want) {
		t.Errorf("%s of %d, %v; want %s", got, owner, err, want)
	}
	for _, p := range []types.Position{{LSN: 3}, {LSN: 9}} {
		if got, _, err := f.Change(nil, p); !errors.Is(err, receipt.ErrNoAnswer) || len(got) > 0 {
			t.Errorf("%v: %s, %v", p, got, err)
		}
	}
}

// TestKeysOfTenant: oldest first, in pages.
func TestKeysOfTenant(t *testing.T) {
	var frames [][]record.Record
	for i, tenant := range []types.Tenant{1, 2, 1, 1} {
		frames = append(frames, []record.Record{{Kind: record.KeyCreated, APIKey: &event.Key{ID: types.KeyID(9 - i), Tenant: tenant, Label: types.NewLabel("k")}}})
	}
	f := readmodel.New(state.New(roomy(), 1), 8, 1, nil)
	if err := f.Fold(chain(frames...)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		tenant      types.Tenant
		skip, limit int
		want        string
	}{{1, 0, 9, "[9 7 6]"}, {1, 1, 1, "[7]"}, {1, 2, 9, "[6]"}, {1, 3, 9, "[]"}, {2, 0, 9, "[8]"}, {3, 0, 9, "[]"}, {1, 0, 0, "[]"}} {
		got := []types.KeyID{}
		for _, k := range f.Keys(c.tenant, c.skip, c.limit) {
			got = append(got, k.ID)
		}
		if fmt.Sprint(got) != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}
