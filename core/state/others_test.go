package state_test

import (
	"errors"
	"testing"
	"time"

	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/state"
	"macronode/core/types"
	"macronode/core/wallet/receipt"
)

// Bugs that others shipped, and the rule each of them broke.

// shown is the answer that a place renders to.
func (d *desk) shown(p types.Position) (record.Record, string) {
	d.Helper()
	var r record.Record
	s := record.Sealed{Journal: 1, LSN: p.LSN, Body: d.frames[p.LSN-1]}
	if _, err := record.Read(s.Body, p.Index, &r); err != nil {
		d.Fatalf("%v: %v", p, err)
	}
	answer, _, _, err := receipt.Render(nil, &s, p.Index)
	if err != nil {
		d.Fatalf("%v: %v", p, err)
	}
	return r, string(answer)
}

func (d *desk) has(account string) (types.Amount, types.Nonce) {
	r := record.Record{Kind: record.Posted, From: name(account), Asset: name("EUR")}
	r.Identify()
	has, _, next := d.state.Wallet.Balance(d.state.At, 1, r.From.ID, r.Asset.ID)
	return has, next
}

// TestRonWalletDoubleMint: four identical issues at once minted twice, because key and
// commit were looked at in steps of their own. Here the look and the commit are one.
func TestRonWalletDoubleMint(t *testing.T) {
	d := newDesk(t)
	first, _, why := d.ask(0, issue("mint", "ann", 100))
	if why != event.None {
		t.Fatal(why)
	}
	after, _ := d.shown(first)
	for i := range 3 {
		p, replayed, why := d.ask(types.Time(i), issue("mint", "ann", 100))
		if p != first || !replayed || why != event.None {
			t.Errorf("asked again: %v, replayed %v, %v", p, replayed, why)
		}
	}
	if has, _ := d.has("ann"); has != types.MinorUnits(100) || d.state.Wallet.Seq(1) != 1 || after.Seq != 1 || len(d.frames) != 1 {
		t.Errorf("ann has %v after %d movements in %d frames", has, d.state.Wallet.Seq(1), len(d.frames))
	}
}

// TestRonWalletRefusedRetry: of two identical transfers the second met its own used
// nonce and was refused. The key is asked before the nonce, so both get the receipt.
func TestRonWalletRefusedRetry(t *testing.T) {
	d := newDesk(t)
	d.ask(0, issue("mint", "ann", 100))
	first, replayed, why := d.ask(0, transfer("pay", "ann", "bob", 10, 1))
	if replayed || why != event.None {
		t.Fatalf("replayed %v, %v", replayed, why)
	}
	if p, replayed, why := d.ask(0, transfer("pay", "ann", "bob", 10, 1)); p != first || !replayed || why != event.None {
		t.Errorf("the same again: %v, replayed %v, %v", p, replayed, why)
	}
	if _, replayed, why := d.ask(0, transfer("pay-2", "ann", "bob", 10, 1)); replayed || why != event.NonceUsed {
		t.Errorf("under another key: replayed %v, %v", replayed, why)
	}
	if has, next := d.has("ann"); has != types.MinorUnits(90) || next != 2 {
		t.Errorf("ann has %v, nonce %d is next", has, next)
	}
}

// TestRonWalletPhantomReceipt: a key that was used again after its time, for something
// else, was answered with a receipt of money that never moved. Here a key's time ends
// for the whole node at once, and what is shown is what was asked and what was done.
func TestRonWalletPhantomReceipt(t *testing.T) {
	d := newDesk(t)
	first, _, _ := d.ask(0, issue("k", "ann", 100))
	other := issue("k", "bob", 7)
	if _, _, why := d.ask(1, other); why != event.IdempotencyConflict {
		t.Errorf("in its time: %v", why)
	}

	late := types.Time(limits().Idempotency.TTL / time.Millisecond)
	upto, any := d.state.Idempotency.Evictable(late, d.state.LSN, 1)
	if !any || upto != first.LSN {
		t.Fatalf("expired to %v %v", upto, any)
	}
	d.frame(late, record.Record{Kind: record.KeysForgotten, Upto: upto})

	second, replayed, why := d.ask(late, other)
	if replayed || why != event.None || second == first {
		t.Fatalf("after its time: %v, replayed %v, %v", second, replayed, why)
	}
	r, receipt := d.shown(second)
	if has, _ := d.has("bob"); r.Hash != other.Hash || r.ToBalance != has || has != types.MinorUnits(7) {
		t.Errorf("bob has %v, and is shown %s", has, receipt)
	}
	if p, replayed, _ := d.ask(late, other); p != second || !replayed {
		t.Errorf("once more: %v, replayed %v", p, replayed)
	}
	if _, _, why := d.ask(late, issue("k", "ann", 100)); why != event.IdempotencyConflict {
		t.Errorf("the first once more: %v", why)
	}
	if has, _ := d.has("ann"); has != types.MinorUnits(100) {
		t.Errorf("ann has %v", has)
	}
}

// TestRonLedgerTornTail: half of a last line stopped the start. A torn frame, wherever
// it is torn, leaves all before it as it was, and the next one fits in its place.
func TestRonLedgerTornTail(t *testing.T) {
	d := newDesk(t)
	d.ask(0, issue("a", "ann", 100))
	d.ask(1, transfer("b", "ann", "bob", 30, 1))
	found := state.New(limits(), 9)
	for _, body := range d.frames {
		if err := found.Fold(body, nil); err != nil {
			t.Fatal(err)
		}
	}
	was := found.Hash()
	if was != d.state.Hash() {
		t.Fatalf("found %x, was %x", was, d.state.Hash())
	}
	torn := d.frame(2, record.Record{Kind: record.KeysForgotten, Upto: 1}, record.Record{Kind: record.BootstrapKeyCreated, APIKey: &event.Key{ID: 1}})
	for cut := range torn {
		if err := found.Fold(torn[:cut], nil); !errors.Is(err, record.ErrFrame) || found.Hash() != was {
			t.Fatalf("torn at %d of %d: %v, %x was %x", cut, len(torn), err, found.Hash(), was)
		}
	}
	next := record.Begin(nil, 3, 2)
	if err := found.Fold(next, nil); err != nil || found.LSN != 3 {
		t.Errorf("the next: %v at %v", err, found.LSN)
	}
}

// TestBlnk374RefusalIsNoReversal: a refund was refused the second time, and reversed
// the first. A refusal that a key keeps is a record, and moves nothing.
func TestBlnk374RefusalIsNoReversal(t *testing.T) {
	d := newDesk(t)
	d.ask(0, issue("a", "ann", 100))
	d.ask(0, transfer("refund", "ann", "bob", 60, 1))
	money := d.state.Wallet.Hash()
	for key, why := range map[string]event.Problem{"refund-2": event.NonceUsed, "refund-3": event.NonceUsed} {
		p, _, got := d.ask(1, transfer(key, "ann", "bob", 60, 1))
		if r, _ := d.shown(p); got != why || r.Kind != record.Rejected || r.Nonce != 2 {
			t.Errorf("%s: %v, recorded as %+v", key, got, r)
		}
	}
	if _, _, got := d.ask(1, transfer("refund-4", "ann", "bob", 60, 2)); got != event.InsufficientFunds {
		t.Errorf("of what is not there: %v", got)
	}
	if d.state.Wallet.Hash() != money {
		t.Error("the ledger is another")
	}
}
