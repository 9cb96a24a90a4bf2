package quota_test

import (
	"math/big"
	"testing"
	"time"

	"pgregory.net/rapid"

	"macronode/core/gateway/quota"
	"macronode/core/types"
	model "macronode/models/quota"
)

// modelled returns rules in the form of the model. An empty place is a rule without scope.
func modelled(rules []quota.Rule) (all []model.Rule) {
	for _, r := range rules {
		m := model.Rule{Scope: r.Scope, Unit: r.Unit, Rate: r.Rate, Burst: r.Burst, Every: r.Every, Shadow: r.Shadow, Route: r.Route}
		for c := range types.NumClasses {
			m.For[c] = r.Classes.Has(c)
		}
		if r.Empty() {
			m.Scope = types.NumQuotaScopes
		}
		all = append(all, m)
	}
	return all
}

// change replaces the rules: some stay, some get another rate, some another scope, some are
// removed.
func (w *walk) change(*rapid.T) {
	next, fresh, mask := make([]quota.Rule, 0, quota.MaxRules), map[int]bool{}, uint16(0)
	for i := range rapid.IntRange(1, 6).Draw(w.T, "rules") {
		r := drawRule(w.T)
		how := rapid.IntRange(0, 6).Draw(w.T, "how")
		switch {
		case how == 0:
			r = quota.Rule{}
			w.saw["emptied"]++
		case how > 1 && i < len(w.rules) && !w.rules[i].Empty():
			was := w.rules[i]
			if r.Scope, r.Unit, r.Route, r.Classes = was.Scope, was.Unit, was.Route, was.Classes; how > 3 || r.Check() != nil {
				r = was
			} else {
				w.saw["tuned"]++
			}
			if how == 6 && r.Scope == types.ScopeRoute {
				r.Route = 3 - r.Route
				w.saw["of another route"]++
			}
		}
		if next = append(next, r); rapid.IntRange(0, 7).Draw(w.T, "fresh") == 0 {
			fresh[i], mask = true, mask|1<<i
		}
	}
	w.rules = next
	w.reference.Change(w.now, modelled(next), fresh)
	w.live.ApplyPolicy(w.now, next, mask)
	w.other.ApplyPolicy(w.now, next, mask)
}

// TestChangeKeepsTheBound: after a change a subject gets at most the new burst and the new rate.
// In any time around the change, it gets at most the larger burst and its part of each rate. An
// idle subject has the new burst.
func TestChangeKeepsTheBound(t *testing.T) {
	around := 0
	rapid.Check(t, func(t *rapid.T) {
		rule := func(name string) quota.Rule {
			return quota.Rule{Scope: types.ScopePeer, Classes: quota.AllClasses, Rate: rapid.SampledFrom([]uint64{1, 3, 7, 1000}).Draw(t, name),
				Every: rapid.SampledFrom([]time.Duration{7, 1000, time.Millisecond}).Draw(t, "every"), Burst: rapid.Uint64Range(1, 20).Draw(t, "burst")}
		}
		was, is := rule("was"), rule("is")
		q := quota.New([]quota.Rule{was}, quota.Limits{Peers: 1}, 1)
		const at = 5000 // time of the change
		var went []types.Instant
		ask := func(from, to int64) {
			now := types.Instant(from)
			for range rapid.IntRange(0, 12).Draw(t, "times") {
				if now = types.Instant(rapid.Int64Range(int64(now), to).Draw(t, "now")); !q.Take(now, quota.Subject{}, 0).Refused {
					for went = append(went, now); len(went) < 200 && !q.Take(now, quota.Subject{}, 0).Refused; {
						went = append(went, now)
					}
				}
			}
		}
		ask(0, at)
		before := len(went)
		q.ApplyPolicy(at, []quota.Rule{is}, 0)
		if ask(at, 3*at); before > 0 && before < len(went) {
			around++
		}
		for i := range went {
			for j := i; j < len(went); j++ {
				from, to := min(went[i], at), max(went[j], at)
				burst, old, next := max(was.Burst, is.Burst), time.Duration(at-from), time.Duration(to-at)
				if went[j] < at {
					burst, old = was.Burst, time.Duration(went[j]-from)
				}
				if i >= before {
					burst, next = is.Burst, time.Duration(to-went[i])
				}
				most := new(big.Rat).SetFrac(product(was.Rate, uint64(old)), product(1, uint64(was.Every)))
				most.Add(most, new(big.Rat).SetFrac(product(is.Rate, uint64(next)), product(1, uint64(is.Every))))
				most.Add(most, new(big.Rat).SetInt(product(burst, 1)))
				if new(big.Rat).SetInt64(int64(j-i+1)).Cmp(most) > 0 {
					t.Fatalf("%d went from %d to %d, of %+v and, since %d, %+v", j-i+1, went[i], went[j], was, at, is)
				}
			}
		}
		had := uint64(0)
		for idle := types.Instant(time.Hour); !q.Take(idle, quota.Subject{}, 0).Refused; {
			had++
		}
		if had != is.Burst {
			t.Fatalf("%d went at once, of %+v", had, is)
		}
	})
	if around == 0 {
		t.Error("no subject was active before and after a change")
	}
}

