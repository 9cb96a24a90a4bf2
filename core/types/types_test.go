package types_test

import (
	"bytes"
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"macronode/ci/hashcoverage"
	"macronode/core/types"
)

func TestTicket(t *testing.T) {
	k := types.NewTicket(0xfffffffe, 0xfffffffd)
	if k.Slot() != 0xfffffffe || k != 0xfffffffd_fffffffe {
		t.Errorf("%x has slot %x", uint64(k), k.Slot())
	}
}

// TestTxIDSortsByPosition shows that the encoding is big-endian, so that the IDs of a journal
// sort by position, and that the parts can be read back.
func TestTxIDSortsByPosition(t *testing.T) {
	id := types.NewTxID(0x0123456789abcdef, types.Position{LSN: 0xfedcba987654, Index: 0x3210})
	if got := fmt.Sprintf("%x", id); got != "0123456789abcdeffedcba9876543210" {
		t.Errorf("the journal, the LSN and the index make %s", got)
	}
	rapid.Check(t, func(t *rapid.T) {
		j := types.JournalID(rapid.Uint64().Draw(t, "journal"))
		place := func(what string) types.Position {
			return types.Position{LSN: types.LSN(rapid.Uint64Range(0, types.MaxLSN).Draw(t, what)), Index: rapid.Uint16().Draw(t, "index")}
		}
		p, q := place("a"), place("b")
		a, b := types.NewTxID(j, p), types.NewTxID(j, q)
		if a.Journal() != j || a.Position() != p {
			t.Fatalf("%x is of %x at %v", a, a.Journal(), a.Position())
		}
		if before := p.LSN < q.LSN || p.LSN == q.LSN && p.Index < q.Index; (bytes.Compare(a[:], b[:]) < 0) != before || (a == b) != (p == q) {
			t.Fatalf("%v before %v: %v, and %x, %x", p, q, before, a, b)
		}
	})
	if (types.TxID{}).Position().LSN != 0 {
		t.Error("no id names a frame")
	}
}

