package idem_test

import (
	"testing"
	"time"

	"macronode/core/event"
	"macronode/core/idem"
	"macronode/core/words"
)

// TestWindowsAreApart: windows that are another in one thing have not one hash.
func TestWindowsAreApart(t *testing.T) {
	type fact struct {
		key idem.Key
		was event.Seen
	}
	at := func(lsn words.LSN) event.Seen {
		return event.Seen{Asked: words.Asked{1}, ID: words.NewTxID(7, words.Place{LSN: lsn}), At: words.Time(lsn)}
	}
	seen := map[words.Hash64]string{}
	for what, change := range map[string]func(one, two *fact) (forget words.LSN){
		"nothing":          func(_, _ *fact) words.LSN { return 0 },
		"a tenant":         func(one, _ *fact) words.LSN { one.key.Tenant = 3; return 0 },
		"tenants, swapped": func(one, two *fact) words.LSN { one.key.Tenant, two.key.Tenant = 2, 1; return 0 },
		"a name":           func(one, _ *fact) words.LSN { one.key.Name = words.ID{9}; return 0 },
		"names, swapped":   func(one, two *fact) words.LSN { one.key.Name, two.key.Name = two.key.Name, one.key.Name; return 0 },
		"a ref":            func(one, _ *fact) words.LSN { one.key.Ref = true; return 0 },
		"what it asked":    func(one, _ *fact) words.LSN { one.was.Asked = words.Asked{2}; return 0 },
		"where it stands":  func(one, _ *fact) words.LSN { one.was.ID = words.NewTxID(7, words.Place{LSN: 1, Index: 1}); return 0 },
		"its journal":      func(one, _ *fact) words.LSN { one.was.ID = words.NewTxID(8, words.Place{LSN: 1}); return 0 },
		"its time":         func(one, _ *fact) words.LSN { one.was.At = 2; return 0 },
		"one is forgotten": func(_, _ *fact) words.LSN { return 1 },
		"how old that was": func(one, _ *fact) words.LSN { one.was.At = 0; return 1 },
	} {
		one, two := fact{idem.Key{Tenant: 1, Name: words.ID{1}}, at(1)}, fact{idem.Key{Tenant: 2, Name: words.ID{2}}, at(2)}
		forget := change(&one, &two)
		w := idem.New(idem.Limits{Keys: 4, Share: 4, Tenants: 4, TTL: time.Hour}, 1)
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