// TestChangeToSameRulesChangesNothing applies the same rules again.
func TestChangeToSameRulesChangesNothing(t *testing.T) {
	rules := []quota.Rule{{Scope: types.ScopePeer, Rate: 7, Every: 3 * time.Second, Burst: 9, Classes: quota.AllClasses}, {},
		{Scope: types.ScopeInstance, Rate: 7, Every: 3 * time.Second, Burst: 9, Classes: quota.AllClasses}}
	q := quota.New(rules, quota.Limits{Peers: 3}, 1)
	for i := range 5 {
		q.Take(5, quota.Subject{Peer: types.NameHash{byte(i)}}, 0)
		q.Spend(6, 0)
	}
	was := q.Hash()
	if q.ApplyPolicy(6, rules, 0); q.Hash() != was {
		t.Errorf("it hashes to %x, not to %x", q.Hash(), was)
	}
	if q.ApplyPolicy(6, rules, 1); q.Hash() == was || q.Subjects(types.ScopePeer) != 0 {
		t.Errorf("a fresh rule has %d counters", q.Subjects(types.ScopePeer))
	}
}

// TestGiveBackSkipsRulesChangedSince: what a request was charged before a change is not given
// refill to a rule that has not charged it, in any scope.
func TestGiveBackSkipsRulesChangedSince(t *testing.T) {
	rules := []quota.Rule{{Scope: types.ScopeTenant, Unit: types.UnitBytes, Rate: 1, Every: time.Hour, Burst: 100, Classes: quota.AllClasses},
		{Scope: types.ScopeInstance, Unit: types.UnitBytes, Rate: 1, Every: time.Hour, Burst: 100, Classes: quota.AllClasses}}
	for fresh, given := range [...]bool{true, false, true, false} {
		q, caller := quota.New(rules, quota.Limits{Tenants: 1, Slots: 2}, 1), quota.Subject{Key: 1, Tenant: 1}
		q.Admit(0, 0, caller, 100)
		q.ChargeInstance(0, 0)
		if q.ApplyPolicy(0, rules, uint16(fresh)); !given {
			q.Take(0, caller, 100)
		}
		q.Finish(0, 0, 0)
		if v := q.Take(0, caller, 100); v.Refused == given {
			t.Errorf("fresh %b: %+v", fresh, v)
		}
	}
	for fresh, want := range map[uint16]bool{0: true, 2: false} {
		q := quota.New(rules, quota.Limits{Tenants: 1, Slots: 2}, 1)
		q.Admit(0, 0, quota.Subject{Key: 1, Tenant: 1}, 100)
		q.ChargeInstance(0, 0)
		if q.ApplyPolicy(0, rules, fresh); !want {
			q.Spend(0, 100)
		}
		q.Finish(0, 0, 0)
		if at, _ := q.NextAdmit(0, 100); (at == 0) != want {
			t.Errorf("fresh %b: next at %d", fresh, at)
		}
	}
}

// TestGiveBackAfterChange: what a request is charged after a change is given back to the rule
// that charged it, even if the request is older; and no more.
func TestGiveBackAfterChange(t *testing.T) {
	rules := []quota.Rule{{Scope: types.ScopeTenant, Unit: types.UnitBytes, Rate: 1, Every: time.Hour, Burst: 100, Classes: quota.AllClasses},
		{Scope: types.ScopeInstance, Unit: types.UnitBytes, Rate: 1, Every: time.Hour, Burst: 100, Classes: quota.AllClasses}}
	for _, was := range []uint64{0, 30} { // charged before it
		q, caller := quota.New(rules, quota.Limits{Tenants: 1, Slots: 2}, 1), quota.Subject{Key: 1, Tenant: 1}
		q.Admit(0, 0, caller, was)
		q.ChargeInstance(0, 0)
		q.ApplyPolicy(0, rules, 3)
		if wait, v := q.ReservePart(0, 0, 60, 0); wait > 0 || v.Refused {
			t.Fatal(wait, v)
		}
		q.ChargeInstancePart(0, 0, 60)
		q.Take(0, caller, 40)
		q.Spend(0, 40)
		q.Finish(0, 0, 0)
		v := q.Take(0, caller, 61)
		if at, _ := q.NextAdmit(0, 61); !v.Refused || v.Left != 60 || at == 0 {
			t.Errorf("%d before it: %+v, next at %d: more was given back", was, v, at)
		}
		if at, _ := q.NextAdmit(0, 60); at != 0 {
			t.Errorf("%d before it: next at %d: less was given back", was, at)
		}
	}
}
