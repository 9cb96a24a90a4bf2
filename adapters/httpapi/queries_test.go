package httpapi_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"pgregory.net/rapid"

	"macronode/adapters/httpapi"
	"macronode/adapters/httpapi/wire"
	"macronode/core/event"
	"macronode/core/types"
)

// Queries are strict: an unknown, missing or repeated parameter, and a value that is not canonical, is rejected.
func TestAllQueriesAreStrict(t *testing.T) {
	h := manyAccounts(t)
	s := serve(t, h)
	long := strings.Repeat("a", 257)
	of := func(b ...byte) string { return base64.RawURLEncoding.EncodeToString(b) }
	hold := of(append([]byte{1, 1}, make([]byte, 16)...)...)
	limits := []string{"limit=", "limit=0", "limit=1001", "limit=01", "limit=-1", "limit=+1", "limit=1e1", "limit=1.0", "limit=1&limit=1", "limit=0x1", "limit=%31%00"}
	seqs := func(name string) (all []string) {
		for _, s := range []string{"", "-1", "01", "+1", "1.0", "9007199254740992", "1&" + name + "=1", "18446744073709551617"} {
			all = append(all, name+"="+s)
		}
		return all
	}
	cursors := []string{"cursor=", "cursor=!", "cursor=AQ", "cursor=AQE", "cursor=" + hold + "=", "cursor=" + of(2, 1, 'a'), "cursor=" + of(2, 2, 'a'), "cursor=" + of(2, 3, 'a'), "cursor=" + of(1, 9, 'a'), "cursor=" + of(1, 2), "cursor=" + of(1, 2, '.'),
		"cursor=" + of(append([]byte{1, 2}, long...)...), "cursor=" + of(1, 1, 1), "cursor=" + of(1, 4, 0, 0, 1), "cursor=AQJiC", "cursor=AQJib3", "cursor=%zz"}
	all := func(lists ...[]string) (all []string) {
		for _, l := range lists {
			all = append(all, l...)
		}
		return append(all, "x=1", "x", "=", "Limit=1", "limit=1;limit=1", "%zz=1")
	}
	for path, queries := range map[string][]string{
		"/v1/accounts?":                           all(limits, seqs("min_seq"), cursors, []string{"prefix=.", "prefix=" + long, "prefix=a&prefix=a", "prefix=a%20b", "account=a"}),
		"/v1/assets?":                             all(limits, seqs("min_seq"), cursors, []string{"prefix=:", "prefix=" + long[:33], "asset=A"}),
		"/v1/holds?account=user:0&":               all(limits, seqs("min_seq"), cursors, []string{"state=", "state=ACTIVE", "state=over", "state=active&state=active", "account=user:0", "asset=A0"}),
		"/v1/holds?":                              {"", "account=", "account=a.b", "account=" + long, "state=active"},
		"/v1/holds/" + theHold + "?":              all(seqs("min_seq"), []string{"limit=1"}),
		"/v1/accounts/user:0/entries?":            all(limits, seqs("min_seq"), seqs("after_seq"), []string{"format=", "format=xml", "format=CSV", "format=csv&format=csv", "cursor=" + hold}),
		"/v1/accounts/user:0/balance-at?":         all(seqs("asset=A0&seq"), []string{"", "asset=A0", "seq=1", "asset=&seq=1", "asset=A.0&seq=1", "asset=A0&seq=1&seq=1", "asset=A0&time=", "asset=A0&time=0", "asset=A0&seq=1&time=2020-01-01T00:00:00Z", "asset=A0&seq=1&min_seq=1"}),
		"/v1/changes?":                            all(limits, seqs("after_seq"), []string{"wait=", "wait=-1", "wait=60001", "wait=1s", "wait=01", "cursor=" + hold, "min_seq=1"}),
		"/v1/tx?":                                 all([]string{"", "ref=", "idempotency_key=", "ref=a&idempotency_key=a", "ref=a%2Fb", "ref=" + long[:65], "idempotency_key=" + long[:65], "ref=a&ref=a", "txid=" + theTx}),
		"/v1/tx/" + theTx + "?":                   {"x=1", "ref=a"},
		"/v1/keys?":                               all(limits, cursors, []string{"tenant=", "tenant=0", "tenant=1", "tenant=Default", "tenant=-1", "tenant=4294967296", "state=active"}),
		"/v1/balance?account=a&asset=A&":          all(seqs("min_seq"), []string{"limit=1"}),
		"/openapi.json?":                          {"x=1"},
		"DELETE /v1/keys/0000000000000002?":       {"x=1"},
		"POST /v1/accounts/user:0/freeze?":        {"reason=r"},
		"POST /v1/holds/" + theHold + "/release?": {"x=1"},
		"POST /v1/batch?":                         {"atomic=true"},
	} {
		method, at, other := strings.Cut(path, " ")
		if !other {
			method, at = http.MethodGet, path
		}
		for _, q := range queries {
			r := s.get(strings.TrimSuffix(at, "?"))
			before, extra, _ := strings.Cut(at, "?")
			u, err := url.Parse(s.url + before)
			if err != nil {
				t.Fatal(err)
			}
			u.RawQuery = extra + q
			r.URL, r.Method = u, method
			r.Header.Set("Idempotency-Key", "k")
			if method != http.MethodGet && method != http.MethodPost || method == http.MethodGet {
				r.Header.Del("Idempotency-Key")
			}
			if a := s.send(r); a.status != 400 || parse[wire.Problem](t, a).Code != bad {
				t.Errorf("%s%s: %d %s", path, q, a.status, a.body)
			}
		}
	}
	for _, value := range []string{"x", "-1", "01", "9007199254740992", ""} {
		r := s.get("/v1/changes")
		r.Header.Set("Accept", "text/event-stream")
		r.Header.Set("Last-Event-ID", value)
		if a := s.send(r); a.status != 400 {
			t.Errorf("Last-Event-ID %q: %d", value, a.status)
		}
	}
	if len(s.requests) > 0 {
		t.Fatalf("the node got %+v", s.requests[0])
	}
}

