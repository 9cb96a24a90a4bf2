package quota_test

import (
	"math/big"
	"testing"
	"time"

	"pgregory.net/rapid"

	"macronode/core/gateway/quota"
	"macronode/core/types"
)

// within reports whether had ≤ burst + rate·t/every, without rounding.
func within(had uint64, r quota.Rule, t time.Duration) bool {
	most := new(big.Int).Add(product(r.Burst, uint64(r.Every)), product(r.Rate, uint64(t)))
	return product(had, uint64(r.Every)).Cmp(most) <= 0
}

func product(a, b uint64) *big.Int {
	return new(big.Int).Mul(new(big.Int).SetUint64(a), new(big.Int).SetUint64(b))
}

// TestRateIsABound: over any schedule a subject gets at most burst + rate·t. A subject that asks
// at each instant until it is rejected, and asks again before its burst is full, gets all of that
// except a fraction of a unit.
func TestRateIsABound(t *testing.T) {
	hungry := 0
	rapid.Check(t, func(t *rapid.T) {
		r := quota.Rule{Scope: types.ScopePeer, Classes: quota.AllClasses,
			Rate:  rapid.SampledFrom([]uint64{1, 3, 1000, 10_000_000_000}).Draw(t, "rate"),
			Every: rapid.SampledFrom([]time.Duration{7, time.Second, time.Hour}).Draw(t, "every"),
			Burst: rapid.Uint64Range(2, 20).Draw(t, "burst")}
		q := quota.New([]quota.Rule{r}, quota.Limits{Peers: 1}, 1)
		began := rapid.SampledFrom([]types.Instant{0, types.Instant(century)}).Draw(t, "began")
		soon := int64(uint64(r.Every) * (r.Burst - 1) / r.Rate) // before the burst is full
		had, now, lost := uint64(0), began, false
		for i := range rapid.IntRange(1, 40).Draw(t, "times") {
			step := rapid.OneOf(rapid.Int64Range(0, soon), rapid.Int64Range(0, 2*soon+2)).Draw(t, "step")
			if i == 0 {
				step = 0
			}
			lost = lost || step > soon
			now = now.Add(time.Duration(step))
			since := time.Duration(now - began)
			for !q.Take(now, quota.Subject{}, 0).Refused {
				if had++; !within(had, r, since) {
					t.Fatalf("%d had after %v of %+v", had, since, r)
				}
			}
			if !lost && within(had+1, r, since) {
				t.Fatalf("only %d had after %v of %+v", had, since, r)
			}
		}
		if !lost {
			hungry++
		}
	})
	if hungry == 0 {
		t.Error("no subject asked without pause")
	}
}

// TestRateIsExactForACentury: rates of one an hour and of ten gigabytes a second are exact over a
// century. A caller that waits for RetryAfter gets unit n when burst + rate·t first holds it.
func TestRateIsExactForACentury(t *testing.T) {
	for _, c := range []struct {
		rate  uint64
		every time.Duration
		bytes uint64 // per request; half of the burst
	}{{1, time.Hour, 1}, {10_000_000_000, time.Second, 123_456_789_012_345}, {7, 3 * time.Second, 1 << 20}, {quota.MaxRate - 1, time.Second, 1 << 62}} {
		r := quota.Rule{Scope: types.ScopePeer, Unit: types.UnitBytes, Rate: c.rate, Every: c.every, Burst: 2 * c.bytes, Classes: quota.AllClasses}
		if err := r.Check(); err != nil {
			t.Fatalf("%+v: %v", r, err)
		}
		q := quota.New([]quota.Rule{r}, quota.Limits{Peers: 1}, 1)
		now, last, times := types.Instant(0), types.Instant(0), uint64(0)
		for now < types.Instant(century) {
			v := q.Take(now, quota.Subject{}, c.bytes)
			if !v.Refused {
				last = now
				times++
			} else if now = now.Add(v.RetryAfter); v.RetryAfter <= 0 {
				t.Fatalf("%+v: rejected at %d without RetryAfter", r, now)
			}
		}
		wants := product(times-2, c.bytes)
		wants.Mul(wants, big.NewInt(int64(c.every))).Add(wants, big.NewInt(int64(c.rate-1))).Quo(wants, big.NewInt(int64(c.rate)))
		if wants.Cmp(big.NewInt(int64(last))) != 0 {
			t.Errorf("%+v: the %d-th at %d, want %d", r, times, last, wants)
		}
	}
}

