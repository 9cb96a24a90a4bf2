package quota

import (
	"errors"
	"strings"
	"testing"
	"time"
	"unsafe"

	"macronode/ci/hashcoverage"
	"macronode/core/types"
)

// rules are one of each scope; the rate of the first peer's rule does not divide.
func rules() []Rule {
	r := Rule{Rate: 7, Every: 3 * time.Second, Burst: 9, Classes: AllClasses}
	list := make([]Rule, 0, 6)
	for r.Scope = range types.NumQuotaScopes {
		if r.Route = 0; r.Scope == types.ScopeRoute {
			r.Route = 1
		}
		list = append(list, r)
	}
	return append(list, Rule{Scope: types.ScopePeer, Unit: types.UnitBytes, Rate: 1, Every: time.Second, Burst: 100, Classes: AllClasses})
}

func some() Quota {
	q := New(rules(), Limits{Peers: 2, Keys: 2, Tenants: 2, Slots: 3}, 1)
	for i := range 3 {
		q.Admit(types.Instant(10*i), uint32(i), Subject{Class: types.ClassAuthed, Peer: types.NameHash{byte(i)}, Key: types.KeyID(i + 1), Tenant: 1, Route: 1}, 5)
	}
	q.ChargeInstance(30, 0)
	if wait, v := q.ReservePart(31, 0, 97, time.Hour); wait == 0 {
		panic(v)
	}
	return q
}

func TestHashForgetsNothing(t *testing.T) {
	s := subjectKey{1, 2}
	hashcoverage.Every(t, &s, func() types.Hash64 { return s.HashInto(1) })
	e := nanos{1, 2}
	hashcoverage.Every(t, &e, func() types.Hash64 { return endHash(whom(s, 1), e) })
	if whom(s, 1) == whom(s, 2) {
		t.Error("two rules of a subject hash as one")
	}
	q := some()
	not := []string{"gauges[].slot: follows from the rules", "gauges[].one: the same", "gauges[].full: the same", "gauges[].most: the same",
		"applies: follows from the rules", "keyed: the same", "routed: the same", "bytes: the same", "paces: the same",
		"limits: configuration", "seed: places rows, and is another in every process",
		"shared: told, never decides", "openCharges: counted from the tabs, as Check holds", "asked: nothing of it is read in another step", "tables[].width: configuration",
		"heldCommon: summed up from the tabs, as Check holds", "heldOf: summed up from the tabs, as Check holds", "tables[].times: held by their sum"}
	for _, field := range []string{"seed: places rows, and is another in every process", "sum: the same subjects, whose counters the other sum holds",
		"index: where rows are found, which Check holds", "rows: held by the sum of their counters", "free: where no row is"} {
		not = append(not, "tables[].rows."+field)
	}
	hashcoverage.Every(t, &q, q.Hash, not...)
}

// TestCheckSees: each invariant, broken by hand, is named.
func TestCheckSees(t *testing.T) {
	for what, c := range map[string]struct {
		breaks func(*Quota)
		want   string
	}{
		"nothing": {func(*Quota) {}, ""},
		"a row that counts nothing": {func(q *Quota) {
			q.tables[types.ScopeTenant].rows.Put(subjectKey{of: 7}, noValue{})
		}, "G1"},
		"a counter without a row": {func(q *Quota) {
			q.tables[types.ScopeKey].rows.Drop(0)
		}, "G1"},
		"a key that is nobody's": {func(q *Quota) {
			t := &q.tables[types.ScopeTenant]
			t.set(t.rows.Put(subjectKey{}, noValue{}), 0, nanos{ns: 1})
		}, "G1"},
		"a counter beyond its debt": {func(q *Quota) { q.tables[types.ScopePeer].set(0, 1, nanos{ns: int64(25 * time.Hour)}) }, "G2"},
		"an instance beyond its":    {func(q *Quota) { q.common[0].ns = int64(25 * time.Hour) }, "G2"},
		"as many parts as make one": {func(q *Quota) { q.tables[types.ScopePeer].set(0, 0, nanos{ns: 1, part: 7}) }, "G3"},
		"a rule that is not there":  {func(q *Quota) { q.common[MaxRules-1].ns = 1 }, "G3"},
		"a sum that is another's":   {func(q *Quota) { q.tables[types.ScopePeer].sum++ }, "G4"},
		"a counter that was moved":  {func(q *Quota) { q.tables[types.ScopePeer].times[0].ns++ }, "G4"},
		"a tab of nobody":           {func(q *Quota) { q.charges[2].open = false }, "G5"},
		"more held than charged":    {func(q *Quota) { q.charges[0].had = 1 }, "G5"},
		"held and not counted":      {func(q *Quota) { q.openCharges = 0 }, "G5"},
		"held bytes of a peer lost": {func(q *Quota) { q.heldOf[types.ScopePeer].sums[1] = 0 }, "G6"},
		"held bytes of a rule lost": {func(q *Quota) { q.heldCommon[5]++ }, "G6"},
		"held bytes without a tab": {func(q *Quota) {
			q.heldOf[types.ScopeKey].add(subjectKey{of: 9}, 0, 1)
		}, "G6"},
	} {
		q := some()
		c.breaks(&q)
		if err := q.Check(); err == nil && c.want != "" || err != nil && (c.want == "" || !strings.Contains(err.Error(), c.want+":")) {
			t.Errorf("%s: %v, want %s", what, err, c.want)
		}
	}
}

