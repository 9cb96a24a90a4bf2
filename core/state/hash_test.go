package state_test

import (
	"testing"

	"macronode/ci/hashcoverage"
	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/state"
	"macronode/core/types"
)

func TestHashCoversEveryField(t *testing.T) {
	s := state.New(limits(), 1)
	s.LSN, s.At, s.Journal, s.Starts = 1, 2, 3, 4
	hashcoverage.Every(t, &s, s.Hash, "rec: of the fold at hand, filled anew by each", "batch: of the open frame alone", "Wallet: held to it in its own package", "planes[]: the same", "Idempotency: flipped in its own room", "Keys: flipped in its own room")

	// A change of one part only changes the hash of the state.
	for what, change := range map[string]func(*state.State){
		"the ledger": func(s *state.State) {
			r := record.Record{Kind: record.Posted, Op: event.Issue, Tenant: 1, To: name("ann"), Asset: name("EUR"), Seq: 1,
				Amount: types.MinorUnits(1), FromBalance: types.MinorUnits(1), ToBalance: types.MinorUnits(1), DebitedToday: types.MinorUnits(1)}
			r.Identify()
			s.Wallet.Apply(0, types.TxID{}, &r)
		},
		"the keys seen": func(s *state.State) { s.Idempotency.Forget(1) },
		"the API keys":  func(s *state.State) { s.Keys.Add(event.Key{ID: 1}) },
	} {
		was := s.Hash()
		if change(&s); s.Hash() == was {
			t.Errorf("%s: not in the hash", what)
		}
	}
}

// TestCheckVisitsEveryPart: Check reports a violation in any part.
func TestCheckVisitsEveryPart(t *testing.T) {
	for what, breaks := range map[string]func(*state.State){
		"the ledger": func(s *state.State) {
			r := record.Record{Kind: record.Posted, Op: event.Issue, Tenant: 1, To: name("ann"), Asset: name("EUR"), ToBalance: types.MinorUnits(1)}
			r.Identify()
			s.Wallet.Apply(0, types.TxID{}, &r) // ann has it, but it was not issued
		},
		"the API keys": func(s *state.State) {
			s.Keys.Add(event.Key{ID: 1, Bootstrap: true})
			s.Keys.Add(event.Key{ID: 2, Bootstrap: true})
		},
		"the keys seen": func(s *state.State) {
			for _, key := range []string{"a", "b"} {
				s.LSN = 9 - s.LSN // the later record in an earlier frame
				r := record.Record{Kind: record.Rejected, Op: event.Issue, Tenant: 1, Key: name(key)}
				r.Identify()
				s.Apply(0, &r)
			}
		},
	} {
		s := state.New(limits(), 1)
		s.LSN = 1
		if err := s.Check(); err != nil {
			t.Fatal(err)
		}
		if breaks(&s); s.Check() == nil {
			t.Errorf("%s: Check returns no error", what)
		}
	}
}

// TestFoldDoesNotAllocate: recovery and the read model fold every frame.
func TestFoldDoesNotAllocate(t *testing.T) {
	l := limits()
	l.Idempotency.Keys, l.Idempotency.PerTenant = 256, 256
	s, key, lsn, body := state.New(l, 1), []byte("key-.."), types.LSN(0), []byte(nil)
	r := record.Record{Kind: record.Posted, Op: event.Issue, Tenant: 1, To: name("ann"), Asset: name("EUR"), Amount: types.MinorUnits(1)}
	if n := testing.AllocsPerRun(200, func() {
		lsn++
		key[4], key[5] = 'a'+byte(lsn&15), 'a'+byte(lsn>>4)
		r.Key.Text, r.Seq, r.FromBalance, r.ToBalance = key, types.Seq(lsn), types.MinorUnits(uint64(lsn)), types.MinorUnits(uint64(lsn))
		body = record.Begin(body[:0], lsn, types.Time(lsn))
		body, _ = record.Add(body, 0, &r)
		if err := s.Fold(body, nil); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Fatalf("%v allocations a frame", n)
	}
}