// A cursor of one listing is rejected by the others.
func TestCursorsBelongToOneListing(t *testing.T) {
	s := serve(t, manyAccounts(t))
	cursors := make(map[string]string)
	lists := []string{"/v1/accounts?limit=1", "/v1/assets?limit=1", "/v1/holds?account=user:0&limit=1", "/v1/keys?limit=1"}
	for _, path := range lists {
		cursors[path] = *parse[struct {
			Next *string `json:"next_cursor"`
		}](t, s.do(t, 200, path)).Next
	}
	for _, path := range lists {
		for from, cursor := range cursors {
			want := 400
			if from == path {
				want = 200
			}
			if a := s.send(s.get(path + "&cursor=" + cursor)); a.status != want {
				t.Errorf("%s with the cursor of %s: %d", path, from, a.status)
			}
		}
	}
}

// newHandler returns an API without a network, and its backend.
func newHandler(t testing.TB) (*backend, http.Handler) {
	h := withMovements(t, true)
	return h, httpapi.New(httpapi.Config{MaxLargeBodies: 2, Node: node{h}, Admission: h, ReadModel: h, Index: fakeIndex{h}, Audit: h, Meter: noMeter{},
		Log: slog.New(slog.DiscardHandler), Deadline: time.Millisecond})
}

// posts are the operations that have a body.
var posts = []string{"issue", "transfer", "burn", "holds", capturePath, releasePath, freezePath, "batch", "keys"}

// schemaOf returns the schema of a body in the document.
func schemaOf(path string) *openapi3.Schema {
	doc, router := contract()
	r, _ := http.NewRequest(http.MethodPost, "http://node/v1/"+path, nil)
	route, _, err := router.FindRoute(r)
	if err != nil {
		panic(fmt.Sprint(path, err, doc.Info.Title))
	}
	return route.Operation.RequestBody.Value.Content.Get("application/json").Schema.Value
}

