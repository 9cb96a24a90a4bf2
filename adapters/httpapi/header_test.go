package httpapi_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"macronode/adapters/httpapi"
	"macronode/core/event"
)

func TestCorrelationIDIsEchoedIfPrintable(t *testing.T) {
	s := serve(t, build(t))
	for corr, want := range map[string]bool{
		"a": true, "~!{}": true, strings.Repeat("c", 64): true,
		"": false, strings.Repeat("c", 65): false, "a b": false, "\xc3\xb6": false, "a\tb": false,
	} {
		r := s.get("/openapi.json")
		r.Header["X-Corr-Id"] = []string{corr}
		got := s.send(r).header["X-Corr-Id"]
		if want != (len(got) == 1 && got[0] == corr) || !want && got != nil {
			t.Errorf("%q: %q", corr, got)
		}
	}
	r := s.get("/openapi.json")
	r.Header["X-Corr-Id"] = []string{"a", "b"}
	if got := s.send(r).header["X-Corr-Id"]; got != nil {
		t.Errorf("two of them: %q", got)
	}
	refused := s.post("issue", "k", "{")
	refused.Header.Set("X-Corr-ID", "mine")
	if a := s.send(refused); a.header.Get("X-Corr-ID") != "mine" {
		t.Errorf("a refusal: %+v", a)
	}
}

func TestTraceparentIsContinued(t *testing.T) {
	const trace, span = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	s := serve(t, build(t))
	ours := regexp.MustCompile("^00-" + trace + "-([0-9a-f]{16})-0([01])$")
	for parent, flags := range map[string]string{
		"00-" + trace + "-" + span + "-01":                    "1",
		"00-" + trace + "-" + span + "-00":                    "0",
		"00-" + trace + "-" + span + "-03":                    "1",
		"00-" + trace + "-" + span + "-fe":                    "0",
		"00-" + trace + "-" + span + "-0d":                    "1",
		"cc-" + trace + "-" + span + "-01-what":               "1",
		"cc-" + trace + "-" + span + "-01":                    "1",
		"ff-" + trace + "-" + span + "-01":                    "",
		"00-" + trace + "-" + span + "-01-what":               "",
		"cc-" + trace + "-" + span + "-01.what":               "",
		"00-" + trace + "-" + span + "-0":                     "",
		"00-" + trace + "-" + span + "-0G":                    "",
		"00_" + trace + "-" + span + "-01":                    "",
		"00-" + trace + "_" + span + "-01":                    "",
		"00-" + trace + "-" + span + "_01":                    "",
		"00-" + strings.ToUpper(trace) + "-" + span + "-01":   "",
		"00-" + strings.Repeat("0", 32) + "-" + span + "-01":  "",
		"00-" + trace + "-" + strings.Repeat("0", 16) + "-01": "",
		"": "",
	} {
		r := s.get("/openapi.json")
		r.Header.Set("Traceparent", parent)
		a := s.send(r)
		got := ours.FindStringSubmatch(a.header.Get("Traceparent"))
		switch {
		case flags == "" && a.header["Traceparent"] == nil:
		case flags != "" && got != nil && got[2] == flags && strings.HasSuffix(a.header.Get("X-Request-Id"), got[1]):
		default:
			t.Errorf("%q: %q", parent, a.header["Traceparent"])
		}
	}
}

// Two decisions never have the same ID.
func TestDecisionIDsAreUnique(t *testing.T) {
	s := serve(t, build(t))
	seen := make(map[string]bool)
	for range 100 {
		id := s.send(s.get("/nowhere")).header.Get("X-Request-Id")
		if seen[id] {
			t.Fatalf("%s again", id)
		}
		seen[id] = true
	}
}

// A path without a route is rejected like other requests.
func TestUnknownRoutes(t *testing.T) {
	s := serve(t, build(t))
	for _, path := range []string{"/v1", "/v1/", "/v1/transfer/", "/V1/transfer", "/v1//transfer", "/v1%2Ftransfer",
		"/v1/holds/", "/v1/batches", "/v1/accounts/a", "/v1/key", "/openapi.yaml", "/metrics", "/../v1/transfer"} {
		for _, method := range []string{"GET", "POST", "OPTIONS", "BREW"} {
			r := s.get("/")
			r.URL.Path, r.URL.RawPath, r.Method = path, "", method
			if strings.Contains(path, "%") {
				r.URL.Path, r.URL.RawPath = strings.ReplaceAll(path, "%2F", "/"), path
			}
			if a := s.send(r); a.status != 404 {
				t.Errorf("%s %s: %d", method, path, a.status)
			}
		}
	}
	if s.count.get("other GET") == 0 || s.count.get("other other") == 0 || s.count.get("other POST") == 0 {
		t.Errorf("counted %v", s.count.of)
	}
}