// TestRejectionChangesNothing: a rejected request changes no counter.
func TestRejectionChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWalk(t, map[string]int{})
		w.live = quota.New(w.rules, quota.Limits{Peers: 8, Keys: 8, Tenants: 8}, 1)
		for range 30 {
			caller, bytes := w.drawSubject(), w.drawBytes()
			if w.pass(t); rapid.Bool().Draw(t, "charge") {
				w.live.Charge(w.now, caller, bytes)
			}
			w.live.Charge(w.now, caller, 0) // advance the time
			was := w.live.Hash()
			if v := w.live.Take(w.now, caller, bytes); v.Refused && w.live.Hash() != was {
				t.Fatalf("%+v changed what is counted", v)
			}
		}
	})
}

// TestPeersDoNotAffectKeys: the results of callers with a key do not depend on requests without a
// key, whatever address or tenant those claim.
func TestPeersDoNotAffectKeys(t *testing.T) {
	refused := 0
	rapid.Check(t, func(t *rapid.T) {
		rules := []quota.Rule{{Scope: types.ScopePeer, Rate: 1, Every: time.Second, Burst: 2, Classes: quota.ClassSetOf(types.ClassAnon)}}
		for range 4 {
			if r := drawRule(t); r.Scope == types.ScopeKey || r.Scope == types.ScopeTenant {
				rules = append(rules, r)
			}
		}
		l := quota.Limits{Peers: 2, Keys: rapid.IntRange(0, 3).Draw(t, "keys"), Tenants: rapid.IntRange(0, 3).Draw(t, "tenants")}
		alone, beset := quota.New(rules, l, 1), quota.New(rules, l, 1)
		w := &walk{T: t}
		for range 30 {
			w.now = w.now.Add(rapid.SampledFrom([]time.Duration{0, 1, time.Second, time.Hour}).Draw(t, "step"))
			for range rapid.IntRange(0, 5).Draw(t, "keyless") {
				caller := w.drawSubject()
				caller.Class, caller.Key = types.Class(rapid.IntRange(0, 2).Draw(t, "class")), 0
				beset.Take(w.now, caller, w.drawBytes())
				beset.Charge(w.now, caller, w.drawBytes())
			}
			caller, bytes := w.drawSubject(), w.drawBytes()
			if caller.Class = types.ClassAuthed; caller.Key == 0 {
				continue
			}
			v, want := beset.Take(w.now, caller, bytes), alone.Take(w.now, caller, bytes)
			if v != want {
				t.Fatalf("%+v beside requests without a key, %+v alone", v, want)
			}
			if v.Refused {
				refused++
			}
		}
		for i, r := range rules {
			if r.Scope != types.ScopePeer && beset.Shared(i+1) != alone.Shared(i+1) {
				t.Fatalf("rule %d applies to requests without a key", i+1)
			}
		}
	})
	if refused == 0 {
		t.Error("no request was ever rejected")
	}
}

// TestAdmitTimeIsALowerBound: a request behind others is admitted no earlier than AdmitTime. With
// one rule it is at most a nanosecond later for each request before it, because those are
// admitted at whole nanoseconds.
func TestAdmitTimeIsALowerBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var rules []quota.Rule
		for range rapid.IntRange(1, 3).Draw(t, "rules") {
			rules = append(rules, quota.Rule{Scope: types.ScopeInstance, Classes: quota.AllClasses, Every: time.Second, Shadow: rapid.IntRange(0, 3).Draw(t, "shadow") == 0,
				Rate: rapid.SampledFrom([]uint64{0, 1, 3, 7000, 7000, 7000}).Draw(t, "rate"), Burst: rapid.Uint64Range(1, 9).Draw(t, "burst")})
		}
		q, now := quota.New(rules, quota.Limits{}, 1), types.Instant(0)
		for range rapid.IntRange(0, 20).Draw(t, "before") {
			now += types.Instant(rapid.IntRange(0, 1_000_000).Draw(t, "step"))
			q.Spend(now, 0)
		}
		ahead := rapid.IntRange(0, 20).Draw(t, "ahead")
		want := q.AdmitTime(now, ahead)
		at := now
		for range ahead {
			if at, _ = q.NextAdmit(at, 0); at == quota.Never {
				break
			}
			q.Spend(at, 0)
		}
		if at, _ = q.NextAdmit(at, 0); at < want || len(rules) == 1 && at != want && at-want > types.Instant(ahead) {
			t.Fatalf("behind %d at %d, was to go at %d", ahead, at, want)
		}
	})
}
