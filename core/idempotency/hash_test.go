package idempotency_test

import (
	"testing"
	"time"

	"macronode/core/command"
	"macronode/core/idempotency"
	"macronode/core/types"
)

// TestHashTellsWindowsApart: windows that differ in one respect have different hashes.
func TestHashTellsWindowsApart(t *testing.T) {
	type fact struct {
		key idempotency.Key
		was command.PriorOutcome
	}
	at := func(lsn types.LSN) command.PriorOutcome {
		return command.PriorOutcome{Hash: types.RequestHash{1}, ID: types.NewTxID(7, types.Position{LSN: lsn}), At: types.Time(lsn)}
	}
	seen := map[types.Hash64]string{}
	for what, change := range map[string]func(one, two *fact) (forget types.LSN){
		"equal":            func(_, _ *fact) types.LSN { return 0 },
		"a tenant":         func(one, _ *fact) types.LSN { one.key.Tenant = 3; return 0 },
		"tenants, swapped": func(one, two *fact) types.LSN { one.key.Tenant, two.key.Tenant = 2, 1; return 0 },
		"a name":           func(one, _ *fact) types.LSN { one.key.Name = types.NameHash{9}; return 0 },
		"names, swapped":   func(one, two *fact) types.LSN { one.key.Name, two.key.Name = two.key.Name, one.key.Name; return 0 },
		"a ref":            func(one, _ *fact) types.LSN { one.key.Ref = true; return 0 },
		"request hash":     func(one, _ *fact) types.LSN { one.was.Hash = types.RequestHash{2}; return 0 },
		"position": func(one, _ *fact) types.LSN {
			one.was.ID = types.NewTxID(7, types.Position{LSN: 1, Index: 1})
			return 0
		},
		"its journal":      func(one, _ *fact) types.LSN { one.was.ID = types.NewTxID(8, types.Position{LSN: 1}); return 0 },
		"its time":         func(one, _ *fact) types.LSN { one.was.At = 2; return 0 },
		"one is forgotten": func(_, _ *fact) types.LSN { return 1 },
		"how old that was": func(one, _ *fact) types.LSN { one.was.At = 0; return 1 },
	} {
		one, two := fact{idempotency.Key{Tenant: 1, Name: types.NameHash{1}}, at(1)}, fact{idempotency.Key{Tenant: 2, Name: types.NameHash{2}}, at(2)}
		forget := change(&one, &two)
		w := idempotency.New(idempotency.Limits{Keys: 4, PerTenant: 4, Tenants: 4, TTL: time.Hour}, 1)
		for _, f := range []fact{one, two} {
			w.Remember(f.key, f.was)
		}
		if w.Forget(forget); w.Check() != nil {
			t.Fatalf("%s: %v", what, w.Check())
		}
		if other, twice := seen[w.Hash()]; twice {
			t.Errorf("%s and %s have one hash", what, other)
		}
		seen[w.Hash()] = what
	}
}
