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

// The tests of this file reproduce bugs of other systems.

// shown renders the answer at a position.
func (d *machine) shown(p types.Position) (record.Record, string) {
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

func (d *machine) has(account string) (types.Amount, types.Nonce) {
	r := record.Record{Kind: record.Posted, From: name(account), Asset: name("EUR")}
	r.Identify()
	has, _, next := d.state.Wallet.Balance(d.state.At, 1, r.From.ID, r.Asset.ID)
	return has, next
}

// TestRonWalletDoubleMint: four identical concurrent issues minted twice, because look-up and
// commit were separate steps. Here they are one step.
func TestRonWalletDoubleMint(t *testing.T) {
	d := newMachine(t)
	first, _, why := d.submit(0, issue("mint", "ann", 100))
	if why != event.None {
		t.Fatal(why)
	}
	after, _ := d.shown(first)
	for i := range 3 {
		p, replayed, why := d.submit(types.Time(i), issue("mint", "ann", 100))
		if p != first || !replayed || why != event.None {
			t.Errorf("retried: %v, replayed %v, %v", p, replayed, why)
		}
	}
	if has, _ := d.has("ann"); has != types.MinorUnits(100) || d.state.Wallet.Seq(1) != 1 || after.Seq != 1 || len(d.frames) != 1 {
		t.Errorf("ann has %v after %d movements in %d frames", has, d.state.Wallet.Seq(1), len(d.frames))
	}
}

// TestRonWalletRefusedRetry: the second of two identical transfers was rejected because its own
// nonce was used. Here the key is checked before the nonce, so both get the receipt.
func TestRonWalletRefusedRetry(t *testing.T) {
	d := newMachine(t)
	d.submit(0, issue("mint", "ann", 100))
	first, replayed, why := d.submit(0, transfer("pay", "ann", "bob", 10, 1))
	if replayed || why != event.None {
		t.Fatalf("replayed %v, %v", replayed, why)
	}
	if p, replayed, why := d.submit(0, transfer("pay", "ann", "bob", 10, 1)); p != first || !replayed || why != event.None {
		t.Errorf("the same again: %v, replayed %v, %v", p, replayed, why)
	}
	if _, replayed, why := d.submit(0, transfer("pay-2", "ann", "bob", 10, 1)); replayed || why != event.NonceUsed {
		t.Errorf("under another key: replayed %v, %v", replayed, why)
	}
	if has, next := d.has("ann"); has != types.MinorUnits(90) || next != 2 {
		t.Errorf("ann has %v, nonce %d is next", has, next)
	}
}

// TestRonWalletPhantomReceipt: a key that was reused after its TTL, for a different request, was
// answered with a receipt of a transfer that never happened. Here a key expires for the whole
// node at once, and the answer is that of the request.
func TestRonWalletPhantomReceipt(t *testing.T) {
	d := newMachine(t)
	first, _, _ := d.submit(0, issue("k", "ann", 100))
	other := issue("k", "bob", 7)
	if _, _, why := d.submit(1, other); why != event.IdempotencyConflict {
		t.Errorf("in its time: %v", why)
	}

	late := types.Time(limits().Idempotency.TTL / time.Millisecond)
	upto, any := d.state.Idempotency.Evictable(late, d.state.LSN, 1)
	if !any || upto != first.LSN {
		t.Fatalf("expired to %v %v", upto, any)
	}
	d.frame(late, record.Record{Kind: record.KeysForgotten, Upto: upto})

	second, replayed, why := d.submit(late, other)
	if replayed || why != event.None || second == first {
		t.Fatalf("after its time: %v, replayed %v, %v", second, replayed, why)
	}
	r, receipt := d.shown(second)
	if has, _ := d.has("bob"); r.Hash != other.Hash || r.ToBalance != has || has != types.MinorUnits(7) {
		t.Errorf("bob has %v, and is shown %s", has, receipt)
	}
	if p, replayed, _ := d.submit(late, other); p != second || !replayed {
		t.Errorf("once more: %v, replayed %v", p, replayed)
	}
	if _, _, why := d.submit(late, issue("k", "ann", 100)); why != event.IdempotencyConflict {
		t.Errorf("the first once more: %v", why)
	}
	if has, _ := d.has("ann"); has != types.MinorUnits(100) {
		t.Errorf("ann has %v", has)
	}
}

// TestRonLedgerTornTail: half of a last line prevented the start. Here a frame that is torn at
// any byte leaves the state before it unchanged, and the next frame takes its place.
func TestRonLedgerTornTail(t *testing.T) {
	d := newMachine(t)
	d.submit(0, issue("a", "ann", 100))
	d.submit(1, transfer("b", "ann", "bob", 30, 1))
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

// TestBlnk374RejectionIsNoReversal: in Blnk, a second refund was rejected and reversed the first.
// Here a stored rejection is a record that moves no money.
func TestBlnk374RejectionIsNoReversal(t *testing.T) {
	d := newMachine(t)
	d.submit(0, issue("a", "ann", 100))
	d.submit(0, transfer("refund", "ann", "bob", 60, 1))
	money := d.state.Wallet.Hash()
	for key, why := range map[string]event.Problem{"refund-2": event.NonceUsed, "refund-3": event.NonceUsed} {
		p, _, got := d.submit(1, transfer(key, "ann", "bob", 60, 1))
		if r, _ := d.shown(p); got != why || r.Kind != record.Rejected || r.Nonce != 2 {
			t.Errorf("%s: %v, recorded as %+v", key, got, r)
		}
	}
	if _, _, got := d.submit(1, transfer("refund-4", "ann", "bob", 60, 2)); got != event.InsufficientFunds {
		t.Errorf("of a missing record: %v", got)
	}
	if d.state.Wallet.Hash() != money {
		t.Error("the ledger is another")
	}
}
