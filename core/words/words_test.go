package words_test

import (
	"bytes"
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"macronode/ci/flip"
	"macronode/core/words"
)

func TestTicket(t *testing.T) {
	k := words.NewTicket(0xfffffffe, 0xfffffffd)
	if k.Slot() != 0xfffffffe || k != 0xfffffffd_fffffffe {
		t.Errorf("%x has slot %x", uint64(k), k.Slot())
	}
}

// TestTxID: the journal, the LSN and the index, big-endian, so that those of a journal
// are in the order of their places; and what was put in comes out.
func TestTxID(t *testing.T) {
	id := words.NewTxID(0x0123456789abcdef, words.Place{LSN: 0xfedcba987654, Index: 0x3210})
	if got := fmt.Sprintf("%x", id); got != "0123456789abcdeffedcba9876543210" {
		t.Errorf("the journal, the LSN and the index make %s", got)
	}
	rapid.Check(t, func(t *rapid.T) {
		j := words.JournalID(rapid.Uint64().Draw(t, "journal"))
		place := func(what string) words.Place {
			return words.Place{LSN: words.LSN(rapid.Uint64Range(0, words.MaxLSN).Draw(t, what)), Index: rapid.Uint16().Draw(t, "index")}
		}
		p, q := place("a"), place("b")
		a, b := words.NewTxID(j, p), words.NewTxID(j, q)
		if a.Journal() != j || a.Place() != p {
			t.Fatalf("%x is of %x at %v", a, a.Journal(), a.Place())
		}
		if before := p.LSN < q.LSN || p.LSN == q.LSN && p.Index < q.Index; (bytes.Compare(a[:], b[:]) < 0) != before || (a == b) != (p == q) {
			t.Fatalf("%v before %v: %v, and %x, %x", p, q, before, a, b)
		}
	})
	if (words.TxID{}).Place().LSN != 0 {
		t.Error("no id names a frame")
	}
}

