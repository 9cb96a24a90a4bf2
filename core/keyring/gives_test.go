package keyring_test

import (
	"testing"

	"macronode/core/event"
	"macronode/core/keyring"
	"macronode/core/words"
)

// TestGives: nobody gives what he has not, and whoever is bounded gives nothing; and
// somebody rules as long as one such key lives.
func TestGives(t *testing.T) {
	some, err := words.ParsePatterns("till:*")
	if err != nil {
		t.Fatal(err)
	}
	r := keyring.New(8, 1)
	if r.Ruled(0) {
		t.Error("nobody rules")
	}
	for _, k := range []event.Key{
		{ID: 1, Tenant: 1, Scopes: event.MayAdmin | event.MayRead},
		{ID: 2, Tenant: 1, Scopes: event.MayAdmin | event.MayRead, Accounts: some},
		{ID: 3, Tenant: 1, Scopes: event.MayRead},
		{ID: 4, Tenant: 1, Scopes: event.MayAdmin | event.MayRead, Expires: 10},
		{ID: 5, Tenant: 1, Scopes: event.MayAdmin | event.MayRead},
	} {
		r.Add(k)
	}
	r.Revoke(5)
	for _, c := range []struct {
		what   string
		at     words.Time
		caller words.KeyID
		of     words.Tenant
		scopes event.Scopes
		want   bool
	}{
		{"what it has", 0, 1, 1, event.MayRead, true},
		{"all that it has", 0, 1, 1, event.MayRead | event.MayAdmin, true},
		{"nothing", 0, 1, 1, 0, true},
		{"more than it has", 0, 1, 1, event.MayRead | event.MayIssue, false},
		{"as another tenant's", 0, 1, 2, event.MayRead, false},
		{"bounded", 0, 2, 1, event.MayRead, false},
		{"without admin", 0, 3, 1, event.MayRead, false},
		{"in its time", 9, 4, 1, event.MayRead, true},
		{"over its time", 10, 4, 1, event.MayRead, false},
		{"revoked", 0, 5, 1, event.MayRead, false},
		{"unknown", 0, 6, 1, 0, false},
	} {
		if got := r.Gives(c.at, c.caller, c.of, &event.Key{ID: 9, Tenant: 1, Scopes: c.scopes}); got != c.want {
			t.Errorf("%s: %v", c.what, got)
		}
	}
	if !r.Ruled(9) {
		t.Error("three keys rule")
	}
	if !r.Shares(2) || !r.Shares(1) {
		t.Error("there is room for both")
	}
	r.Add(event.Key{ID: 6, Tenant: 2})
	r.Add(event.Key{ID: 7, Tenant: 2})
	if r.Shares(2) || r.Shares(1) || r.Admit() != nil {
		t.Error("a quarter of eight is two, and the last is for the node's own")
	}
	for id := range words.KeyID(2) {
		r.Revoke(id + 1)
	}
	if !r.Ruled(9) || r.Ruled(10) {
		t.Error("the last one that rules ends at 10")
	}
}