// sendBody sends one body. A response must not be an internal error, and a body that the schema forbids must be
// rejected.
func sendBody(t interface{ Fatalf(string, ...any) }, h *backend, api http.Handler, path string, body []byte) int {
	r := httptest.NewRequest(http.MethodPost, "/v1/"+path, strings.NewReader(string(body)))
	r.Header = http.Header{"Authorization": {bearer(1)}, "Content-Type": {"application/json"}, "Idempotency-Key": {fmt.Sprint("k", len(h.requests))}}
	if path == "keys" {
		r.Header.Del("Idempotency-Key")
	}
	before := len(h.requests)
	w := httptest.NewRecorder()
	api.ServeHTTP(w, r)
	switch w.Code {
	case 200, 400, 403, 404, 409, 413, 422:
	default:
		t.Fatalf("%s %s: %d %s", path, body, w.Code, w.Body)
	}
	var value any
	valid := json.Unmarshal(body, &value) == nil && schemaOf(path).VisitJSON(value, openapi3.EnableJSONSchema2020()) == nil
	if took := len(h.requests) > before || w.Code == 200; took && !valid && !(path == releasePath && len(body) == 0) {
		t.Fatalf("%s took %s: %d %s", path, body, w.Code, w.Body)
	}
	var p wire.Problem
	if w.Code != 200 && (json.Unmarshal(w.Body.Bytes(), &p) != nil || !p.Code.Valid() || p.Status != w.Code) {
		t.Fatalf("%s %s: %d %s is no problem", path, body, w.Code, w.Body)
	}
	return w.Code
}

// FuzzBodies tries any body with any operation.
func FuzzBodies(f *testing.F) {
	for i, body := range []string{issue, transfer, burn, hold, capture, "{}", reason, bundle("true", `{"op":"issue","to":"a","asset":"A","amount_minor":"1"}`), `{"name":"n","scopes":["read"],"accounts":["a*"]}`} {
		f.Add(byte(i), []byte(body))
	}
	for _, c := range invalidBodies() {
		f.Add(byte(max(0, slices.Index(posts, c.path))), []byte(c.body))
	}
	h, api := newHandler(f)
	f.Fuzz(func(t *testing.T, at byte, body []byte) { sendBody(t, h, api, posts[int(at)%len(posts)], body) })
}

// FuzzPaths: no path and no query causes an internal error.
func FuzzPaths(f *testing.F) {
	for _, path := range []string{"/v1/balance?account=a&asset=A", "/v1/accounts/a%2Fb/entries?format=csv&limit=1", "/v1/accounts/a/balance-at?asset=A&time=2020-01-01T00:00:00Z",
		"/v1/holds?account=a&state=active&cursor=AQE", "/v1/holds/" + theHold, "/v1/tx/" + theTx, "/v1/tx?ref=r1", "/v1/accounts?prefix=a&cursor=AQJh", "/v1/assets?limit=1",
		"/v1/changes?after_seq=1&wait=1&limit=2", "/v1/keys?tenant=2", "/v1/keys/0000000000000002", "//v1", "/%2e%2e/v1/keys", "/v1/accounts/%ff/entries"} {
		f.Add(path)
	}
	_, api := newHandler(f)
	f.Fuzz(func(t *testing.T, path string) {
		u, err := url.ParseRequestURI(path)
		if err != nil || u.Host != "" {
			return
		}
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.URL, r.RequestURI = u, path
		r.Header = http.Header{"Authorization": {bearer(1)}}
		w := httptest.NewRecorder()
		api.ServeHTTP(w, r)
		switch w.Code {
		case 200, 400, 403, 404, 405, 504:
		default:
			t.Fatalf("%q: %d %s", path, w.Code, w.Body)
		}
		if w.Header().Get("X-Request-Id") == "" {
			t.Fatalf("%q: without a name", path)
		}
		_, _ = io.Copy(io.Discard, w.Body)
	})
}

