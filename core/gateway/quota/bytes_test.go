package quota_test

import (
	"testing"
	"time"

	"macronode/ci/memcheck"
	"macronode/core/gateway/quota"
	"macronode/core/types"
)

// TestBytesMatchesMemory shows that Bytes is the memory of the counters, for each limit.
func TestBytesMatchesMemory(t *testing.T) {
	rules := []quota.Rule{}
	for _, scope := range []types.QuotaScope{types.ScopePeer, types.ScopeKey, types.ScopeTenant} {
		rules = append(rules, quota.Rule{Scope: scope, Rate: 1, Every: time.Second, Burst: 1, Classes: quota.ClassSetOf(types.ClassAuthed)})
	}
	for name, l := range map[string]quota.Limits{
		"peers":   {Peers: 100_000, Keys: 1, Tenants: 1, Slots: 1},
		"keys":    {Peers: 1, Keys: 100_000, Tenants: 1, Slots: 1},
		"tenants": {Peers: 1, Keys: 1, Tenants: 100_000, Slots: 1},
		"places":  {Peers: 1, Keys: 1, Tenants: 1, Slots: 100_000},
	} {
		memcheck.Check(t, name, quota.Bytes(rules, l), func() quota.Quota { return quota.New(rules, l, 1) })
	}
}
