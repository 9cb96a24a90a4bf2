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

// drawRule draws a rule that makes sense: slow ones, fast ones, and such as do not divide.
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
	if r.Check() != nil { // a burst that takes years
		r.Every = 7
	}
	return r
}

// twins are the machine, its dumb twin, one of another seed, and a copy left behind.
type twins struct {
	*rapid.T
	rules              []quota.Rule
	live, other, stays quota.Quota
	twin               model.State
	now                types.Instant
	retry              time.Duration // that was told last
	saw                map[string]int
}

func newTwins(t *rapid.T, saw map[string]int) *twins {
	w := &twins{T: t, saw: saw, now: rapid.SampledFrom([]types.Instant{0, 7, types.Instant(century)}).Draw(t, "now")}
	w.twin.Shared, w.twin.Debt, w.twin.Tabs = map[int]int{}, quota.MaxDebt, make([]*model.Tab, places)
	for i := range rapid.IntRange(1, 5).Draw(t, "rules") {
		r := drawRule(t)
		if i == 0 && rapid.Bool().Draw(t, "paces bodies") {
			r = quota.Rule{Scope: rapid.SampledFrom([]types.QuotaScope{types.ScopePeer, types.ScopeKey, types.ScopeTenant}).Draw(t, "of"), Unit: types.UnitBytes, Every: time.Second,
				Rate: rapid.SampledFrom([]uint64{7, 1000}).Draw(t, "a second"), Burst: 100, Classes: quota.AllClasses}
		}
		w.rules = append(w.rules, r)
	}
	w.twin.Rules = modelled(w.rules)
	// No more rows than the hand looks at: then it finds whatever is idle.
	l := quota.Limits{Peers: rapid.IntRange(0, quota.Looks).Draw(t, "peers"),
		Keys: rapid.IntRange(0, 3).Draw(t, "keys"), Tenants: rapid.IntRange(0, 2).Draw(t, "tenants"), Slots: places}
	w.twin.Subjects = [types.NumQuotaScopes]int{types.ScopePeer: l.Peers, types.ScopeKey: l.Keys, types.ScopeTenant: l.Tenants}
	seed := types.Hash64(rapid.Uint64().Draw(t, "seed"))
	w.live, w.other = quota.New(w.rules, l, seed), quota.New(w.rules, l, seed+1)
	return w
}

func (w *twins) drawWho() quota.Subject {
	who := quota.Subject{Class: types.Class(rapid.IntRange(0, 2).Draw(w.T, "class")), Peer: types.NameHash{byte(rapid.IntRange(0, 3).Draw(w.T, "peer")), 15: 1},
		Route: uint16(rapid.IntRange(0, 2).Draw(w.T, "route"))}
	if k := rapid.IntRange(0, 4).Draw(w.T, "key"); k > 0 {
		who.Key, who.Tenant = types.KeyID(k), types.Tenant(1+k%2)
	}
	return who
}

func (w *twins) drawBytes() uint64 {
	return rapid.SampledFrom([]uint64{0, 0, 1, 2, 99, 1 << 20, 1 << 40, 1<<64 - 1}).Draw(w.T, "bytes")
}

