package httpapi_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"macronode/adapters/httpapi"
	"macronode/adapters/httpapi/wire"
	"macronode/core/event"
	"macronode/core/types"
)

// command returns a POST without an idempotency key.
func (s *testServer) command(path, body string) *http.Request {
	s.t.Helper()
	r := s.post(path, "", body)
	r.Header.Del("Idempotency-Key")
	return r
}

// A new key works until it is revoked.
func TestKeyIsCreatedAndRevoked(t *testing.T) {
	s := serve(t, withMovements(t, true))
	a := s.send(s.command("keys", `{"name":"till","scopes":["read"],"accounts":["mine:*"],"expires_at":"`+later(time.Hour)+`"}`))
	made := parse[wire.NewKey](t, a)
	if a.status != 200 || made.State != wire.KeyStateActive || made.Tenant != "default" || !strings.HasPrefix(made.Key, "mk_"+made.Id+"_") {
		t.Fatalf("%d %s", a.status, a.body)
	}
	try := func() int {
		r := s.get("/v1/balance?account=mine:a&asset=USD/2")
		r.Header.Set("Authorization", "Bearer "+made.Key)
		return s.send(r).status
	}
	if got := try(); got != 200 {
		t.Fatalf("it cannot read: %d", got)
	}
	if list := s.do(t, 200, "/v1/keys").body; !strings.Contains(list, made.Id) || strings.Contains(list, made.Key) {
		t.Fatalf("the list: %s", list)
	}
	for range 2 { // a revocation can be repeated
		r := s.get("/v1/keys/" + made.Id)
		r.Method = http.MethodDelete
		if k := parse[wire.Key](t, s.send(r)); k.State != wire.KeyStateRevoked || k.Name != "till" {
			t.Fatalf("%+v", k)
		}
	}
	if got := try(); got != 401 {
		t.Fatalf("after the revocation: %d", got)
	}
}

// Two keys never share an ID or a secret. An ID that is taken is drawn again.
func TestKeysAreUnique(t *testing.T) {
	h := build(t)
	s := serve(t, h)
	seen := make(map[string]bool)
	for range 20 {
		k := parse[wire.NewKey](t, s.send(s.command("keys", `{"name":"n","scopes":["read"]}`)))
		if seen[k.Id] || seen[k.Key[20:]] {
			t.Fatalf("%s again", k.Id)
		}
		seen[k.Id], seen[k.Key[20:]] = true, true
	}
	zeros := strings.Repeat("\x00", 40)                                      // 0 is not an ID
	known := "\x00\x00\x00\x00\x00\x00\x00\x01" + strings.Repeat("\x00", 32) // the ID of key 1
	fresh := "\x00\x00\x00\x00\x00\x00\x01\x00" + strings.Repeat("\x01", 32) // a free ID
	drawn := serve(t, h, func(c *httpapi.Config) { c.Random = strings.NewReader(zeros + known + fresh) })
	if k := parse[wire.NewKey](t, drawn.send(drawn.command("keys", `{"name":"n","scopes":["read"]}`))); k.Id != "0000000000000100" {
		t.Errorf("drawn %s", k.Id)
	}
	if a := drawn.send(drawn.command("keys", `{"name":"n","scopes":["read"]}`)); a.status != 500 {
		t.Errorf("without chance: %d %s", a.status, a.body)
	}
}

// A key that may not be durable is not returned.
func TestNonDurableKeyIsNotShown(t *testing.T) {
	for problem, want := range map[event.Problem]int{event.OutcomeUnknown: 504, event.Unavailable: 503, event.CapacityExceeded: 403, event.Busy: 429, event.Forbidden: 403} {
		h := build(t)
		h.reply = &event.Reply{Problem: problem}
		s := serve(t, h)
		if a := s.send(s.command("keys", `{"name":"n","scopes":["read"]}`)); a.status != want || strings.Contains(a.body, "mk_") {
			t.Errorf("%v: %d %s", problem, a.status, a.body)
		}
		r := s.get("/v1/keys/0000000000000002")
		r.Method = http.MethodDelete
		if a := s.send(r); a.status != want {
			t.Errorf("%v: %d %s", problem, a.status, a.body)
		}
	}
	h := build(t)
	h.full = true
	if s := serve(t, h); s.send(s.command("keys", `{"name":"n","scopes":["read"]}`)).status != 429 {
		t.Error("no room is busy")
	}
	h.full, h.reply = false, &event.Reply{}
	s := serve(t, h)
	r := s.get("/v1/keys/0000000000000002")
	r.Method = http.MethodDelete
	if a := s.send(r); a.status != 500 {
		t.Errorf("revoked, and known as it was: %d %s", a.status, a.body)
	}
}

