package httpapi_test

import (
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"macronode/adapters/httpapi"
	"macronode/core/event"
	"macronode/core/types"
)

// A trial is a good request of one operation, by whoever has its scope and covers
// mine:a, mine:b and USD/2. Of a batch there is one of each item.
type trial struct {
	id, method, path, body string
	item                   string // of a batch: the operation whose rules are the item's
}

const (
	theHold = "hold_0123456789abcdef0000000000030000"
	theTx   = "tx_0123456789abcdef0000000000020000"
)

func trials() []trial {
	party := map[string]string{
		"issue":    `"to":"mine:a","asset":"USD/2","amount_minor":"1"`,
		"transfer": `"from":"mine:a","to":"mine:b","asset":"USD/2","amount_minor":"1","nonce":3`,
		"burn":     `"from":"mine:a","asset":"USD/2","amount_minor":"1","nonce":3`,
		"hold":     `"from":"mine:a","asset":"USD/2","amount_minor":"1","nonce":3,"expires_at":"` + later(time.Hour) + `"`,
		"capture":  `"to":"mine:b","amount_minor":"1"`,
		"release":  ``,
	}
	all := []trial{
		{id: "issue", method: "POST", path: "/v1/issue"}, {id: "transfer", method: "POST", path: "/v1/transfer"},
		{id: "burn", method: "POST", path: "/v1/burn"}, {id: "hold", method: "POST", path: "/v1/holds"},
		{id: "capture", method: "POST", path: "/v1/holds/" + theHold + "/capture"}, {id: "release", method: "POST", path: "/v1/holds/" + theHold + "/release"},
	}
	for i := range all {
		all[i].body = "{" + party[all[i].id] + "}"
	}
	for op, members := range party {
		if op == "capture" || op == "release" {
			members = strings.TrimSuffix(`"hold_id":"`+theHold+`",`+members, ",")
		}
		all = append(all, trial{id: "batch", method: "POST", path: "/v1/batch", body: `{"atomic":true,"items":[{"op":"` + op + `",` + members + `}]}`, item: op})
	}
	const why = `{"reason":"r"}`
	return append(all, []trial{
		{id: "freeze", method: "POST", path: "/v1/accounts/mine:a/freeze", body: why},
		{id: "unfreeze", method: "POST", path: "/v1/accounts/mine:a/unfreeze", body: why},
		{id: "balance", method: "GET", path: "/v1/balance?account=mine:a&asset=USD/2"},
		{id: "balance_at", method: "GET", path: "/v1/accounts/mine:a/balance-at?asset=USD/2&seq=0"},
		{id: "entries", method: "GET", path: "/v1/accounts/mine:a/entries"},
		{id: "entries", method: "GET", path: "/v1/accounts/mine:a/entries?format=csv"},
		{id: "holds", method: "GET", path: "/v1/holds?account=mine:a"},
		{id: "get_hold", method: "GET", path: "/v1/holds/" + theHold},
		{id: "tx", method: "GET", path: "/v1/tx/" + theTx},
		{id: "lookup_tx", method: "GET", path: "/v1/tx?ref=r1"},
		{id: "lookup_tx", method: "GET", path: "/v1/tx?idempotency_key=k2"},
		{id: "accounts", method: "GET", path: "/v1/accounts"},
		{id: "assets", method: "GET", path: "/v1/assets"},
		{id: "changes", method: "GET", path: "/v1/changes"},
		{id: "create_key", method: "POST", path: "/v1/keys", body: `{"name":"n","scopes":["read"]}`},
		{id: "keys", method: "GET", path: "/v1/keys"},
		{id: "revoke_key", method: "DELETE", path: "/v1/keys/0000000000000003"},
		{id: "put_object", method: "PUT", path: "/o/" + addressOf("hello"), body: "hello"},
		{id: "post_object", method: "POST", path: "/o", body: "hello"},
		{id: "get_object", method: "GET", path: "/o/" + addressOf("hello")},
		{id: "head_object", method: "HEAD", path: "/o/" + addressOf("hello")},
		{id: "delete_object", method: "DELETE", path: "/o/" + addressOf("hello")},
		{id: "objects", method: "GET", path: "/o"},
		{id: "openapi", method: "GET", path: "/openapi.json"},
	}...)
}