func TestText(t *testing.T) {
	for want, got := range map[string]fmt.Stringer{
		"@7": words.LSN(7), "@7.2": words.Place{LSN: 7, Index: 2}, "12": words.Units(12),
		"starting": words.Starting, "ready": words.Ready, "degraded": words.Degraded, "lame duck": words.LameDuck,
		"draining": words.Draining, "aborting": words.Aborting, "stopped": words.Stopped,
	} {
		if got.String() != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestTime: a day is 86,400 s of UTC, and a millisecond is the least that counts.
func TestTime(t *testing.T) {
	for at, day := range map[words.Time]uint32{0: 0, 86_399_999: 0, 86_400_000: 1, 1_700_000_000_000: 19675} {
		if at.Day() != day {
			t.Errorf("%d is of day %d, want %d", at, at.Day(), day)
		}
	}
	if got := words.Time(5).Plus(time.Second + 999*time.Microsecond); got != 1005 {
		t.Errorf("a second after 5 is %d", got)
	}
	if got := words.Instant(5).Plus(time.Millisecond); got != 1_000_005 {
		t.Errorf("a millisecond after 5 is %d", got)
	}
}

// TestConditions: dependencies come first, each has a name, and a set yields them in
// their order.
func TestConditions(t *testing.T) {
	names := []string{"journal", "key", "http", "admin", "sampler", "upstreams",
		"journal_stalled", "journal_failed", "disk_full", "clock", "restarts", "late_start"}
	var all words.Conditions
	for c := range words.Condition(len(names)) {
		if c.String() != names[c] {
			t.Errorf("%d is %q, want %q", c, c, names[c])
		}
		if all.Has(c) || !all.With(c).Has(c) || all.With(c).Without(c) != all {
			t.Errorf("%v comes and goes wrong in %b", c, all)
		}
		all = all.With(c)
		if words.AllDependencies.Has(c) != (c < words.Stalled) {
			t.Errorf("%v is a dependency: %v", c, words.AllDependencies.Has(c))
		}
	}
	var got []string
	for c := range all.Minus(words.AllDependencies).Each {
		got = append(got, c.String())
	}
	if want := names[words.Stalled:]; !slices.Equal(got, want) {
		t.Errorf("ailments are %q, want %q", got, want)
	}
	for c := range all.Each {
		if c == words.NeedKey {
			break // must be heard
		}
		if c > words.NeedKey {
			t.Fatal("a set yields on after it was told to stop")
		}
	}
}

// TestEveryWordHasItsName, which logs and metrics show; what is none has a name too.
func TestEveryWordHasItsName(t *testing.T) {
	for want, words := range map[string][]fmt.Stringer{
		"internal authed anon ? ?":           {words.Internal, words.Authed, words.Anon, words.Classes, words.Class(200)},
		"money lists beyond streams ? ?":     {words.Money, words.Lists, words.Beyond, words.Streams, words.Facets, words.Facet(200)},
		"instance peer key tenant route ? ?": {words.OfInstance, words.OfPeer, words.OfKey, words.OfTenant, words.OfRoute, words.Scopes, words.Scope(200)},
	} {
		if got := strings.Trim(fmt.Sprint(words), "[]"); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestChildren(t *testing.T) {
	for c, want := range map[words.Child]string{words.ChildHTTP: "http", words.ChildAdmin: "admin", words.ChildSampler: "sampler"} {
		if need, ok := c.Need(); c.String() != want || !ok || need.String() != want {
			t.Errorf("%d is %v and needed as %v, %v", c, c, need, ok)
		}
	}
	for c, want := range map[words.Child]string{words.ChildIndexer: "indexer", words.ChildKeeper: "keeper", words.ChildAudit: "audit"} {
		if need, ok := c.Need(); c.String() != want || ok {
			t.Errorf("%d is %v and needed as %v", c, c, need)
		}
	}
}

func TestAssert(t *testing.T) {
	words.Assert(true, "nothing")
	defer func() {
		if b, ok := recover().(words.Broken); !ok || b.Error() != "broken: a promise" {
			t.Errorf("it broke with %v", b)
		}
	}()
	words.Assert(false, "a promise")
}

// TestDice: the numbers that SplitMix64 is published with, for ever: a journal must
// replay the same.
func TestDice(t *testing.T) {
	d := words.NewDice(1234567)
	for i, want := range []uint64{6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431} {
		if got := d.Below(1<<64 - 1); got != want {
			t.Errorf("roll %d is %d, want %d", i, got, want)
		}
	}
	copied := d
	var seen [6]int
	for range 600 {
		n := d.Below(6)
		if copied.Below(6) != n {
			t.Fatal("a copy of the dice rolls otherwise")
		}
		seen[n]++
	}
	for side, times := range seen {
		if times < 50 || times > 150 {
			t.Errorf("side %d came %d times in 600", side, times)
		}
	}
	defer func() {
		if _, ok := recover().(words.Broken); !ok {
			t.Error("dice without sides were rolled")
		}
	}()
	d.Below(0)
}

// TestHashForgetsNothing: every word that is mixed is mixed whole.
func TestHashForgetsNothing(t *testing.T) {
	var (
		id     words.ID
		asked  words.Asked
		place  words.Place
		amount words.Amount
		dice   words.Dice
		tenant words.Tenant
		key    words.KeyID
		tx     words.TxID
		truth  bool
	)
	flip.Every(t, &id, func() words.Hash64 { return id.Mix(1) })
	flip.Every(t, &asked, func() words.Hash64 { return asked.Mix(1) })
	flip.Every(t, &tx, func() words.Hash64 { return tx.Mix(1) })
	flip.Every(t, &place, func() words.Hash64 { return place.Mix(1) })
	flip.Every(t, &amount, func() words.Hash64 { return amount.Mix(1) })
	flip.Every(t, &dice, func() words.Hash64 { return dice.Mix(1) })
	flip.Every(t, &tenant, func() words.Hash64 { return tenant.Mix(1) })
	flip.Every(t, &key, func() words.Hash64 { return key.Mix(1) })
	flip.Every(t, &truth, func() words.Hash64 { return words.Hash64(1).MixBit(truth) })
}

// TestHashOrder: what is mixed in another order is another state, and small numbers
// do not meet.
func TestHashOrder(t *testing.T) {
	seen := map[words.Hash64][2]uint64{}
	for a := range uint64(256) {
		for b := range uint64(256) {
			h := words.Hash64(0).Mix(a).Mix(b)
			if was, ok := seen[h]; ok {
				t.Fatalf("%v and %v have one hash", was, [2]uint64{a, b})
			}
			seen[h] = [2]uint64{a, b}
		}
	}
}

// TestHashSpreads: one bit more, in what is mixed or in what was, changes half of the
// hash: a table finds places by a part of it.
func TestHashSpreads(t *testing.T) {
	d := words.NewDice(7)
	changed := 0
	for range 100 {
		h, x := words.Hash64(d.Below(1<<63)), d.Below(1<<63)
		for bit := range 64 {
			was := h.Mix(x)
			for _, is := range []words.Hash64{h.Mix(x ^ 1<<bit), (h ^ 1<<bit).Mix(x)} {
				n := bits.OnesCount64(uint64(was ^ is))
				if n < 8 {
					t.Fatalf("%x.Mix(%x): bit %d changes %d bits of the hash", uint64(h), x, bit, n)
				}
				changed += n
			}
		}
	}
	if mean := changed / (100 * 64 * 2); mean < 30 || mean > 34 {
		t.Errorf("one bit changes %d bits of the hash", mean)
	}
}