// TestMutatedBodies does the same with bodies that random bytes seldom produce.
func TestMutatedBodies(t *testing.T) {
	good := map[string]string{"issue": issue, "transfer": transfer, "burn": burn, "holds": hold, capturePath: capture, releasePath: "{}", freezePath: reason,
		"batch": bundle("false", `{"op":"hold","from":"mine:a","beneficiary":"b","asset":"A","amount_minor":"1","nonce":3,"expires_at":"`+later(time.Hour)+`","memo":"m"}`,
			`{"op":"capture","hold_id":"`+theHold+`","to":"b","amount_minor":"1"}`, `{"op":"transfer","from":"a","to":"b","asset":"A","amount_minor":"1","nonce":1,"ref":"r"}`),
		"keys": `{"name":"n","scopes":["read","hold"],"accounts":["a*","b"],"assets":["A"],"expires_at":"` + later(time.Hour) + `","tenant":"2"}`}
	values := []string{`"a"`, `"b"`, `"A"`, `"issuance:A"`, `"a.b"`, `""`, `"1"`, `"0"`, `"01"`, `"` + theHold + `"`, `"read"`, `1`, `0`, `-1`, `1.5`, `1e3`, `9007199254740993`,
		`null`, `true`, `[]`, `{}`, `["read"]`, `[null]`, `"2023-11-14T22:30:00Z"`, `"2023-11-14T22:30:00+01:00"`, `"2300-01-01T00:00:00.123456789Z"`, `"issue"`, `"release"`}
	names := []string{"op", "from", "to", "asset", "amount_minor", "nonce", "memo", "ref", "beneficiary", "expires_at", "hold_id", "reason", "atomic", "items", "name", "scopes", "accounts", "tenant", "To"}
	h, api := newHandler(t)
	for _, path := range posts {
		if got := sendBody(t, h, api, path, []byte(good[path])); got == 400 {
			t.Errorf("%s does not take %s", path, good[path])
		}
		if got := sendBody(t, h, api, path, []byte(good[path]+"{")); got != 400 {
			t.Errorf("%s takes what is no JSON: %d", path, got)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		path := rapid.SampledFrom(posts).Draw(t, "path")
		var body any
		if err := json.Unmarshal([]byte(good[path]), &body); err != nil {
			t.Fatalf("%v", err)
		}
		for range rapid.IntRange(0, 2).Draw(t, "changes") {
			o := body.(map[string]any)
			if items, ok := o["items"].([]any); ok && len(items) > 0 && rapid.Bool().Draw(t, "deeper") {
				if deeper, ok := rapid.SampledFrom(items).Draw(t, "item").(map[string]any); ok {
					o = deeper
				}
			}
			name := rapid.SampledFrom(names).Draw(t, "name")
			if rapid.Bool().Draw(t, "drop") {
				delete(o, name)
			} else {
				o[name] = json.RawMessage(rapid.SampledFrom(values).Draw(t, "value"))
			}
		}
		text, err := json.Marshal(body)
		if err != nil {
			t.Fatalf("%v", err)
		}
		sendBody(t, h, api, path, text)
	})
	for i := range h.requests {
		if h.requests[i].Caller != 1 || h.requests[i].Tenant != types.DefaultTenant || h.requests[i].Op == event.Op(0) {
			t.Fatalf("%+v", h.requests[i])
		}
	}
}

// TestCursorsHideNames: the cursors of a bounded key contain no names, and lead to all that the key covers. A
// position after the last movement is rejected.
func TestCursorsHideNames(t *testing.T) {
	h := manyAccounts(t)
	h.addBoundedKey(66, types.DefaultTenant, event.ScopeRead, "user:1*,user:0", "")
	s := serve(t, h)
	got, cursor := 0, ""
	for range 100 {
		r := s.get("/v1/accounts?limit=1" + cursor)
		r.Header.Set("Authorization", bearer(66))
		a := s.send(r)
		page := parse[struct {
			Accounts []struct{ Account string }
			Next     string `json:"next_cursor"`
		}](t, a)
		got += len(page.Accounts)
		if page.Next == "" {
			break
		}
		raw, err := base64.RawURLEncoding.DecodeString(page.Next)
		if err != nil || bytes.Contains(raw, []byte("user")) || bytes.Contains(raw, []byte("issuance")) {
			t.Fatalf("a cursor says %q, %v", raw, err)
		}
		cursor = "&cursor=" + page.Next
	}
	if got == 0 {
		t.Error("it is shown nothing that it covers")
	}
	if a := s.send(s.get("/v1/changes?after_seq=999999")); a.status != 400 {
		t.Errorf("a position after the last movement: %d %s", a.status, a.body)
	}
}