// A rule is what the document says of an operation's key.
type rule struct{ scope, covers string }

func rules(t *testing.T) map[string]rule {
	doc, _ := contract()
	all := make(map[string]rule)
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			scope, said := op.Extensions["x-scope"].(string)
			covers, also := op.Extensions["x-covers"].(string)
			if !said || !also {
				t.Fatalf("%s %s does not say whom it is for", method, path)
			}
			all[op.OperationID] = rule{scope, covers}
		}
	}
	return all
}

// settled is a house in which tenant 1 has done something: mine:a has 90 USD/2 and a
// hold on 5 of it, mine:b 10. The other tenant's ledger is empty in it.
func settled(t testing.TB, busy bool) *house {
	h := build(t)
	if !busy {
		return h
	}
	for i, in := range []event.Request{
		{Item: event.Item{Op: event.Issue, To: called("mine:a"), Asset: called("USD/2"), Amount: types.MinorUnits(100)}},
		{Item: event.Item{Op: event.Transfer, From: called("mine:a"), To: called("mine:b"), Asset: called("USD/2"), Amount: types.MinorUnits(10), Nonce: 1, Ref: called("r1")}},
		{Item: event.Item{Op: event.Hold, From: called("mine:a"), Asset: called("USD/2"), Amount: types.MinorUnits(5), Nonce: 2, ExpiresAt: now.Add(time.Hour)}},
	} {
		in.Caller, in.Tenant, in.Key = 1, types.DefaultTenant, called(fmt.Sprint("k", i+1))
		in.Seal(nil)
		if r := h.decide(&in); r.Position.LSN == 0 {
			t.Fatalf("%d: %v", i, r.Problem)
		}
	}
	return h
}

func called(s string) types.Name { return types.Name{Text: []byte(s)} }

// ask lets the key with id 77 do a trial.
func ask(h *house, c trial) *httptest.ResponseRecorder {
	if len(h.frames) > 0 && strings.HasPrefix(c.path, "/o") { // it is settled
		h.objects().put(types.DefaultTenant, "hello")
	}
	api := httpapi.New(httpapi.Config{Large: 2, Node: node{h}, Gate: h, Books: h, Views: views{h}, Rows: h.objects(), Contents: h.objects().store, Transfers: still{}, Meter: still{}, Log: slog.New(slog.DiscardHandler), Deadline: 20 * time.Millisecond})
	r := httptest.NewRequest(c.method, c.path, strings.NewReader(c.body))
	r.Header.Set("Authorization", bearer(77))
	if c.body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if c.id != "create_key" && c.method == http.MethodPost {
		r.Header.Set("Idempotency-Key", "the-key")
	}
	w := httptest.NewRecorder()
	api.ServeHTTP(w, r)
	return w
}

// covering are the patterns that keys are given, and what they leave out.
var covering = []struct{ accounts, assets, misses string }{
	{"", "", ""},
	{"mine:a,mine:b", "USD/2", "all"},
	{"mine:*", "", "all"},
	{"other:*", "", "account"},
	{"", "EUR,EUR/*", "asset"},
}

// verdict is what the document promises a key, as a status.
func verdict(all map[string]rule, c trial, has, misses string) int {
	r := all[c.id]
	if c.item != "" {
		r = all[c.item]
	}
	switch {
	case r.scope == "":
		return 200
	case has != r.scope:
		return 403
	}
	switch r.covers {
	case "a key without patterns":
		if misses != "" {
			return 403
		}
	case "to", "from", "account and asset", "one account of the record":
		if misses == "account" || misses == "asset" {
			return 403
		}
	case "account":
		if misses == "account" {
			return 403
		}
	case "what is shown":
	default:
		return 0
	}
	return 200
}

