package access_test

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	"macronode/core/access"
	"macronode/core/event"
	"macronode/core/types"
	model "macronode/models/access"
)

// TestKeysAreApart: keyrings whose only keys differ in one field have different hashes.
func TestKeysAreApart(t *testing.T) {
	base := model.Key{ID: 2, Tenant: 2, Label: "till", Accounts: "a,b:*", Assets: "EUR", Expires: 5}
	seen := map[types.Hash64]string{}
	for what, change := range map[string]func(*model.Key){
		"nothing":      func(*model.Key) {},
		"its id":       func(k *model.Key) { k.ID = 3 },
		"its tenant":   func(k *model.Key) { k.Tenant = 3 },
		"its label":    func(k *model.Key) { k.Label = "tilt" },
		"no label":     func(k *model.Key) { k.Label = "" },
		"its accounts": func(k *model.Key) { k.Accounts = "a,b*" },
		"all accounts": func(k *model.Key) { k.Accounts = "" },
		"its assets":   func(k *model.Key) { k.Assets = "EUR,USD" },
		"its end":      func(k *model.Key) { k.Expires = 6 },
		"its scopes":   func(k *model.Key) { k.Scopes = []string{"read"} },
		"it is over":   func(k *model.Key) { k.Revoked = true },
	} {
		k := base
		change(&k)
		ring := access.New(1, 1)
		ring.Add(toKey(t, k))
		if other, twice := seen[ring.Hash()]; twice {
			t.Errorf("%s and %s have one hash", what, other)
		}
		seen[ring.Hash()] = what
	}
}

// TestLoadRejectsImpossibleKeyrings: rows that are valid keys are loaded only if one keyring could have had them:
// no ID twice, and at most one active bootstrap key.
func TestLoadRejectsImpossibleKeyrings(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		ring, ids, first := access.New(8, 1), map[types.KeyID]bool{}, false
		for range rapid.IntRange(1, 8).Draw(r, "rows") {
			k := event.Key{ID: types.KeyID(rapid.IntRange(1, 4).Draw(r, "id")), Tenant: 1, Scopes: event.AllScopes,
				Revoked: rapid.Bool().Draw(r, "over"), Expires: types.Time(max(0, rapid.IntRange(-8, 1).Draw(r, "ends")))}
			boot := rapid.Bool().Draw(r, "first")
			named := rapid.IntRange(0, 8).Draw(r, "named") == 8
			if named {
				k.Label = types.NewLabel("a:name")
			}
			one := access.New(1, 1)
			one.Add(k)
			whole := k.Expires == 0 && !named // as the first key is
			fits := !ids[k.ID] && (!boot || whole && (k.Revoked || !first))
			row := dumped(&one)[0][1:]
			if boot { // which Add takes of no other
				row[8+4+32+2] |= 1
			}
			err := ring.Load(1, row)
			if (err == nil) != fits || err != nil && !errors.Is(err, access.ErrRow) {
				r.Fatalf("key %d, first %v, over %v: %v, behind %v, a first one %v", k.ID, boot, k.Revoked, err, ids, first)
			}
			if fits {
				ids[k.ID], first = true, first || boot && !k.Revoked
			}
			if err := ring.Check(); err != nil || ring.Len() != len(ids) {
				r.Fatalf("%d keys of %d: %v", ring.Len(), len(ids), err)
			}
		}
	})
}
