package quota_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"macronode/ci/hashcoverage"
	"macronode/core/gateway/quota"
	"macronode/core/types"
	model "macronode/models/quota"
)

const century = 100 * 365 * 24 * time.Hour

// drawRule draws a valid rule: slow, fast, or with a rate that does not divide its period.
func drawRule(t *rapid.T) quota.Rule {
	r := quota.Rule{
		Scope:   types.QuotaScope(rapid.IntRange(0, int(types.NumQuotaScopes)-1).Draw(t, "scope")),
		Unit:    types.QuotaUnit(rapid.IntRange(0, 1).Draw(t, "unit")),
		Rate:    rapid.SampledFrom([]uint64{0, 1, 2, 3, 7, 1000, 10_000_000_000, quota.MaxRate - 1, quota.MaxRate}).Draw(t, "rate"),
		Every:   rapid.SampledFrom([]time.Duration{1, 7, time.Second, time.Hour, quota.MaxEvery}).Draw(t, "every"),
		Burst:   rapid.SampledFrom([]uint64{1, 2, 3, 5, 100, 1 << 20}).Draw(t, "burst"),
		Classes: quota.ClassSetOf(types.ClassInternal, types.Class(rapid.IntRange(1, 2).Draw(t, "class"))),
		Shadow:  rapid.IntRange(0, 4).Draw(t, "shadow") == 0,
	}
	if r.Scope == types.ScopeInstance {
		r.Classes = quota.AllClasses
	}
	if r.Scope == types.ScopeRoute {
		r.Route = uint16(rapid.IntRange(1, 2).Draw(t, "route"))
	}
	if r.Check() != nil { // the burst refills too slowly
		r.Every = 7
	}
	return r
}

// walk is a quota, its reference model, a quota with another seed, and an earlier copy.
type walk struct {
	*rapid.T
	rules              []quota.Rule
	live, other, stays quota.Quota
	reference          model.State
	now                types.Instant
	retry              time.Duration // last RetryAfter
	saw                map[string]int
}

func newWalk(t *rapid.T, saw map[string]int) *walk {
	w := &walk{T: t, saw: saw, now: rapid.SampledFrom([]types.Instant{0, 7, types.Instant(century)}).Draw(t, "now")}
	w.reference.Shared, w.reference.Debt, w.reference.Charges = map[int]int{}, quota.MaxDebt, make([]*model.Charge, places)
	for i := range rapid.IntRange(1, 5).Draw(t, "rules") {
		r := drawRule(t)
		if i == 0 && rapid.Bool().Draw(t, "paces bodies") {
			r = quota.Rule{Scope: rapid.SampledFrom([]types.QuotaScope{types.ScopePeer, types.ScopeKey, types.ScopeTenant}).Draw(t, "of"), Unit: types.UnitBytes, Every: time.Second,
				Rate: rapid.SampledFrom([]uint64{7, 1000}).Draw(t, "a second"), Burst: 100, Classes: quota.AllClasses}
		}
		w.rules = append(w.rules, r)
	}
	w.reference.Rules = modelled(w.rules)
	// No more rows than one sweep visits, so that a sweep finds every idle row.
	l := quota.Limits{Peers: rapid.IntRange(0, quota.Looks).Draw(t, "peers"),
		Keys: rapid.IntRange(0, 3).Draw(t, "keys"), Tenants: rapid.IntRange(0, 2).Draw(t, "tenants"), Slots: places}
	w.reference.Subjects = [types.NumQuotaScopes]int{types.ScopePeer: l.Peers, types.ScopeKey: l.Keys, types.ScopeTenant: l.Tenants}
	seed := types.Hash64(rapid.Uint64().Draw(t, "seed"))
	w.live, w.other = quota.New(w.rules, l, seed), quota.New(w.rules, l, seed+1)
	return w
}

func (w *walk) drawSubject() quota.Subject {
	caller := quota.Subject{Class: types.Class(rapid.IntRange(0, 2).Draw(w.T, "class")), Peer: types.NameHash{byte(rapid.IntRange(0, 3).Draw(w.T, "peer")), 15: 1},
		Route: uint16(rapid.IntRange(0, 2).Draw(w.T, "route"))}
	if k := rapid.IntRange(0, 4).Draw(w.T, "key"); k > 0 {
		caller.Key, caller.Tenant = types.KeyID(k), types.Tenant(1+k%2)
	}
	return caller
}

func (w *walk) drawBytes() uint64 {
	return rapid.SampledFrom([]uint64{0, 0, 1, 2, 99, 1 << 20, 1 << 40, 1<<64 - 1}).Draw(w.T, "bytes")
}

// pass advances the time: a little, a lot, by the last RetryAfter, a nanosecond less; or moves it
// back.
func (w *walk) pass(*rapid.T) {
	step := rapid.SampledFrom([]time.Duration{1, 13, time.Second, time.Hour, 400 * 24 * time.Hour, w.retry, w.retry - 1, -1, -time.Hour}).Draw(w.T, "step")
	if w.now = max(0, w.now.Add(step)); step < 0 {
		w.saw["back"]++
	}
}

func bitsOf(set map[int]bool) (b uint16) {
	for rule := range set {
		b |= 1 << (rule - 1)
	}
	return b
}

func (w *walk) take(*rapid.T) {
	caller, bytes := w.drawSubject(), w.drawBytes()
	before := w.sharings()
	v := w.live.Take(w.now, caller, bytes)
	if o := w.other.Take(w.now, caller, bytes); o != v {
		w.Fatalf("%+v, of another seed %+v", v, o)
	}
	m := w.reference.Take(w.now, model.Subject(caller), bytes)
	want := quota.Result{Refused: m.Refused, Rule: uint8(m.Rule), Left: uint32(min(m.Left, 1<<32-1)), Reset: m.Reset, RetryAfter: m.Retry, Shadow: bitsOf(m.Shadow)}
	if v != want {
		w.Fatalf("at %d %+v with %d bytes: %+v, the model has %+v", w.now, caller, bytes, v, want)
	}
	w.note(v, bytes)
	if w.retry = max(v.RetryAfter, 1); v.Refused && v.RetryAfter > 0 {
		w.exact(v.RetryAfter, caller, bytes, w.sharings() == before)
	}
}

