package access_test

import (
	"testing"

	"macronode/core/access"
	"macronode/core/event"
	"macronode/core/types"
)

// TestCanGrant: a key grants only scopes that it has, and a bounded key grants nothing. A keyring has an admin as
// long as it has one such key.
func TestCanGrant(t *testing.T) {
	some, err := types.ParsePatterns("till:*")
	if err != nil {
		t.Fatal(err)
	}
	r := access.New(8, 1)
	if r.HasAdmin(0) {
		t.Error("nobody rules")
	}
	for _, k := range []event.Key{
		{ID: 1, Tenant: 1, Scopes: event.ScopeAdmin | event.ScopeRead},
		{ID: 2, Tenant: 1, Scopes: event.ScopeAdmin | event.ScopeRead, Accounts: some},
		{ID: 3, Tenant: 1, Scopes: event.ScopeRead},
		{ID: 4, Tenant: 1, Scopes: event.ScopeAdmin | event.ScopeRead, Expires: 10},
		{ID: 5, Tenant: 1, Scopes: event.ScopeAdmin | event.ScopeRead},
	} {
		r.Add(k)
	}
	r.Revoke(5)
	for _, c := range []struct {
		what   string
		at     types.Time
		caller types.KeyID
		of     types.Tenant
		scopes event.Scopes
		want   bool
	}{
		{"what it has", 0, 1, 1, event.ScopeRead, true},
		{"all that it has", 0, 1, 1, event.ScopeRead | event.ScopeAdmin, true},
		{"nothing", 0, 1, 1, 0, true},
		{"more than it has", 0, 1, 1, event.ScopeRead | event.ScopeIssue, false},
		{"as another tenant's", 0, 1, 2, event.ScopeRead, false},
		{"bounded", 0, 2, 1, event.ScopeRead, false},
		{"without admin", 0, 3, 1, event.ScopeRead, false},
		{"in its time", 9, 4, 1, event.ScopeRead, true},
		{"over its time", 10, 4, 1, event.ScopeRead, false},
		{"revoked", 0, 5, 1, event.ScopeRead, false},
		{"unknown", 0, 6, 1, 0, false},
	} {
		if got := r.CanGrant(c.at, c.caller, c.of, &event.Key{ID: 9, Tenant: 1, Scopes: c.scopes}); got != c.want {
			t.Errorf("%s: %v", c.what, got)
		}
	}
	if !r.HasAdmin(9) {
		t.Error("three keys rule")
	}
	for id := range types.KeyID(2) {
		r.Revoke(id + 1)
	}
	if !r.HasAdmin(9) || r.HasAdmin(10) {
		t.Error("the last one that rules ends at 10")
	}
}

// TestShares: a tenant other than the default one has at most a quarter of the keys, or one if that is less, and
// the last free slot is for a bootstrap key. The problem names the limit.
func TestShares(t *testing.T) {
	for _, c := range []struct{ all, tenants, quarter, rest int }{{16, 2, 4, 7}, {16, 1, 4, 11}, {3, 1, 1, 1}, {2, 1, 1, 0}, {1, 1, 0, 0}} {
		r, id := access.New(c.all, 1), types.KeyID(0)
		fill := func(k event.Key) (n int, full event.Problem) {
			for full = r.Admit(&k); full == event.None; full = r.Admit(&k) {
				id++
				n, k.ID = n+1, id
				r.Add(k)
			}
			return n, full
		}
		for n := range c.tenants {
			want := event.TenantAPIKeysFull
			if c.all-c.quarter*(n+1) < 2 {
				want = event.APIKeysFull
			}
			if got, full := fill(event.Key{Tenant: types.DefaultTenant + 1 + types.Tenant(n)}); got != c.quarter || full != want {
				t.Errorf("of %d keys tenant %d had %d, want %d; and then: %q", c.all, n, got, c.quarter, full.Detail())
			}
		}
		if got, full := fill(event.Key{Tenant: types.DefaultTenant}); got != c.rest || full != event.APIKeysFull || r.Full() {
			t.Errorf("of %d keys the default tenant had %d, want %d; and then: %q", c.all, got, c.rest, full.Detail())
		}
		if got, full := fill(event.Key{Bootstrap: true, Tenant: types.DefaultTenant}); got != 1 || full != event.APIKeysFull || !r.Full() {
			t.Errorf("of %d keys a bootstrap key had %d; and then: %q", c.all, got, full.Detail())
		}
	}
}
