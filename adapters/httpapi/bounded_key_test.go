package httpapi_test

import (
	"fmt"
	"strings"
	"testing"

	"macronode/adapters/httpapi"
	"macronode/adapters/httpapi/wire"
	"macronode/core/event"
	"macronode/core/types"
)

// TestUsedRefHidesOperation: ref_used has the txid of the earlier operation only if the key may see it. That holds for operations, both kinds
// of batches and retries.
func TestUsedRefHidesOperation(t *testing.T) {
	h := build(t)
	h.addBoundedKey(66, types.DefaultTenant, event.AllScopes, "shop:*", "")
	h.addBoundedKey(67, types.DefaultTenant, event.AllScopes, "", "PTS")
	s := serve(t, h)
	for _, of := range []string{"ann EUR/2", "shop:1 EUR/2", "ann PTS"} {
		to, asset, _ := strings.Cut(of, " ")
		name := strings.NewReplacer(":", "_", "/", "_", " ", "_").Replace(of)
		if a := s.send(s.post("issue", "first-"+name, fmt.Sprintf(`{"to":%q,"asset":%q,"amount_minor":"1","ref":%q}`, to, asset, name))); a.status != 200 {
			t.Fatalf("%d %s", a.status, a.body)
		}
		for key, c := range map[types.KeyID]struct{ to, mayRead string }{
			1:  {"shop:1", "ann EUR/2,shop:1 EUR/2,ann PTS"},
			66: {"shop:1", "shop:1 EUR/2"},
			67: {"shop:1", "ann PTS"},
		} {
			item := fmt.Sprintf(`{"op":"issue","to":%q,"asset":"PTS","amount_minor":"1","ref":%q}`, c.to, name)
			for what, body := range map[string]string{"issue": strings.Replace(item, `"op":"issue",`, "", 1),
				"batch": `{"atomic":false,"items":[` + item + `,` + item[:strings.LastIndex(item, ",")] + `}]}`, "batch ": `{"atomic":true,"items":[` + item + `]}`} {
				for range 2 { // a retry
					r := s.post(strings.TrimSpace(what), fmt.Sprintf("%s-%d-%s", strings.Replace(what, " ", "_", 1), key, name), body)
					r.Header.Set("Authorization", bearer(key))
					a := s.send(r)
					problem, _, _ := strings.Cut(a.body, `"receipt"`)
					if !strings.Contains(problem, `"ref_used"`) {
						t.Fatalf("key %d, %s: %d %s", key, what, a.status, a.body)
					}
					if got, want := strings.Contains(problem, `"txid"`), strings.Contains(c.mayRead, of); got != want {
						t.Errorf("key %d, %s, ref of %s: %s", key, what, of, a.body)
					}
				}
			}
		}
	}
}

// withReserved is an index that lists reserved accounts, as that of a node does.
type withReserved struct{ httpapi.Index }

func (withReserved) Accounts(_ types.Tenant, _, after []byte, _ int, yield func(account, asset []byte) bool) (m event.Watermark, err error) {
	if after != nil {
		return m, nil
	}
	for _, pair := range []string{"ann EUR/2", "ann PTS", "burned:EUR/2 EUR/2", "issuance:EUR/2 EUR/2", "issuance:PTS PTS"} {
		account, asset, _ := strings.Cut(pair, " ")
		yield([]byte(account), []byte(asset))
	}
	return m, nil
}

// TestReservedAccountsOfOtherAssetsAreNotListed: the name of a reserved account contains its asset, so a key that does not cover the asset
// does not see the account in a list.
func TestReservedAccountsOfOtherAssetsAreNotListed(t *testing.T) {
	h := build(t)
	h.addBoundedKey(67, types.DefaultTenant, event.AllScopes, "", "PTS")
	s := serve(t, h, func(c *httpapi.Config) { c.Index = withReserved{c.Index} })
	for key, want := range map[types.KeyID]string{1: "ann burned:EUR/2 issuance:EUR/2 issuance:PTS", 67: "ann issuance:PTS"} {
		r := s.get("/v1/accounts")
		r.Header.Set("Authorization", bearer(key))
		a := s.send(r)
		var names []string
		for _, account := range parse[wire.AccountsPage](t, a).Accounts {
			names = append(names, account.Account)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("key %d sees %s, want %s", key, got, want)
		}
	}
}
