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
	"macronode/core/command"
	"macronode/core/event"
	"macronode/core/storage"
	"macronode/core/types"
)

// An operationRequest is a valid request of one operation, for a key with its scope that covers mine:a, mine:b and
// USD/2. There is one batch for each kind of item.
type operationRequest struct {
	id, method, path, body string
	item                   string // of a batch: the operation whose rules apply
}

const (
	theHold = "hold_0123456789abcdef0000000000030000"
	theTx   = "tx_0123456789abcdef0000000000020000"
)

func operationRequests() []operationRequest {
	party := map[string]string{
		"issue":    `"to":"mine:a","asset":"USD/2","amount_minor":"1"`,
		"transfer": `"from":"mine:a","to":"mine:b","asset":"USD/2","amount_minor":"1","nonce":3`,
		"burn":     `"from":"mine:a","asset":"USD/2","amount_minor":"1","nonce":3`,
		"hold":     `"from":"mine:a","asset":"USD/2","amount_minor":"1","nonce":3,"expires_at":"` + later(time.Hour) + `"`,
		"capture":  `"to":"mine:b","amount_minor":"1"`,
		"release":  ``,
	}
	all := []operationRequest{
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
		all = append(all, operationRequest{id: "batch", method: "POST", path: "/v1/batch", body: `{"atomic":true,"items":[{"op":"` + op + `",` + members + `}]}`, item: op})
	}
	const why = `{"reason":"r"}`
	return append(all, []operationRequest{
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
		{id: "s3_credentials", method: "GET", path: "/v1/s3-credentials"},
		{id: "record_usage", method: "POST", path: "/v1/usage-events", body: `{"dimension":"requests","value":1}`},
		{id: "usage", method: "GET", path: "/v1/usage?from=2023-11-14T00:00:00Z&to=2023-11-15T00:00:00Z"},
		{id: "usage_slices", method: "GET", path: "/v1/usage-slices"},
		{id: "put_object", method: "PUT", path: "/o/" + addressOf("hello"), body: "hello"},
		{id: "post_object", method: "POST", path: "/o", body: "hello"},
		{id: "get_object", method: "GET", path: "/o/" + addressOf("hello")},
		{id: "head_object", method: "HEAD", path: "/o/" + addressOf("hello")},
		{id: "delete_object", method: "DELETE", path: "/o/" + addressOf("hello")},
		{id: "append_object_upload", method: "PATCH", path: theUpload, body: "hello"},
		{id: "get_object_upload", method: "GET", path: theUpload},
		{id: "head_object_upload", method: "HEAD", path: theUpload},
		{id: "cancel_object_upload", method: "DELETE", path: theUpload},
		{id: "objects", method: "GET", path: "/o"},
		{id: "openapi", method: "GET", path: "/openapi.json"},
	}...)
}

// A rule is what the document requires of the key of an operation.
type rule struct{ scope, covers string }

func rules(t *testing.T) map[string]rule {
	doc, _ := contract()
	all := make(map[string]rule)
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			scope, hasScope := op.Extensions["x-scope"].(string)
			covers, hasCovers := op.Extensions["x-covers"].(string)
			if !hasScope || !hasCovers {
				t.Fatalf("%s %s has no x-scope or x-covers", method, path)
			}
			all[op.OperationID] = rule{scope, covers}
		}
	}
	return all
}

// withMovements returns a backend in which tenant 1 has movements: mine:a has 90 USD/2 and a hold on 5 of it,
// mine:b has 10. The other tenant has none.
func withMovements(t testing.TB, busy bool) *backend {
	h := build(t)
	if !busy {
		return h
	}
	for i, in := range []event.Request{
		{Item: event.Item{Op: event.Issue, To: newName("mine:a"), Asset: newName("USD/2"), Amount: types.MinorUnits(100)}},
		{Item: event.Item{Op: event.Transfer, From: newName("mine:a"), To: newName("mine:b"), Asset: newName("USD/2"), Amount: types.MinorUnits(10), Nonce: 1, Ref: newName("r1")}},
		{Item: event.Item{Op: event.Hold, From: newName("mine:a"), Asset: newName("USD/2"), Amount: types.MinorUnits(5), Nonce: 2, ExpiresAt: now.Add(time.Hour)}},
	} {
		in.Caller, in.Tenant, in.Key = 1, types.DefaultTenant, newName(fmt.Sprint("k", i+1))
		in.Seal(nil)
		if r := h.decide(&in); r.Position.LSN == 0 {
			t.Fatalf("%d: %v", i, r.Problem)
		}
	}
	return h
}

func newName(s string) types.Name { return types.Name{Text: []byte(s)} }

// theUpload is that of send.
var theUpload = "/o/" + addressOf("hello") + "/uploads/0000000000050000"

