// Package rate compares one decision of core/gateway/quota with golang.org/x/time/rate, both for
// 256 tenants that come in turn and are admitted. `go test -bench . -count 20`; the smallest
// value is the cost, the rest is noise.
package rate

import (
	"strconv"
	"sync"
	"testing"
	"time"

	"golang.org/x/time/rate"

	"macronode/core/gateway/quota"
	"macronode/core/types"
)

const tenants = 256

// BenchmarkLimiter finds the limiter of a tenant in a locked map, and reads the clock.
func BenchmarkLimiter(b *testing.B) {
	limiters, names := limitersOf()
	var lock sync.RWMutex
	for i := range b.N {
		lock.RLock()
		l := limiters[names[i%tenants]]
		lock.RUnlock()
		if !l.Allow() {
			b.Fatal("refused")
		}
	}
}

// BenchmarkLimiterAt does the same without a lock, with a given time.
func BenchmarkLimiterAt(b *testing.B) {
	limiters, names := limitersOf()
	began := time.Now()
	for i := range b.N {
		if !limiters[names[i%tenants]].AllowN(began.Add(time.Duration(i)*1000), 1) {
			b.Fatal("refused")
		}
	}
}

func limitersOf() (map[string]*rate.Limiter, []string) {
	limiters, names := map[string]*rate.Limiter{}, make([]string, tenants)
	for i := range names {
		names[i] = "tenant-" + strconv.Itoa(i)
		limiters[names[i]] = rate.NewLimiter(1e9, 1000)
	}
	return limiters, names
}

// BenchmarkTake has one rule of tenants.
func BenchmarkTake(b *testing.B) { take(b, rule(types.ScopeTenant, types.UnitRequests)) }

// BenchmarkTakeThree has one rule of peers, one of keys, and one of tenants that counts bytes.
func BenchmarkTakeThree(b *testing.B) {
	take(b, rule(types.ScopePeer, types.UnitRequests), rule(types.ScopeKey, types.UnitRequests), rule(types.ScopeTenant, types.UnitBytes))
}

func rule(s types.QuotaScope, u types.QuotaUnit) quota.Rule {
	return quota.Rule{Scope: s, Unit: u, Rate: 1e9, Every: time.Second, Burst: 1000, Classes: quota.AllClasses}
}

func take(b *testing.B, rules ...quota.Rule) {
	q := quota.New(rules, quota.Limits{Peers: 4 * tenants, Keys: 4 * tenants, Tenants: tenants}, 7)
	whos := make([]quota.Subject, 4*tenants)
	for i := range whos {
		whos[i] = quota.Subject{Class: types.ClassAuthed, Peer: types.NameHash{byte(i), byte(i >> 8)}, Key: 1 + types.KeyID(i), Tenant: 1 + types.Tenant(i%tenants)}
	}
	for i := range b.N {
		if q.Take(types.Instant(i)*1000, whos[i%len(whos)], 100).Refused {
			b.Fatal("refused")
		}
	}
}