func (w *walk) note(v quota.Result, bytes uint64) {
	switch {
	case v.Refused && w.rules[v.Rule-1].Scope == types.ScopeRoute:
		w.saw["route"]++
	case v.Refused && v.RetryAfter == 0:
		w.saw["never"]++
	case v.Refused:
		w.saw["refused"]++
	case v.Rule > 0 && w.rules[v.Rule-1].Unit == types.UnitBytes && bytes > w.rules[v.Rule-1].Burst:
		w.saw["more than a burst"]++
	case v.Rule > 0:
		w.saw["admitted"]++
	}
	if v.Shadow != 0 {
		w.saw["shadow"]++
	}
}

// exact: a request after RetryAfter is admitted; a nanosecond earlier only a subject without its
// own counter can be.
func (w *walk) exact(retry time.Duration, caller quota.Subject, bytes uint64, own bool) {
	var early, late quota.Quota
	w.live.CopyTo(&early)
	w.live.CopyTo(&late)
	if v := late.Take(w.now.Add(retry), caller, bytes); v.Refused {
		w.Fatalf("rejected after RetryAfter %v: %+v", retry, v)
	}
	if v := early.Take(w.now.Add(retry-1), caller, bytes); own && !v.Refused {
		w.Fatalf("admitted before RetryAfter %v: %+v", retry, v)
	}
}

func (w *walk) sharings() (n uint64) {
	for i := range w.rules {
		n += w.live.Shared(i + 1)
	}
	return n
}

func (w *walk) charge(*rapid.T) {
	caller, bytes := w.drawSubject(), w.drawBytes()
	w.live.Charge(w.now, caller, bytes)
	w.other.Charge(w.now, caller, bytes)
	w.reference.Charge(w.now, model.Subject(caller), bytes)
}

// spend asks for the next admission and spends at that time, or too early.
func (w *walk) spend(*rapid.T) {
	w.charge(w.T)
	bytes := w.drawBytes()
	at, rule := w.live.NextAdmit(w.now, bytes)
	wait, byRule, ok := w.reference.Next(w.now, bytes)
	want := quota.Never
	if ok {
		if want = w.now; wait > 0 {
			want = max(w.now, w.highest()).Add(wait)
			w.saw["paced"]++
			if again, _ := w.live.NextAdmit(want, bytes); again != want {
				w.Fatalf("next at %d, and then at %d", want, again)
			}
			if again, _ := w.live.NextAdmit(want-1, bytes); again != want {
				w.Fatalf("next at %d, and a little earlier at %d", want, again)
			}
		}
	}
	if at != want || int(rule) != byRule {
		w.Fatalf("next at %d by rule %d, the model has %d by %d", at, rule, want, byRule)
	}
	if rapid.Bool().Draw(w.T, "spend") {
		shadow, other := w.live.Spend(w.now, bytes), w.other.Spend(w.now, bytes)
		if want := bitsOf(w.reference.Spend(w.now, bytes)); shadow != want || other != want {
			w.Fatalf("shadows %b and %b, the model has %b", shadow, other, want)
		}
	}
}

// highest is the latest time that the model was given.
func (w *walk) highest() types.Instant { return w.reference.Now }

func (w *walk) copy(*rapid.T) {
	w.live.CopyTo(&w.stays)
	w.live, w.stays = w.stays, w.live
	if w.live.Hash() != w.stays.Hash() {
		w.Fatalf("a copy has another hash: %s", hashcoverage.Apart(&w.live, &w.stays))
	}
}

func (w *walk) check(*rapid.T) {
	for _, q := range []*quota.Quota{&w.live, &w.other, &w.stays} {
		if err := q.Check(); err != nil {
			w.Fatalf("%v", err)
		}
	}
	if w.live.Hash() != w.other.Hash() {
		w.Fatalf("hashes %x and, of another seed, %x", w.live.Hash(), w.other.Hash())
	}
	for i := range w.rules {
		if got := w.live.Shared(i + 1); got != uint64(w.reference.Shared[i]) {
			w.Fatalf("rule %d was shared %d times, the model has %d", i+1, got, w.reference.Shared[i])
		}
		if w.reference.Shared[i] > 0 {
			w.saw["shared"]++
		}
	}
}

// TestMatchesModel compares every result with the reference model, exact to the nanosecond, for
// rates from two a month to 2^50 in a nanosecond.
func TestMatchesModel(t *testing.T) {
	saw := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		w := newWalk(t, saw)
		t.Repeat(map[string]func(*rapid.T){
			"pass": w.pass, "pass again": w.pass, "take": w.take, "take again": w.take, "and again": w.take,
			"charge": w.charge, "spend": w.spend, "copy": w.copy, "change": w.change, "": w.check,
			"enter": w.admitRandom, "upload": w.upload, "upload again": w.upload, "body": w.body, "body again": w.body, "settle": w.finish,
		})
	})
	for _, corner := range []string{"admitted", "refused", "never", "more than a burst", "shadow", "shared", "paced", "back", "route", "tuned", "of another route", "emptied",
		"held", "refused a part", "given back", "owed", "undone", "dropped", "admitted beside held bytes"} {
		if saw[corner] == 0 {
			t.Errorf("never saw: %s", corner)
		}
	}
}