func TestHostileKeys(t *testing.T) {
	h := build(t)
	s := serve(t, h)
	before := len(h.keys)
	for _, body := range []string{
		``, `null`, `[]`, `{`, `{}`, `{"name":"n"}`, `{"scopes":["read"]}`, `{"name":"","scopes":["read"]}`, `{"name":null,"scopes":["read"]}`,
		`{"name":"a b","scopes":["read"]}`, `{"name":"` + strings.Repeat("n", 65) + `","scopes":["read"]}`, `{"name":"n","scopes":[]}`,
		`{"name":"n","scopes":null}`, `{"name":"n","scopes":"read"}`, `{"name":"n","scopes":[null]}`, `{"name":"n","scopes":["root"]}`,
		`{"name":"n","scopes":["READ"]}`, `{"name":"n","scopes":["read","read"]}`, `{"name":"n","scopes":["read"],"accounts":null}`,
		`{"name":"n","scopes":["read"],"accounts":[]}`, `{"name":"n","scopes":["read"],"accounts":[""]}`, `{"name":"n","scopes":["read"],"accounts":["a,b"]}`,
		`{"name":"n","scopes":["read"],"accounts":[",a"]}`, `{"name":"n","scopes":["read"],"accounts":["a*b"]}`, `{"name":"n","scopes":["read"],"accounts":["a**"]}`,
		`{"name":"n","scopes":["read"],"accounts":["a b"]}`, `{"name":"n","scopes":["read"],"accounts":["` + strings.Repeat("a", 256) + `"]}`,
		`{"name":"n","scopes":["read"],"accounts":["` + strings.Repeat(`a","`, 128) + `a"]}`, `{"name":"n","scopes":["read"],"assets":[]}`,
		`{"name":"n","scopes":["read"],"assets":["USD.2"]}`, `{"name":"n","scopes":["read"],"expires_at":"` + later(0) + `"}`,
		`{"name":"n","scopes":["read"],"expires_at":"tomorrow"}`, `{"name":"n","scopes":["read"],"expires_at":1}`, `{"name":"n","scopes":["read"],"expires_at":null}`,
		`{"name":"n","scopes":["read"],"tenant":""}`, `{"name":"n","scopes":["read"],"tenant":"0"}`, `{"name":"n","scopes":["read"],"tenant":"1"}`,
		`{"name":"n","scopes":["read"],"tenant":"02"}`, `{"name":"n","scopes":["read"],"tenant":"4294967296"}`, `{"name":"n","scopes":["read"],"tenant":2}`,
		`{"name":"n","scopes":["read"],"tenant":"Default"}`, `{"name":"n","scopes":["read"],"id":"0000000000000001"}`, `{"name":"n","scopes":["read"],"boot":true}`,
		`{"name":"n","name":"n","scopes":["read"]}`, `{"Name":"n","scopes":["read"]}`, `{"name":"n","scopes":["read"]} {}`,
	} {
		if a := s.send(s.command("keys", body)); a.status != 400 {
			t.Errorf("%s: %d %s", body, a.status, a.body)
		}
	}
	if a := s.send(s.post("keys", "k", `{"name":"n","scopes":["read"]}`)); a.status != 400 {
		t.Errorf("with an idempotency key: %d", a.status)
	}
	if a := s.send(s.command("keys?dry=1", `{"name":"n","scopes":["read"]}`)); a.status != 400 {
		t.Errorf("with a query: %d", a.status)
	}
	if len(h.keys) != before {
		t.Errorf("%d keys were made", len(h.keys)-before)
	}
	for _, id := range []string{"1", "000000000000000A", "+000000000000001", "mk_0000000000000001", "00000000000000001", "%30000000000000001"} {
		r := s.get("/v1/keys/" + id)
		r.Method = http.MethodDelete
		if a := s.send(r); a.status != 400 {
			t.Errorf("DELETE %s: %d", id, a.status)
		}
	}
}

// Keys of the default tenant administer all tenants; other keys only their own.
func TestKeyAdministrationIsPerTenant(t *testing.T) {
	h := build(t)
	s := serve(t, h)
	as := func(key types.KeyID, r *http.Request) answer {
		r.Header.Set("Authorization", bearer(key))
		return s.send(r)
	}
	for _, c := range []struct {
		key    types.KeyID
		tenant string
		make_  int
		list   int
	}{{1, "default", 200, 200}, {1, "2", 200, 200}, {4, "2", 200, 200}, {4, "default", 403, 403}, {4, "3", 403, 403}} {
		body := fmt.Sprintf(`{"name":"n","scopes":["read"],"tenant":%q}`, c.tenant)
		if a := as(c.key, s.command("keys", body)); a.status != c.make_ || a.status == 200 && parse[wire.NewKey](t, a).Tenant != c.tenant {
			t.Errorf("%d makes one of %s: %d %s", c.key, c.tenant, a.status, a.body)
		}
		if a := as(c.key, s.get("/v1/keys?tenant="+c.tenant)); a.status != c.list {
			t.Errorf("%d lists those of %s: %d", c.key, c.tenant, a.status)
		}
	}
	for _, k := range parse[wire.KeysPage](t, as(4, s.get("/v1/keys"))).Keys {
		if k.Tenant != "2" {
			t.Errorf("tenant 2 is shown a key of %s", k.Tenant)
		}
	}
}

