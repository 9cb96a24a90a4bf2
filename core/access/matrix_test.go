package access_test

import (
	"testing"

	"macronode/core/access"
	"macronode/core/types"
	model "macronode/models/access"
)

// cells returns all keys over a small alphabet.
func cells() (all []model.Key) {
	sets := [][]string{nil, scopeNames}
	for i, one := range scopeNames {
		rest := append(append([]string(nil), scopeNames[:i]...), scopeNames[i+1:]...)
		sets = append(sets, []string{one}, rest)
	}
	for _, set := range sets {
		for _, accounts := range []string{"", "a", "a*", "b,a:*", "*"} {
			for _, assets := range []string{"", "E", "E*", "U,E"} {
				for _, expires := range []types.Time{0, 9, 10, 11} {
					for _, ended := range []bool{false, true} {
						all = append(all, model.Key{ID: types.KeyID(len(all) + 1), Tenant: 1, Scopes: set, Accounts: accounts,
							Assets: assets, Expires: expires, Revoked: ended})
					}
				}
			}
		}
	}
	return all
}

// operations returns all operations over a small alphabet.
func operations() (all []model.Item) {
	for _, op := range opNames {
		froms, tos, assets := []string{"a", "a:1", "b"}, []string{"a", "a:1", "b"}, []string{"E", "EU", "U"}
		switch op {
		case "issue":
			froms = []string{""}
		case "burn", "release":
			tos = []string{""}
		case "freeze", "unfreeze":
			tos, assets = []string{""}, []string{""}
		}
		for _, from := range froms {
			for _, to := range tos {
				for _, asset := range assets {
					if from != to || from == "" {
						all = append(all, model.Item{Op: op, From: from, To: to, Asset: asset})
					}
					if from == "a" && asset == "E" {
						all = append(all, model.Item{Op: op, From: from, To: to, Asset: asset, Ref: "usage:1:2"})
					}
				}
			}
		}
	}
	return all
}

// TestMatrix: every key × tenant × operation agrees with the model, at the time 10.
func TestMatrix(t *testing.T) {
	keys, asks := cells(), operations()
	ring, reference := access.New(len(keys), 3), model.State{Limit: len(keys)}
	for _, k := range keys {
		ring.Add(toKey(t, k))
	}
	outcomes := map[string][2]int{}
	for _, k := range keys {
		reference.Keys = []model.Key{k} // it looks through all it has
		for _, item := range asks {
			r := request(k.ID, 1, item)
			for tenant := range types.Tenant(3) {
				r.Tenant = tenant
				got, want := ring.Authorizes(10, r), reference.Permits(10, k.ID, tenant, item)
				if got != want {
					t.Fatalf("%+v of tenant %d, by %+v: %v, the model has %v", item, tenant, k, got, want)
				}
				n := outcomes[item.Op]
				if got {
					n[1]++
				} else {
					n[0]++
				}
				outcomes[item.Op] = n
			}
		}
	}
	for _, op := range opNames {
		if n := outcomes[op]; n[0] < 100 || n[1] < 100 {
			t.Errorf("%s was refused %d times and permitted %d times", op, n[0], n[1])
		}
	}
	t.Log(len(keys)*len(asks)*3, outcomes)
}

// TestMatrixOfBatches: a batch of two operations is allowed only if both are.
func TestMatrixOfBatches(t *testing.T) {
	var keys []model.Key
	for _, k := range cells() {
		if k.Expires == 0 && !k.Revoked {
			keys = append(keys, k)
		}
	}
	ring := access.New(len(keys), 3)
	var reference model.State
	asks := operations()
	both := 0
	for _, k := range keys {
		ring.Add(toKey(t, k))
		reference.Keys = []model.Key{k}
		good := make([]bool, len(asks))
		for i, item := range asks {
			good[i] = reference.Permits(10, k.ID, 1, item)
		}
		r := request(k.ID, 1, asks[0], asks[0])
		for i, one := range asks {
			r.Items[0] = toItem(one)
			for j := range asks {
				r.Items[1] = toItem(asks[j])
				if got, want := ring.Authorizes(10, r), good[i] && good[j]; got != want {
					t.Fatalf("%+v, then %+v, by %+v: %v, the model has %v", one, asks[j], k, got, want)
				} else if got {
					both++
				}
			}
		}
	}
	if both < 1000 {
		t.Errorf("%d batches of two were permitted", both)
	}
	t.Log(len(keys)*len(asks)*len(asks), both)
}
