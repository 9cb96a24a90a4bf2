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

// rules returns one rule of each scope; the rate of the first peer rule does not divide its
// period.
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

func TestHashCoversEveryField(t *testing.T) {
	s := subjectKey{1, 2}
	hashcoverage.Every(t, &s, func() types.Hash64 { return s.HashInto(1) })
	e := nanos{1, 2}
	hashcoverage.Every(t, &e, func() types.Hash64 { return endHash(subject(s, 1), e) })
	if subject(s, 1) == subject(s, 2) {
		t.Error("two rules of a subject hash as one")
	}
	q := some()
	not := []string{"gauges[].slot: follows from the rules", "gauges[].one: the same", "gauges[].full: the same", "gauges[].most: the same",
		"applies: follows from the rules", "keyed: the same", "routed: the same", "bytes: the same", "paces: the same",
		"limits: configuration", "seed: places rows, and differs between processes",
		"shared: reported, never decides", "openCharges: the number of open charges, see Check", "asked: not read in another step", "tables[].width: configuration",
		"heldCommon: the sum over the charges, see Check", "heldOf: summed up from the tabs, as Check holds", "tables[].times: held by their sum"}
	for _, field := range []string{"seed: places rows, and differs between processes", "sum: the same subjects; the other sum covers their counters",
		"index: where rows are found, which Check holds", "rows: held by the sum of their counters", "free: where no row is"} {
		not = append(not, "tables[].rows."+field)
	}
	hashcoverage.Every(t, &q, q.Hash, not...)
}

// TestCheckReportsBrokenInvariants breaks each invariant.
func TestCheckReportsBrokenInvariants(t *testing.T) {
	for what, c := range map[string]struct {
		breaks func(*Quota)
		want   string
	}{
		"unchanged": {func(*Quota) {}, ""},
		"a row without a counter": {func(q *Quota) {
			q.tables[types.ScopeTenant].rows.Put(subjectKey{of: 7}, noValue{})
		}, "G1"},
		"a counter without a row": {func(q *Quota) {
			q.tables[types.ScopeKey].rows.Drop(0)
		}, "G1"},
		"a key without a tenant": {func(q *Quota) {
			t := &q.tables[types.ScopeTenant]
			t.set(t.rows.Put(subjectKey{}, noValue{}), 0, nanos{ns: 1})
		}, "G1"},
		"a counter past MaxDebt":    {func(q *Quota) { q.tables[types.ScopePeer].set(0, 1, nanos{ns: int64(25 * time.Hour)}) }, "G2"},
		"an instance past MaxDebt":  {func(q *Quota) { q.common[0].ns = int64(25 * time.Hour) }, "G2"},
		"as many parts as make one": {func(q *Quota) { q.tables[types.ScopePeer].set(0, 0, nanos{ns: 1, part: 7}) }, "G3"},
		"a counter without a rule":  {func(q *Quota) { q.common[MaxRules-1].ns = 1 }, "G3"},
		"a wrong sum":               {func(q *Quota) { q.tables[types.ScopePeer].sum++ }, "G4"},
		"a counter that was moved":  {func(q *Quota) { q.tables[types.ScopePeer].times[0].ns++ }, "G4"},
		"a closed charge":           {func(q *Quota) { q.charges[2].open = false }, "G5"},
		"more held than charged":    {func(q *Quota) { q.charges[0].had = 1 }, "G5"},
		"held and not counted":      {func(q *Quota) { q.openCharges = 0 }, "G5"},
		"held bytes of a peer lost": {func(q *Quota) { q.heldOf[types.ScopePeer].sums[1] = 0 }, "G6"},
		"held bytes of a rule lost": {func(q *Quota) { q.heldCommon[5]++ }, "G6"},
		"held bytes without a charge": {func(q *Quota) {
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

// TestMisusePanics shows that misuse panics with an InvariantError.
func TestMisusePanics(t *testing.T) {
	for what, wrong := range map[string]func(){
		"a key without a tenant":  func() { q := some(); q.Take(0, Subject{Key: 1}, 0) },
		"a charge twice":          func() { q := some(); q.Admit(0, 0, Subject{}, 0) },
		"a part without a charge": func() { q := some(); q.close(1); q.ReservePart(0, 1, 1, 0) },
		"more than was had":       func() { q := some(); q.ReleasePart(0, 0, 1000) },
		"undone at work":          func() { q := some(); q.Undo(0, 0) },
		"rules without sense":     func() { New([]Rule{{Scope: types.ScopePeer}}, Limits{}, 1) },
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

// TestRuleLimits checks limits that a transcript cannot express.
func TestRuleLimits(t *testing.T) {
	if r := rules()[1]; (Rule{}).Check() == nil || CheckRules(make([]Rule, 2)) != nil || !errors.Is(CheckRules([]Rule{r, r, r, r, r, r, r, r, r, r, r, r, r, r, r, r, r}), ErrTooMany) {
		t.Error("17 rules or a zero rate are accepted, or an empty place is rejected")
	}
	r := rules()[1]
	if r.Unit = types.UnitBytes + 1; !errors.Is(r.Check(), ErrUnit) {
		t.Error("a unit that there is not makes sense")
	}
}

// TestSweepRemovesIdleRows: a sweep visits Looks rows, continues where it stopped, and reaches
// all of them. Only idle rows are removed.
func TestSweepRemovesIdleRows(t *testing.T) {
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

// TestOperationsDoNotAllocate runs after New.
func TestOperationsDoNotAllocate(t *testing.T) {
	q, now := some(), types.Instant(100)
	if n := testing.AllocsPerRun(1000, func() {
		now += types.Instant(time.Second)
		caller := Subject{Class: types.ClassAuthed, Peer: types.NameHash{byte(now >> 30)}, Key: 1 + types.KeyID(now)%5, Tenant: 1}
		q.Take(now, caller, 50)
		q.Take(now, caller, 500)
		q.Charge(now, caller, 1<<40)
		q.NextAdmit(now, 1)
		q.Spend(now, 1)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestBytesMatchesMemory shows that Bytes is the memory that New takes.
func TestBytesMatchesMemory(t *testing.T) {
	l := Limits{Peers: 1000, Keys: 100, Tenants: 10}
	q := New(rules(), l, 1)
	want := int64(cap(q.gauges)) * int64(unsafe.Sizeof(gauge{}))
	for scope, rows := range l.rows() {
		c := &q.tables[scope]
		want += int64(cap(q.heldOf[scope].sums))*8 + int64(slots(0))*8 // no places, so no rows
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
		t.Errorf("Bytes is %d, the memory is %d", got, want)
	}
	if got := Bytes(nil, l); got > 4096 {
		t.Errorf("without a rule it takes %d bytes", got)
	}
}

// slots returns the number of slots of a table for a number of rows.
func slots(rows int) int {
	n := 8
	for n < 2*rows {
		n *= 2
	}
	return n
}