// TestWhoMayDoWhat is the whole matrix: every operation by every scope alone, and by
// none; with patterns that cover what it is about and that do not.
func TestWhoMayDoWhat(t *testing.T) {
	all, met, cells := rules(t), make(map[string]bool), 0
	scopes := []string{"read", "issue", "transfer", "burn", "hold", "capture", "admin", "store", "none"}
	for _, c := range trials() {
		met[c.id] = true
		for bit, scope := range scopes {
			for _, cover := range covering {
				h := settled(t, true)
				h.bound(77, types.DefaultTenant, event.Scopes(1<<bit)&event.AllScopes, cover.accounts, cover.assets)
				w := ask(h, c)
				if want := verdict(all, c, scope, cover.misses); w.Code != want {
					t.Errorf("%s %s %s by %s over %q and %q: %d, want %d: %s", c.id, c.item, c.path, scope, cover.accounts, cover.assets, w.Code, want, w.Body)
				}
				if cover.misses == "account" || cover.misses == "asset" {
					hides(t, c, cover.misses, w)
				}
				cells++
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(all)) {
		if !met[id] {
			t.Errorf("nobody tried %s", id)
		}
	}
	if want := len(trials()) * len(scopes) * len(covering); cells != want {
		t.Errorf("%d cells of %d", cells, want)
	}
}

// hides holds a list against a key that covers nothing of it.
func hides(t *testing.T, c trial, misses string, w *httptest.ResponseRecorder) {
	t.Helper()
	if c.id == "openapi" || c.method != http.MethodGet || misses == "account" && c.id == "assets" {
		return
	}
	hidden := "mine:b"
	if misses == "asset" {
		hidden = `USD`
	}
	if strings.Contains(w.Body.String(), hidden) {
		t.Errorf("%s shows what the key does not cover: %s", c.path, w.Body)
	}
}

var decided = regexp.MustCompile(`"(decision_id|key|id|as_of|txid|root|prev_root|receipt_hash|hold_id)":"[^"]*"`)

// TestTenantsCannotTellEachOtherApart: whatever another tenant asks, it is answered as if
// nobody else had ever done anything, and what the first one has is as it was.
func TestTenantsCannotTellEachOtherApart(t *testing.T) {
	for _, c := range trials() {
		step := 1
		if testing.Short() {
			step = 5
		}
		for n := 0; n < 9*len(covering); n += step {
			bit, cover := n%9, covering[n/9]
			var told [2]string
			for i, busy := range []bool{false, true} {
				h := settled(t, busy)
				before := h.money.clone()
				h.bound(77, 2, event.Scopes(1<<bit)&event.AllScopes, cover.accounts, cover.assets)
				w := ask(h, c)
				told[i] = fmt.Sprint(w.Code, decided.ReplaceAllString(w.Body.String(), ""))
				for name, has := range before.has {
					if h.money.has[name] != has {
						t.Errorf("%s changed %s", c.path, name)
					}
				}
				if h.keys[3].Revoked {
					t.Errorf("%s revoked another tenant's key", c.path)
				}
			}
			if told[0] != told[1] {
				t.Errorf("%s %s: alone it is told %s, beside another %s", c.id, c.path, told[0], told[1])
			}
		}
	}
}

// TestAKeyThatIsOverIsNobodys, revoked or expired, for every operation that wants one.
func TestAKeyThatIsOverIsNobodys(t *testing.T) {
	for _, c := range trials() {
		for name, change := range map[string]func(*event.Key){
			"revoked":     func(k *event.Key) { k.Revoked = true },
			"expired now": func(k *event.Key) { k.Expires = now },
			"expires":     func(k *event.Key) { k.Expires = now + 1 },
		} {
			h := settled(t, true)
			h.bound(77, types.DefaultTenant, event.AllScopes, "", "")
			k := h.keys[77]
			change(&k)
			h.add(k)
			want := http.StatusUnauthorized
			if c.id == "openapi" || name == "expires" {
				want = http.StatusOK
			}
			if w := ask(h, c); w.Code != want {
				t.Errorf("%s with a key that is %s: %d", c.path, name, w.Code)
			}
		}
	}
}