// send sends a request with the key 77.
func send(h *backend, c operationRequest) *httptest.ResponseRecorder {
	if len(h.frames) > 0 && strings.HasPrefix(c.path, "/o") { // it has movements
		h.objects().put(types.DefaultTenant, "hello")
		if strings.Contains(c.path, "/uploads/") {
			h.objects().execute(&storage.BeginUpload{Header: command.Header{Tenant: types.DefaultTenant}, Bucket: storage.Bucket("default"), Name: storage.ObjectName(addressOf("hello"))})
		}
	}
	api := httpapi.New(httpapi.Config{MaxLargeBodies: 2, Node: node{h}, Admission: h, ReadModel: h, Index: fakeIndex{h}, Usage: h.usage(), Rows: h.objects(), Names: h.objects(), Contents: h.objects().store, Transfers: noMeter{}, Secret: secretOf, Region: "us-east-1", Meter: noMeter{}, Log: slog.New(slog.DiscardHandler), Deadline: 20 * time.Millisecond, MinAppend: 1})
	r := httptest.NewRequest(c.method, c.path, strings.NewReader(c.body))
	r.Header.Set("Authorization", bearer(77))
	if c.body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if c.id == "append_object_upload" {
		for name, value := range map[string]string{"Content-Type": "application/partial-upload", "Upload-Offset": "0", "Upload-Complete": "?0"} {
			r.Header.Set(name, value)
		}
	}
	if c.id == "record_usage" {
		for name, value := range map[string]string{"specversion": "1.0", "id": "1", "source": "s", "type": "t", "time": later(0)} {
			r.Header.Set("Ce-"+name, value)
		}
	}
	if c.id != "create_key" && c.method == http.MethodPost {
		r.Header.Set("Idempotency-Key", "the-key")
	}
	w := httptest.NewRecorder()
	api.ServeHTTP(w, r)
	return w
}

// covering are patterns of keys, and what they leave out.
var covering = []struct{ accounts, assets, misses string }{
	{"", "", ""},
	{"mine:a,mine:b", "USD/2", "all"},
	{"mine:*", "", "all"},
	{"other:*", "", "account"},
	{"", "EUR,EUR/*", "asset"},
}

// done returns the status of success.
func (c *operationRequest) done() int {
	switch c.id {
	case "record_usage":
		return http.StatusAccepted
	case "append_object_upload", "cancel_object_upload":
		return http.StatusNoContent
	}
	return http.StatusOK
}

// verdict returns the status that the document promises a key.
func verdict(all map[string]rule, c operationRequest, has, misses string) int {
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

// TestAuthorizationMatrix tries every operation with every scope alone and with none, with patterns that cover its
// names and with patterns that do not.
func TestAuthorizationMatrix(t *testing.T) {
	all, met, cells := rules(t), make(map[string]bool), 0
	scopes := []string{"read", "issue", "transfer", "burn", "hold", "capture", "admin", "store", "meter", "none"}
	for _, c := range operationRequests() {
		met[c.id] = true
		for bit, scope := range scopes {
			for _, cover := range covering {
				h := withMovements(t, true)
				h.addBoundedKey(77, types.DefaultTenant, event.Scopes(1<<bit)&event.AllScopes, cover.accounts, cover.assets)
				w := send(h, c)
				want := verdict(all, c, scope, cover.misses)
				if want == 200 {
					want = c.done()
				}
				if w.Code != want {
					t.Errorf("%s %s %s by %s over %q and %q: %d, want %d: %s", c.id, c.item, c.path, scope, cover.accounts, cover.assets, w.Code, want, w.Body)
				}
				if cover.misses == "account" || cover.misses == "asset" {
					checkHidden(t, c, cover.misses, w)
				}
				cells++
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(all)) {
		if !met[id] {
			t.Errorf("%s was not tried", id)
		}
	}
	if want := len(operationRequests()) * len(scopes) * len(covering); cells != want {
		t.Errorf("%d cells of %d", cells, want)
	}
}

// checkHidden checks that a list shows nothing that the key does not cover.
func checkHidden(t *testing.T, c operationRequest, misses string, w *httptest.ResponseRecorder) {
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

var variableMembers = regexp.MustCompile(`"(decision_id|key|id|as_of|txid|root|prev_root|receipt_hash|hold_id)":"[^"]*"`)

// TestTenantsAreIsolated: a tenant gets the same responses whether or not another tenant has done anything, and
// changes nothing of the other tenant.
func TestTenantsAreIsolated(t *testing.T) {
	for _, c := range operationRequests() {
		step := 1
		if testing.Short() {
			step = 5
		}
		for n := 0; n < 9*len(covering); n += step {
			bit, cover := n%9, covering[n/9]
			var got [2]string
			for i, busy := range []bool{false, true} {
				h := withMovements(t, busy)
				before := h.ledger.clone()
				h.addBoundedKey(77, 2, event.Scopes(1<<bit)&event.AllScopes, cover.accounts, cover.assets)
				w := send(h, c)
				got[i] = fmt.Sprint(w.Code, variableMembers.ReplaceAllString(w.Body.String(), ""))
				for name, has := range before.has {
					if h.ledger.has[name] != has {
						t.Errorf("%s changed %s", c.path, name)
					}
				}
				if h.keys[3].Revoked {
					t.Errorf("%s revoked another tenant's key", c.path)
				}
			}
			if got[0] != got[1] {
				t.Errorf("%s %s: alone it gets %s, beside another tenant %s", c.id, c.path, got[0], got[1])
			}
		}
	}
}

// TestRevokedAndExpiredKeysAreRejected tries every operation that needs a key.
func TestRevokedAndExpiredKeysAreRejected(t *testing.T) {
	for _, c := range operationRequests() {
		for name, change := range map[string]func(*event.Key){
			"revoked":     func(k *event.Key) { k.Revoked = true },
			"expired now": func(k *event.Key) { k.Expires = now },
			"expires":     func(k *event.Key) { k.Expires = now + 1 },
		} {
			h := withMovements(t, true)
			h.addBoundedKey(77, types.DefaultTenant, event.AllScopes, "", "")
			k := h.keys[77]
			change(&k)
			h.putKey(k)
			want := http.StatusUnauthorized
			if c.id == "openapi" || name == "expires" {
				want = c.done()
			}
			if w := send(h, c); w.Code != want {
				t.Errorf("%s with a key that is %s: %d", c.path, name, w.Code)
			}
		}
	}
}