// pass lets time go on: a little, much, as long as was told, a nanosecond less; or back.
func (w *twins) pass(*rapid.T) {
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

func (w *twins) take(*rapid.T) {
	who, bytes := w.drawWho(), w.drawBytes()
	before := w.sharings()
	v := w.live.Take(w.now, who, bytes)
	if o := w.other.Take(w.now, who, bytes); o != v {
		w.Fatalf("%+v, of another seed %+v", v, o)
	}
	m := w.twin.Take(w.now, model.Who(who), bytes)
	want := quota.Result{Refused: m.Refused, Rule: uint8(m.Rule), Left: uint32(min(m.Left, 1<<32-1)), Reset: m.Reset, RetryAfter: m.Retry, Shadow: bitsOf(m.Shadow)}
	if v != want {
		w.Fatalf("at %d %+v with %d bytes: %+v, the twin says %+v", w.now, who, bytes, v, want)
	}
	w.note(v, bytes)
	if w.retry = max(v.RetryAfter, 1); v.Refused && v.RetryAfter > 0 {
		w.exact(v.RetryAfter, who, bytes, w.sharings() == before)
	}
}

func (w *twins) note(v quota.Result, bytes uint64) {
	switch {
	case v.Refused && w.rules[v.Rule-1].Scope == types.ScopeRoute:
		w.saw["route"]++
	case v.Refused && v.RetryAfter == 0:
		w.saw["never"]++
	case v.Refused:
		w.saw["refused"]++
	case v.Rule > 0 && w.rules[v.Rule-1].Unit == types.UnitBytes && bytes > w.rules[v.Rule-1].Burst:
		w.saw["beyond the burst"]++
	case v.Rule > 0:
		w.saw["admitted"]++
	}
	if v.Shadow != 0 {
		w.saw["shadow"]++
	}
}

// exact: who comes when it was told is admitted; a nanosecond earlier only who had no
// counter of its own could be.
func (w *twins) exact(retry time.Duration, who quota.Subject, bytes uint64, own bool) {
	var early, late quota.Quota
	w.live.CopyTo(&early)
	w.live.CopyTo(&late)
	if v := late.Take(w.now.Add(retry), who, bytes); v.Refused {
		w.Fatalf("told to come in %v, and refused: %+v", retry, v)
	}
	if v := early.Take(w.now.Add(retry-1), who, bytes); own && !v.Refused {
		w.Fatalf("told to come in %v, and admitted before: %+v", retry, v)
	}
}

func (w *twins) sharings() (n uint64) {
	for i := range w.rules {
		n += w.live.Shared(i + 1)
	}
	return n
}

func (w *twins) charge(*rapid.T) {
	who, bytes := w.drawWho(), w.drawBytes()
	w.live.Charge(w.now, who, bytes)
	w.other.Charge(w.now, who, bytes)
	w.twin.Charge(w.now, model.Who(who), bytes)
}

// spend asks when the next one may go, and goes; also where it should wait.
func (w *twins) spend(*rapid.T) {
	w.charge(w.T)
	bytes := w.drawBytes()
	at, rule := w.live.NextAdmit(w.now, bytes)
	wait, byWhom, ok := w.twin.Next(w.now, bytes)
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
	if at != want || int(rule) != byWhom {
		w.Fatalf("next at %d by rule %d, the twin says %d by %d", at, rule, want, byWhom)
	}
	if rapid.Bool().Draw(w.T, "spend") {
		shadow, other := w.live.Spend(w.now, bytes), w.other.Spend(w.now, bytes)
		if want := bitsOf(w.twin.Spend(w.now, bytes)); shadow != want || other != want {
			w.Fatalf("shadows %b and %b, the twin says %b", shadow, other, want)
		}
	}
}

// highest is the latest now that the twin was told.
func (w *twins) highest() types.Instant { return w.twin.Now }

func (w *twins) copy(*rapid.T) {
	w.live.CopyTo(&w.stays)
	w.live, w.stays = w.stays, w.live
	if w.live.Hash() != w.stays.Hash() {
		w.Fatalf("a copy has another hash: %s", hashcoverage.Apart(&w.live, &w.stays))
	}
}

func (w *twins) check(*rapid.T) {
	for _, q := range []*quota.Quota{&w.live, &w.other, &w.stays} {
		if err := q.Check(); err != nil {
			w.Fatalf("%v", err)
		}
	}
	if w.live.Hash() != w.other.Hash() {
		w.Fatalf("hashes %x and, of another seed, %x", w.live.Hash(), w.other.Hash())
	}
	for i := range w.rules {
		if got := w.live.Shared(i + 1); got != uint64(w.twin.Shared[i]) {
			w.Fatalf("rule %d was shared %d times, the twin says %d", i+1, got, w.twin.Shared[i])
		}
		if w.twin.Shared[i] > 0 {
			w.saw["shared"]++
		}
	}
}

// TestAgrees walks the machine and its twin through the same random life: every verdict,
// exact to the nanosecond, for rates from two a month to 2^50 in a nanosecond.
func TestAgrees(t *testing.T) {
	saw := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		w := newTwins(t, saw)
		t.Repeat(map[string]func(*rapid.T){
			"pass": w.pass, "pass again": w.pass, "take": w.take, "take again": w.take, "and again": w.take,
			"charge": w.charge, "spend": w.spend, "copy": w.copy, "change": w.change, "": w.check,
			"enter": w.enter, "upload": w.upload, "upload again": w.upload, "body": w.body, "body again": w.body, "settle": w.settle,
		})
	})
	for _, corner := range []string{"admitted", "refused", "never", "beyond the burst", "shadow", "shared", "paced", "back", "route", "tuned", "of another route", "emptied",
		"held", "refused a part", "given back", "owed", "undone", "dropped", "came beside what is held"} {
		if saw[corner] == 0 {
			t.Errorf("never saw: %s", corner)
		}
	}
}