// TestBrokenSaysSo: what the caller must not do is a bug of ours.
func TestBrokenSaysSo(t *testing.T) {
	for what, wrong := range map[string]func(){
		"a key of nobody":     func() { q := some(); q.Take(0, Subject{Key: 1}, 0) },
		"a tab twice":         func() { q := some(); q.Admit(0, 0, Subject{}, 0) },
		"a part of nobody's":  func() { q := some(); q.close(1); q.ReservePart(0, 1, 1, 0) },
		"more than was had":   func() { q := some(); q.ReleasePart(0, 0, 1000) },
		"undone at work":      func() { q := some(); q.Undo(0, 0) },
		"rules without sense": func() { New([]Rule{{Scope: types.ScopePeer}}, Limits{}, 1) },
	} {
		func() {
			defer func() {
				if _, broken := recover().(types.InvariantError); !broken {
					t.Errorf("%s is not broken", what)
				}
			}()
			wrong()
		}()
	}
}

// TestMany: what no story can say.
func TestMany(t *testing.T) {
	if r := rules()[1]; (Rule{}).Check() == nil || CheckRules(make([]Rule, 2)) != nil || !errors.Is(CheckRules([]Rule{r, r, r, r, r, r, r, r, r, r, r, r, r, r, r, r, r}), ErrTooMany) {
		t.Error("17 rules, or one of nothing, make sense; or an empty place makes none")
	}
	r := rules()[1]
	if r.Unit = types.UnitBytes + 1; !errors.Is(r.Check(), ErrUnit) {
		t.Error("a unit that there is not makes sense")
	}
}

// TestSweep: the hand looks at so many rows a step, goes on where it stood, and comes to
// all of them; only what is idle leaves.
func TestSweep(t *testing.T) {
	const n = 3 * Looks
	c := newCounters(n, 2, 1)
	for i := range uint64(n) {
		place := c.rows.Put(subjectKey{of: i}, noValue{})
		c.set(place, 0, nanos{ns: 5})
		c.set(place, 1, nanos{ns: 5, part: i % 2}) // the odd ones a little longer
	}
	for step := 1; step <= 3; step++ {
		if c.sweep(5); c.rows.Len() != n-step*Looks/2 {
			t.Fatalf("after %d steps %d of %d are left", step, c.rows.Len(), n)
		}
	}
	for i := range uint64(n) {
		if _, held := c.rows.Find(subjectKey{of: i}); held != (i%2 == 1) {
			t.Errorf("%d is held: %v", i, held)
		}
	}
	if err := c.check(func(subjectKey, int, nanos) error { return nil }); err != nil {
		t.Error(err)
	}
}

// TestNothingIsAllocated once it is made.
func TestNothingIsAllocated(t *testing.T) {
	q, now := some(), types.Instant(100)
	if n := testing.AllocsPerRun(1000, func() {
		now += types.Instant(time.Second)
		who := Subject{Class: types.ClassAuthed, Peer: types.NameHash{byte(now >> 30)}, Key: 1 + types.KeyID(now)%5, Tenant: 1}
		q.Take(now, who, 50)
		q.Take(now, who, 500)
		q.Charge(now, who, 1<<40)
		q.NextAdmit(now, 1)
		q.Spend(now, 1)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestBytes: what it says that it takes is what it has taken.
func TestBytes(t *testing.T) {
	l := Limits{Peers: 1000, Keys: 100, Tenants: 10}
	q := New(rules(), l, 1)
	want := int64(cap(q.gauges)) * int64(unsafe.Sizeof(gauge{}))
	for scope, rows := range l.rows() {
		c := &q.tables[scope]
		want += int64(cap(q.heldOf[scope].sums))*8 + int64(slots(0))*8 // no place, so no row
		want += int64(cap(c.times)) * int64(unsafe.Sizeof(nanos{}))
		if s := types.QuotaScope(scope); s != types.ScopeInstance && s != types.ScopeRoute {
			row := unsafe.Sizeof(struct {
				subjectKey
				noValue
			}{})
			want += int64(rows)*int64(row+4) + int64(slots(rows))*8
		} else {
			want += int64(slots(0)) * 8
		}
	}
	if got := Bytes(rules(), l); got != want {
		t.Errorf("it says that it takes %d bytes, and takes %d", got, want)
	}
	if got := Bytes(nil, l); got > 4096 {
		t.Errorf("without a rule it takes %d bytes", got)
	}
}

// slots is how many a table finds so many rows by.
func slots(rows int) int {
	n := 8
	for n < 2*rows {
		n *= 2
	}
	return n
}
