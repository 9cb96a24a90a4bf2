package quota_test

import (
	"testing"
	"time"

	"macronode/core/gateway/quota"
	"macronode/core/types"
)

// three returns the rules of an ordinary gateway: for peers, keys and tenants.
func three() []quota.Rule {
	return []quota.Rule{
		{Scope: types.ScopePeer, Rate: 1 << 40, Every: time.Second, Burst: 1 << 20, Classes: quota.AllClasses},
		{Scope: types.ScopeKey, Rate: 1 << 40, Every: time.Second, Burst: 1 << 20, Classes: quota.AllClasses},
		{Scope: types.ScopeTenant, Unit: types.UnitBytes, Rate: 10_000_000_000, Every: time.Second, Burst: 1 << 40, Classes: quota.AllClasses},
	}
}

func subjectOf(i int) quota.Subject {
	return quota.Subject{Class: types.ClassAuthed, Peer: types.NameHash{byte(i), byte(i >> 8)}, Key: types.KeyID(1 + i), Tenant: types.Tenant(1 + i&255)}
}

// BenchmarkTake is one decision: three rules, 1,024 keys of 256 tenants.
func BenchmarkTake(b *testing.B) {
	q := quota.New(three(), quota.Limits{Peers: 65536, Keys: 1024, Tenants: 256}, 7)
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		if v := q.Take(types.Instant(i)*1000, subjectOf(i&1023), 100); v.Refused {
			b.Fatal(v)
		}
	}
}

// BenchmarkTakeTenant is one decision of one rule of tenants.
func BenchmarkTakeTenant(b *testing.B) {
	rules := []quota.Rule{{Scope: types.ScopeTenant, Rate: 1 << 40, Every: time.Second, Burst: 1 << 20, Classes: quota.AllClasses}}
	q := quota.New(rules, quota.Limits{Tenants: 256}, 7)
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		if v := q.Take(types.Instant(i)*1000, subjectOf(i&255), 100); v.Refused {
			b.Fatal(v)
		}
	}
}

// BenchmarkFlood sends every request from another peer; no row is idle.
func BenchmarkFlood(b *testing.B) {
	rules := []quota.Rule{{Scope: types.ScopePeer, Rate: 1, Every: time.Hour, Burst: 1, Classes: quota.AllClasses}}
	q := quota.New(rules, quota.Limits{Peers: 65536}, 7)
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		q.Take(types.Instant(i), quota.Subject{Class: types.ClassAnon, Peer: types.NameHash{byte(i), byte(i >> 8), byte(i >> 16), byte(i >> 24)}}, 0)
	}
}

// BenchmarkNextSpend is the pace of the instance.
func BenchmarkNextSpend(b *testing.B) {
	rules := []quota.Rule{{Scope: types.ScopeInstance, Rate: 5000, Every: time.Second, Burst: 100, Classes: quota.AllClasses}}
	q := quota.New(rules, quota.Limits{}, 7)
	b.ReportAllocs()
	b.ResetTimer()
	now := types.Instant(0)
	for range b.N {
		now, _ = q.NextAdmit(now, 0)
		q.Spend(now, 0)
	}
}

// BenchmarkRenew changes the rules of 65,536 peers, all of which have counters.
func BenchmarkRenew(b *testing.B) {
	const peers = 1 << 16
	rules := [2][]quota.Rule{}
	for i := range rules {
		rules[i] = []quota.Rule{{Scope: types.ScopePeer, Rate: 1, Every: time.Hour, Burst: uint64(100 + i), Classes: quota.AllClasses}}
	}
	q := quota.New(rules[0], quota.Limits{Peers: peers}, 1)
	for i := range peers {
		q.Take(0, quota.Subject{Peer: peer(i)}, 0)
	}
	b.ReportAllocs()
	for i := 1; b.Loop(); i++ {
		q.ApplyPolicy(0, rules[i%2], 0)
	}
	if q.Subjects(types.ScopePeer) != peers {
		b.Fatal("counters are lost")
	}
}

// BenchmarkTakeBesideHeldBodies admits a request while 1,000 others of its tenant hold bytes.
func BenchmarkTakeBesideHeldBodies(b *testing.B) {
	const held = 1000
	rules := []quota.Rule{{Scope: types.ScopeTenant, Unit: types.UnitBytes, Rate: 1 << 20, Every: time.Second, Burst: 1 << 20, Classes: quota.AllClasses}}
	q := quota.New(rules, quota.Limits{Tenants: 256, Slots: held}, 7)
	caller := quota.Subject{Class: types.ClassAuthed, Key: 1, Tenant: 1}
	for place := range uint32(held) {
		q.Admit(0, place, caller, 0)
		q.ChargeInstance(0, place)
		q.ReservePart(0, place, 64<<10, time.Hour)
	}
	b.ReportAllocs()
	for b.Loop() {
		q.Take(0, caller, 0)
	}
}