// Each use of a key that changed something or was rejected is recorded once. Other uses are not recorded.
func TestKeyUsesAreAudited(t *testing.T) {
	for _, c := range []struct {
		name   string
		ask    func(*testServer) *http.Request
		want   string
		status int
	}{
		{"done", func(s *testServer) *http.Request { return s.post("issue", "k", issue) }, "issue 1 of 1: 200 ", 200},
		{"refused and kept", func(s *testServer) *http.Request {
			return s.post("burn", "k", `{"from":"mine:a","asset":"USD/2","amount_minor":"999","nonce":3}`)
		}, "burn 1 of 1: 409 insufficient_funds", 409},
		{"refused", func(s *testServer) *http.Request { return s.post("burn", "k", "{") }, "burn 1 of 1: 400 bad_request", 400},
		{"a batch", func(s *testServer) *http.Request {
			return s.post("batch", "k", `{"atomic":false,"items":[{"op":"issue","to":"a","asset":"A","amount_minor":"1"}]}`)
		}, "batch 1 of 1: 200 ", 200},
		{"a key made", func(s *testServer) *http.Request { return s.command("keys", `{"name":"n","scopes":["read"]}`) }, "create_key 1 of 1: 200 ", 200},
		{"a read", func(s *testServer) *http.Request { return s.get("/v1/keys") }, "", 200},
		{"a read that is refused", func(s *testServer) *http.Request { return s.get("/v1/balance") }, "balance 1 of 1: 400 bad_request", 400},
		{"a replay", func(s *testServer) *http.Request {
			s.send(s.post("issue", "k", issue))
			s.takeAudit()
			return s.post("issue", "k", issue)
		}, "", 200},
		{"what became of a refusal", func(s *testServer) *http.Request {
			s.send(s.post("burn", "k", `{"from":"mine:a","asset":"USD/2","amount_minor":"999","nonce":3}`))
			s.takeAudit()
			return s.get("/v1/tx?idempotency_key=k")
		}, "lookup_tx 1 of 1: 409 insufficient_funds", 409},
		{"another scope", func(s *testServer) *http.Request {
			r := s.post("burn", "k", burn)
			r.Header.Set("Authorization", bearer(2))
			return r
		}, "burn 2 of 1: 403 forbidden", 403},
		{"over", func(s *testServer) *http.Request {
			k, _ := s.Find(2)
			k.Expires = now
			s.backend.putKey(k)
			r := s.get("/v1/keys")
			r.Header.Set("Authorization", bearer(2))
			return r
		}, "keys 2 of 1: 401 unauthorized", 401},
		{"another's secret", func(s *testServer) *http.Request {
			r := s.get("/v1/keys")
			r.Header.Set("Authorization", "Bearer mk_0000000000000001_"+secret(2))
			return r
		}, "", 401},
		{"no key", func(s *testServer) *http.Request {
			r := s.get("/v1/keys")
			r.Header.Del("Authorization")
			return r
		}, "", 401},
		{"a bug", func(s *testServer) *http.Request {
			r := s.post("issue", "k", issue)
			s.backend.reply = &event.Reply{}
			return r
		}, "issue 1 of 1: 500 internal", 500},
		{"a disk that fails", func(s *testServer) *http.Request {
			s.backend.readError = errors.New("read: input/output error")
			return s.get("/v1/tx/" + theTx)
		}, "tx 1 of 1: 500 internal", 500},
	} {
		s := serve(t, withMovements(t, true))
		r := c.ask(s)
		a := s.send(r)
		var got []string
		for _, u := range s.takeAudit() {
			got = append(got, fmt.Sprintf("%s %d of %d: %d %s", u.Route, u.Key, u.Tenant, u.Status, u.Code))
			made := a.status == 200 && u.Route != "create_key" || c.name == "refused and kept"
			if u.Decision != a.header.Get("X-Request-Id") || u.Peer == "" || made != (u.TxID != (types.TxID{})) {
				t.Errorf("%s: %+v", c.name, u)
			}
		}
		if strings.Join(got, ", ") != c.want || a.status != c.status {
			t.Errorf("%s: %d, noted %q, want %q", c.name, a.status, got, c.want)
		}
	}
}
