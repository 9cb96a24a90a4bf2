package quota_test

import (
	"testing"
	"time"

	"macronode/ci/takes"
	"macronode/core/quota"
	"macronode/core/words"
)

// TestBytes: counters take what they say, of each of their limits.
func TestBytes(t *testing.T) {
	rules := []quota.Rule{}
	for _, scope := range []words.Scope{words.OfPeer, words.OfKey, words.OfTenant} {
		rules = append(rules, quota.Rule{Scope: scope, Rate: 1, Every: time.Second, Burst: 1, Classes: quota.Of(words.Authed)})
	}
	for name, l := range map[string]quota.Limits{
		"peers":   {Peers: 100_000, Keys: 1, Tenants: 1, Places: 1},
		"keys":    {Peers: 1, Keys: 100_000, Tenants: 1, Places: 1},
		"tenants": {Peers: 1, Keys: 1, Tenants: 100_000, Places: 1},
		"places":  {Peers: 1, Keys: 1, Tenants: 1, Places: 100_000},
	} {
		takes.Says(t, name, quota.Bytes(rules, l), func() quota.Quota { return quota.New(rules, l, 1) })
	}
}