func TestText(t *testing.T) {
	for want, got := range map[string]fmt.Stringer{
		"@7": types.LSN(7), "@7.2": types.Position{LSN: 7, Index: 2}, "12": types.MinorUnits(12),
		"starting": types.Starting, "ready": types.Ready, "degraded": types.Degraded, "lame_duck": types.LameDuck,
		"draining": types.Draining, "aborting": types.Aborting, "stopped": types.Stopped,
	} {
		if got.String() != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestTimeCountsDaysAndMilliseconds: a day is 86,400 s of UTC; a time is rounded down to
// milliseconds.
func TestTimeCountsDaysAndMilliseconds(t *testing.T) {
	for at, day := range map[types.Time]uint32{0: 0, 86_399_999: 0, 86_400_000: 1, 1_700_000_000_000: 19675} {
		if at.Day() != day {
			t.Errorf("%d is of day %d, want %d", at, at.Day(), day)
		}
	}
	if got := types.Time(5).Add(time.Second + 999*time.Microsecond); got != 1005 {
		t.Errorf("a second after 5 is %d", got)
	}
	if got := types.Instant(5).Add(time.Millisecond); got != 1_000_005 {
		t.Errorf("a millisecond after 5 is %d", got)
	}
}

// TestConditionsAreOrdered shows that dependencies come first, that each condition has a name,
// and that a set yields them in order.
func TestConditionsAreOrdered(t *testing.T) {
	names := []string{"journal", "key", "http", "admin", "sampler", "upstreams",
		"journal_stalled", "journal_failed", "disk_full", "clock_untrusted", "crash_loop", "start_timeout"}
	var all types.Conditions
	for c := range types.Condition(len(names)) {
		if c.String() != names[c] {
			t.Errorf("%d is %q, want %q", c, c, names[c])
		}
		if all.Has(c) || !all.With(c).Has(c) || all.With(c).Without(c) != all {
			t.Errorf("%v comes and goes wrong in %b", c, all)
		}
		all = all.With(c)
		if types.AllDependencies.Has(c) != (c < types.JournalStalled) {
			t.Errorf("%v is a dependency: %v", c, types.AllDependencies.Has(c))
		}
	}
	var got []string
	for c := range all.Minus(types.AllDependencies).Each {
		got = append(got, c.String())
	}
	if want := names[types.JournalStalled:]; !slices.Equal(got, want) {
		t.Errorf("ailments are %q, want %q", got, want)
	}
	for c := range all.Each {
		if c == types.DependencyKey {
			break
		}
		if c > types.DependencyKey {
			t.Fatal("a set yields after the loop stopped")
		}
	}
}

// TestEveryValueHasAName shows that each value has a name for logs and metrics, invalid values
// included.
func TestEveryValueHasAName(t *testing.T) {
	for want, words := range map[string][]fmt.Stringer{
		"internal authed anon ? ?":               {types.ClassInternal, types.ClassAuthed, types.ClassAnon, types.NumClasses, types.Class(200)},
		"wallet query proxy streams storage ? ?": {types.FacetWallet, types.FacetQuery, types.FacetProxy, types.Streams, types.FacetStorage, types.NumFacets, types.Facet(200)},
		"instance peer key tenant route ? ?":     {types.ScopeInstance, types.ScopePeer, types.ScopeKey, types.ScopeTenant, types.ScopeRoute, types.NumQuotaScopes, types.QuotaScope(200)},
	} {
		if got := strings.Trim(fmt.Sprint(words), "[]"); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestChildren(t *testing.T) {
	for c, want := range map[types.Service]string{types.ServiceHTTP: "http", types.ServiceAdmin: "admin", types.ServiceSampler: "sampler"} {
		if need, ok := c.Dependency(); c.String() != want || !ok || need.String() != want {
			t.Errorf("%d is %v and needed as %v, %v", c, c, need, ok)
		}
	}
	for c, want := range map[types.Service]string{types.ServiceIndex: "indexer", types.ServiceSnapshots: "keeper", types.ServiceAudit: "audit"} {
		if need, ok := c.Dependency(); c.String() != want || ok {
			t.Errorf("%d is %v and needed as %v", c, c, need)
		}
	}
}

func TestAssert(t *testing.T) {
	types.Assert(true, "unused")
	defer func() {
		if b, ok := recover().(types.InvariantError); !ok || b.Error() != "broken: a promise" {
			t.Errorf("it broke with %v", b)
		}
	}()
	types.Assert(false, "a promise")
}

// TestRandMatchesSplitMix64 checks published numbers of SplitMix64: a replay must draw the same
// numbers.
func TestRandMatchesSplitMix64(t *testing.T) {
	d := types.NewRand(1234567)
	for i, want := range []uint64{6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431} {
		if got := d.Uint64n(1<<64 - 1); got != want {
			t.Errorf("roll %d is %d, want %d", i, got, want)
		}
	}
	copied := d
	var seen [6]int
	for range 600 {
		n := d.Uint64n(6)
		if copied.Uint64n(6) != n {
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
		if _, ok := recover().(types.InvariantError); !ok {
			t.Error("dice without sides were rolled")
		}
	}()
	d.Uint64n(0)
}

// TestHashCoversEveryField shows that each type is hashed completely.
func TestHashCoversEveryField(t *testing.T) {
	var (
		id     types.NameHash
		asked  types.RequestHash
		place  types.Position
		amount types.Amount
		dice   types.Rand
		tenant types.Tenant
		key    types.KeyID
		tx     types.TxID
		truth  bool
	)
	hashcoverage.Every(t, &id, func() types.Hash64 { return id.HashInto(1) })
	hashcoverage.Every(t, &asked, func() types.Hash64 { return asked.HashInto(1) })
	hashcoverage.Every(t, &tx, func() types.Hash64 { return tx.HashInto(1) })
	hashcoverage.Every(t, &place, func() types.Hash64 { return place.HashInto(1) })
	hashcoverage.Every(t, &amount, func() types.Hash64 { return amount.HashInto(1) })
	hashcoverage.Every(t, &dice, func() types.Hash64 { return dice.HashInto(1) })
	hashcoverage.Every(t, &tenant, func() types.Hash64 { return tenant.HashInto(1) })
	hashcoverage.Every(t, &key, func() types.Hash64 { return key.HashInto(1) })
	hashcoverage.Every(t, &truth, func() types.Hash64 { return types.Hash64(1).MixBool(truth) })
}

// TestHashDependsOnOrder shows that another order gives another hash, and that small numbers do
// not collide.
func TestHashDependsOnOrder(t *testing.T) {
	seen := map[types.Hash64][2]uint64{}
	for a := range uint64(256) {
		for b := range uint64(256) {
			h := types.Hash64(0).Mix(a).Mix(b)
			if was, ok := seen[h]; ok {
				t.Fatalf("%v and %v have one hash", was, [2]uint64{a, b})
			}
			seen[h] = [2]uint64{a, b}
		}
	}
}

// TestHashSpreads shows that one changed bit, of the hash or of the value, changes half of the
// hash: tables use a part of it.
func TestHashSpreads(t *testing.T) {
	d := types.NewRand(7)
	changed := 0
	for range 100 {
		h, x := types.Hash64(d.Uint64n(1<<63)), d.Uint64n(1<<63)
		for bit := range 64 {
			was := h.Mix(x)
			for _, is := range []types.Hash64{h.Mix(x ^ 1<<bit), (h ^ 1<<bit).Mix(x)} {
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
