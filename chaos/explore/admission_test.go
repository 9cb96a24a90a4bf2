package explore

import (
	"strings"
	"testing"
	"time"

	"macronode/core/event"
	"macronode/core/gateway/quota"
	"macronode/core/types"
)

// perHour returns a quota per hour.
func perHour(scope types.QuotaScope, many uint64, classes quota.ClassSet) quota.Rule {
	return quota.Rule{Scope: scope, Rate: many, Every: time.Hour, Burst: many, Classes: classes}
}

// halls are the scopes of admission.
func halls() map[string]struct {
	party Party
	want  []hallSight
} {
	keyed, strange := perHour(types.ScopeTenant, 2, quota.ClassSetOf(types.ClassInternal, types.ClassAuthed)), perHour(types.ScopePeer, 1, quota.ClassSetOf(types.ClassAnon))
	pace := quota.Rule{Scope: types.ScopeInstance, Rate: 100, Every: time.Second, Burst: 1, Classes: quota.AllClasses}
	gate := func(permits int, anon uint64) event.Policy {
		l := hallLimits(permits, 1)
		l.Weights[types.ClassAnon] = anon
		g := event.Policy{Version: uint64(10*permits) + anon, Quantum: l.Quantum, Weights: l.Weights, MaxWait: l.Wait, Routes: l.Routes}
		for f := range l.Facets {
			g.Facets[f] = event.FacetLimits(l.Facets[f])
		}
		return g
	}
	type scope = struct {
		party Party
		want  []hallSight
	}
	return map[string]scope{
		"two classes, a quota of each, a drain": {Party{asks: [hallGuests]uint8{2, 1, 2, 0}, limits: hallLimits(2, 1), quotas: []quota.Rule{keyed, strange}, left: hallBudget{drains: 1, leaves: 1, passes: 1}},
			[]hallSight{hallGoes, hallWaited, hallUsed, hallLate, hallShut, hallClosed, hallLeft, hallLeftGo}},
		"permits that are kept too long": {Party{asks: [hallGuests]uint8{2, 1, 2, 0}, limits: hallLimits(1, 1), left: hallBudget{jumps: 1, agains: 1, leaves: 1}},
			[]hallSight{hallGoes, hallWaited, hallFull, hallLate, hallTaken, hallLost, hallAgain, hallStale, hallLeft, hallLeftGo}},
		"the pace of the instance": {Party{asks: [hallGuests]uint8{2, 1, 1, 0}, limits: hallLimits(2, 2), quotas: []quota.Rule{pace}, left: hallBudget{passes: 2, drains: 1}},
			[]hallSight{hallGoes, hallWaited, hallShut, hallClosed, hallPaced}},
		"a gate that is changed": {Party{asks: [hallGuests]uint8{2, 1, 1, 0}, limits: hallLimits(1, 1), left: hallBudget{changes: 2, leaves: 1, passes: 1}, changes: []event.Policy{gate(2, 1), gate(1, 0)}},
			[]hallSight{hallGoes, hallWaited, hallFull, hallLate, hallLeft, hallUnserved, hallMore}},
	}
}

// TestAdmissionScopes: every schedule at the gate keeps every rule, and ends.
func TestAdmissionScopes(t *testing.T) {
	var sum explored
	for name, s := range halls() { //nolint:maporder // each is alone
		if !strings.Contains(name, *only) {
			continue
		}
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			p := s.party
			w := OpenHall(&p)
			if w.broke != nil {
				t.Fatal(w.broke)
			}
			r := Run(w, Scope{Name: name, Room: 1 << 21})
			t.Logf("%v", r)
			checkScope(t, r, s.want, func(one hallSight) uint64 { return p.Saw[one] })
			sum.add(r)
		})
	}
	t.Logf("evidence: explore.admission = %d, with %d transitions", sum.scopes, sum.transitions)
}
