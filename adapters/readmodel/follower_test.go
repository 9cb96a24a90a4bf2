package readmodel_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

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

func limits() state.Limits {
	return state.Limits{Ledger: ledger.Limits{Accounts: 8, Holdings: 8, Assets: 2, Tenants: 2, TenantAccounts: 8, TenantHoldings: 8, TenantAssets: 2},
		Idempotency: idempotency.Limits{Keys: 32, PerTenant: 32, Tenants: 2}, Keys: 2}
}

// issues returns sealed frames, each of which issues 10 to ann.
func issues(count int) (all []record.Sealed) {
	prev := types.Root{}
	for i := range count {
		lsn := types.LSN(i + 1)
		body := record.Begin(nil, lsn, types.Time(1000*i))
		body, _ = record.Add(body, 0, &record.Record{Kind: record.Posted, Op: event.Issue, Tenant: 1, Key: types.Name{Text: fmt.Appendf(nil, "k%d", i)},
			To: types.Name{Text: []byte("ann")}, Asset: types.Name{Text: []byte("EUR/2")}, Amount: types.MinorUnits(10), Seq: types.Seq(lsn),
			FromBalance: types.MinorUnits(uint64(10 * (i + 1))), ToBalance: types.MinorUnits(uint64(10 * (i + 1)))})
		root, _ := digest.Chain(nil, prev, body)
		all = append(all, record.Sealed{Journal: 5, LSN: lsn, Body: body, Prev: prev, Root: root})
		prev = root
	}
	return all
}

// TestBalancesSumToZero: folded movements are visible, and all accounts with the reserved ones
// sum to 0.
func TestBalancesSumToZero(t *testing.T) {
	f := readmodel.New(state.New(limits(), 1), 4, 1, nil)
	if err := f.Fold(issues(3)); err != nil {
		t.Fatal(err)
	}
	for account, want := range map[string]event.Balance{
		"ann":            {Amount: types.MinorUnits(30), Available: types.MinorUnits(30), AsOf: 3, At: 2000, NextNonce: 1},
		"bob":            {AsOf: 3, At: 2000, NextNonce: 1},
		"issuance:EUR/2": {Amount: types.MinorUnits(30), Available: types.MinorUnits(30), Negative: true, AsOf: 3, At: 2000, NextNonce: 1},
		"burned:EUR/2":   {AsOf: 3, At: 2000, NextNonce: 1},
		"issuance:GBP":   {AsOf: 3, At: 2000, NextNonce: 1},
	} {
		if got := f.Balance(1, []byte(account), []byte("EUR/2")); got != want {
			t.Errorf("%s: %+v, want %+v", account, got, want)
		}
	}
	if got := f.Balance(2, []byte("ann"), []byte("EUR/2")); !got.Amount.IsZero() {
		t.Errorf("another tenant's ann has %v", got.Amount)
	}
}

// TestRenderFromMemoryAndSegments: an answer has the same bytes from memory and from the
// segments; where there is none, an error.
func TestRenderFromMemoryAndSegments(t *testing.T) {
	all := issues(12)
	asked := 0
	older := func(l types.LSN) (record.Sealed, error) {
		switch asked++; {
		case l == 2:
			return record.Sealed{}, errors.New("archived")
		case l > 12:
			return record.Sealed{}, receipt.ErrNoAnswer
		}
		return all[l-1], nil
	}
	near, far := readmodel.New(state.New(limits(), 1), 64, 1, nil), readmodel.New(state.New(limits(), 2), 4, 1, older)
	for _, f := range []*readmodel.Follower{near, far} {
		if err := f.Fold(all); err != nil {
			t.Fatal(err)
		}
	}
	for _, lsn := range []types.LSN{1, 8, 9, 12} {
		a, status, owner, err := near.Render(nil, types.Position{LSN: lsn})
		b, _, _, again := far.Render(nil, types.Position{LSN: lsn})
		if err != nil || again != nil || !bytes.Equal(a, b) || status != 200 || owner != 1 || !strings.Contains(string(a), fmt.Sprintf(`"seq":%d,`, lsn)) {
			t.Errorf("%v: %v %v\n%s\n%s", lsn, err, again, a, b)
		}
	}
	if asked != 2 {
		t.Errorf("%d looks into the segments, want 2", asked)
	}
	for _, p := range []types.Position{{}, {LSN: 13}, {LSN: 5, Index: 1}} {
		if answer, _, _, err := far.Render(nil, p); !errors.Is(err, receipt.ErrNoAnswer) {
			t.Errorf("%v: %s, %v", p, answer, err)
		}
	}
	if answer, _, _, err := far.Render(nil, types.Position{LSN: 2}); err == nil || errors.Is(err, receipt.ErrNoAnswer) {
		t.Errorf("a disk failure is not ErrNoAnswer: %s, %v", answer, err)
	}
}

// TestRenderBehindDamage: a durable frame that was not folded because of damage before it is read
// from the segments.
func TestRenderBehindDamage(t *testing.T) {
	all := issues(6)
	f := readmodel.New(state.New(limits(), 1), 64, 1, func(l types.LSN) (record.Sealed, error) { return all[l-1], nil })
	if err := f.Fold(all[:2]); err != nil {
		t.Fatal(err)
	}
	if answer, status, _, err := f.Render(nil, types.Position{LSN: 5}); err != nil || status != 200 || !strings.Contains(string(answer), `"seq":5,`) {
		t.Errorf("%d %s, %v", status, answer, err)
	}
}

// TestFoldRejectsOutOfOrderFrame: a frame that is not the next one is rejected, and nothing of it
// is visible.
func TestFoldRejectsOutOfOrderFrame(t *testing.T) {
	f := readmodel.New(state.New(limits(), 1), 4, 1, nil)
	if err := f.Fold(issues(3)[1:]); !errors.Is(err, state.ErrOrder) || f.Mark() != 0 {
		t.Fatalf("%v, mark %v", err, f.Mark())
	}
}

// TestAwaitSeq: a fold wakes its waiting readers; a timeout or one reader too many returns false.
func TestAwaitSeq(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, all := readmodel.New(state.New(limits(), 1), 4, 1, nil), issues(3)
		got := make(chan bool, 1)
		go func() { got <- f.AwaitSeq(t.Context(), 1, 2) }()
		synctest.Wait()
		if f.AwaitSeq(t.Context(), 1, 2) {
			t.Fatal("a second one may wait")
		}
		for _, s := range all[:2] {
			if err := f.Fold([]record.Sealed{s}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		if !<-got || !f.AwaitSeq(t.Context(), 1, 1) {
			t.Fatal("a folded movement is not found")
		}
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		if f.AwaitSeq(ctx, 1, 3) {
			t.Fatal("a missing movement is found")
		}
		go func() { got <- f.AwaitSeq(t.Context(), 1, 3) }() // takes the place of the reader that timed out
		synctest.Wait()
		if err := f.Fold(all[2:]); err != nil {
			t.Fatal(err)
		}
		if !<-got {
			t.Fatal("a reader that timed out keeps its place")
		}
	})
}