func TestMethodNotAllowedListsMethods(t *testing.T) {
	s := serve(t, build(t))
	for path, want := range map[string]string{"/v1/issue": "POST", "/v1/balance": "GET", "/v1/tx/x": "GET", "/openapi.json": "GET"} {
		for _, method := range []string{"HEAD", "OPTIONS", "DELETE", "BREW"} {
			r := s.get(path)
			r.Method = method
			if a := s.send(r); a.status != 405 || a.header.Get("Allow") != want || len(a.header["Allow"]) != 1 {
				t.Errorf("%s %s: %d, Allow %q", method, path, a.status, a.header["Allow"])
			}
		}
	}
}

// The log never contains a secret.
func TestSecretsAreNotLogged(t *testing.T) {
	h := build(t)
	h.onFindKey = func() { panic("a bug") }
	s := serve(t, h)
	s.send(s.post("issue", "k", issue))
	if lines := s.lines.String(); lines == "" || strings.Contains(lines, secret(1)) {
		t.Fatalf("logged %s", lines)
	}
}

// TestRequestIDs: a response has the request ID that the client sent, and the decision ID. If the client sent no
// usable one, both are the decision ID.
func TestRequestIDs(t *testing.T) {
	kept := new(decisionLog)
	s := serve(t, build(t), func(c *httpapi.Config) { c.Snapshot.Proxy, c.Decisions = fakeProxy{}, kept })
	for _, path := range []string{"/openapi.json", "/v1/nowhere", "/echo", "/nowhere"} {
		for _, sent := range [][]string{nil, {"order-7"}, {strings.Repeat("x", 64)}, {strings.Repeat("x", 65)}, {"two words"}, {""}, {"a", "b"}} {
			kept.all = nil
			r := s.get(path)
			r.Header["X-Request-Id"] = sent
			r.Header["X-Decision-Id"] = []string{"d_theirs"}
			a := s.send(r)
			decision := a.header.Get("X-Decision-Id")
			want, client := decision, ""
			if len(sent) == 1 && 0 < len(sent[0]) && len(sent[0]) <= 64 && sent[0] != "two words" {
				want, client = sent[0], sent[0]
			}
			if len(decision) != 34 || len(a.header["X-Request-Id"]) != 1 || a.header.Get("X-Request-Id") != want {
				t.Errorf("%s with %q: request %q, decision %q", path, sent, a.header["X-Request-Id"], decision)
			}
			if path == "/echo" && a.body != "sent on: ["+want+"] ["+decision+"]" {
				t.Errorf("%s with %q: %s", path, sent, a.body)
			}
			if len(kept.all) != 1 || kept.all[0].ID != decision || kept.all[0].ClientRequestID != client {
				t.Errorf("%s with %q: kept %+v", path, sent, kept.all)
			}
		}
	}
}

// TestIndex: a client without knowledge of the API finds the document, unless a route matches the path. The
// request is admitted like any other.
func TestIndex(t *testing.T) {
	h := build(t)
	for name, s := range map[string]*testServer{"without routes": serve(t, h), "no route fits": serve(t, h, func(c *httpapi.Config) { c.Snapshot.Proxy = noRoutes{} })} {
		for _, c := range []struct {
			method, path, accept string
			status               int
			kind                 string
		}{
			{"GET", "/", "text/html,application/xhtml+xml,*/*;q=0.8", 200, "text/html; charset=utf-8"},
			{"GET", "/", "*/*", 200, "application/json"},
			{"GET", "/docs", "", 200, "application/json"},
			{"POST", "/", "", 404, "application/problem+json"},
			{"GET", "/docs/", "", 404, "application/problem+json"},
			{"GET", "/index.html", "text/html", 404, "application/problem+json"},
		} {
			h.admits = nil
			r := s.get(c.path)
			r.Method = c.method
			r.Header.Del("Authorization")
			r.Header.Set("Accept", c.accept)
			a := s.send(r)
			if a.status != c.status || a.header.Get("Content-Type") != c.kind || c.status == 200 && !strings.Contains(a.body, `"/openapi.json"`) {
				t.Errorf("%s: %s %s: %d %s %s", name, c.method, c.path, a.status, a.header.Get("Content-Type"), a.body)
			}
			if len(h.admits) != 1 || len(h.permits) != 0 {
				t.Errorf("%s: %s: %d were admitted, %d have permits", name, c.path, len(h.admits), len(h.permits))
			}
		}
	}
	s := serve(t, h, func(c *httpapi.Config) { c.Snapshot.Proxy = fakeProxy{} })
	if a := s.send(s.get("/")); !strings.Contains(a.body, "from afar") {
		t.Errorf("a route that takes /: %d %s", a.status, a.body)
	}
}

// noRoutes has no route for anything.
type noRoutes struct{}

func (noRoutes) Match(*http.Request) (httpapi.ProxyRoute, event.Problem) {
	return httpapi.ProxyRoute{}, event.NotFound
}
