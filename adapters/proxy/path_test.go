package proxy_test

import (
	"strings"
	"testing"

	"macronode/adapters/proxy"
	"macronode/core/event"
)

// TestStrictPathRejectsAmbiguousPaths: a strict route rejects a path that an upstream may read as
// another one; other routes forward it.
func TestStrictPathRejectsAmbiguousPaths(t *testing.T) {
	h := newGateway(t, func(c *proxy.Config) {
		c.Routes = []proxy.Route{
			{Prefix: "/", StrictPath: true},
			{Prefix: "/secret", StrictPath: true, NeedsKey: true},
			{Prefix: "/Mixed", StrictPath: true, NeedsKey: true},
			{Prefix: "/posts", StrictPath: true, NeedsKey: true, Methods: []string{"POST"}},
			{Prefix: "/free"},
			{Prefix: "/secret/loose", NeedsKey: true},
		}
	}, "http://a")
	const refused = -1
	for _, c := range []struct {
		path   string
		want   int
		detail string
	}{
		{"/", 0, ""}, {"/x/", 0, ""}, {"/x/y.html", 0, ""}, {"/x/.well-known", 0, ""}, {"/a%20b/c", 0, ""}, {"/100%25", 0, ""}, {"/100%25/x", 0, ""}, {"/%25zz", 0, ""},
		{"/%C3%A4", 0, ""}, {"/wiki/What%3F", 0, ""}, {"/a%23b", 0, ""}, {"/a%2Fb", 0, ""}, {"/x/SECRET", 0, ""}, {"/secrets", 0, ""}, {"/secret.html", 0, ""},
		{"/secret", 1, ""}, {"/secret/", 1, ""}, {"/%73ecret/x", 1, ""}, {"/secret%2Fx", 1, ""}, {"/secret/a%2Fb", 1, ""}, {"/secret/X", 1, ""}, {"/secret/What%3F", 1, ""}, {"/Mixed", 2, ""},

		{"/secret;a", refused, "a semicolon"}, {"/secret%3Ba", refused, "a semicolon"}, {"/secret;", refused, "a semicolon"}, {"/;/secret", refused, "a semicolon"},
		{"/secret;a=1/x", refused, "a semicolon"}, {"/secret/x;a", refused, "a semicolon"}, {"/x;jsessionid=1", refused, "a semicolon"},
		{"//h/secret", refused, "an empty segment"}, {"//secret", refused, "an empty segment"}, {"/x//secret", refused, "an empty segment"}, {"/x/%2Fsecret", refused, "an empty segment"},
		{"/secret//", refused, "an empty segment"}, {"/x%2F%2Fy", refused, "an empty segment"},
		{"/%5csecret", refused, "a backslash"}, {"/x%5Csecret", refused, "a backslash"}, {"/x\\secret", refused, "a backslash"}, {"/secret%5c", refused, "a backslash"},
		{"/secret.", refused, "ends with a dot"}, {"/secret%2e", refused, "ends with a dot"}, {"/secret./x", refused, "ends with a dot"}, {"/secret...", refused, "ends with a dot"}, {"/x/...", refused, "ends with a dot"},
		{"/secret%20", refused, "a blank"}, {"/secret%20/x", refused, "a blank"}, {"/%20secret", refused, "a blank"}, {"/x/%20/y", refused, "a blank"},
		{"/%2573ecret", refused, "an escape that is escaped itself"}, {"/x%252fsecret", refused, "an escape that is escaped itself"}, {"/x/%252e%252e/secret", refused, "an escape that is escaped itself"},
		{"/%c0%aesecret", refused, "not UTF-8"}, {"/secret%85", refused, "not UTF-8"}, {"/secret%a0", refused, "not UTF-8"},
		{"/SECRET", refused, "by case alone"}, {"/POSTS", refused, "by case alone"}, {"/%C5%BFecret", refused, "by case alone"}, {"/m%C4%B1xed", refused, "by case alone"}, {"/%C5%BFecrets", 0, ""}, {"/Secret/x", refused, "by case alone"}, {"/mixed/x", refused, "by case alone"}, {"/%53ecret", refused, "by case alone"},
		{"/secret%3Fx", refused, "question mark"}, {"/secret%23x", refused, "number sign"}, {"/SECRET%3Fx", refused, "question mark"},
		{"/../secret", refused, "a dot segment"}, {"/x%2f..%2fsecret", refused, "a dot segment"},

		{"/free/x;a//b%5c.%20", 4, ""}, {"/free/SECRET%252f", 4, ""}, {"/secret/loose;a", refused, "a semicolon"}, {"/secret/loose/x;a", 5, ""},
	} {
		m, problem := h.proxy.Match(request(t, "GET", "a", c.path))
		switch {
		case c.want == refused && (problem != event.BadRequest || !strings.Contains(m.Detail, c.detail) || strings.ContainsAny(m.Detail, "\"\\")):
			t.Errorf("%s: route %d, %v %q, want %q", c.path, m.Route, problem, m.Detail, c.detail)
		case c.want != refused && (problem != event.None || m.Route != c.want):
			t.Errorf("%s: route %d, %v %q, want route %d", c.path, m.Route, problem, m.Detail, c.want)
		}
	}
	if m, problem := h.proxy.Match(request(t, "POST", "a", "/POSTS")); problem != event.BadRequest {
		t.Errorf("a POST that differs by case: route %d, %v", m.Route, problem)
	}
}

// TestEscapedSlashCannotAvoidKey: a path is rejected if it matches an open route when an escaped
// slash divides segments, and a route with a key when it does not.
func TestEscapedSlashCannotAvoidKey(t *testing.T) {
	h := newGateway(t, func(c *proxy.Config) {
		c.Routes = []proxy.Route{{Prefix: "/", StrictPath: true, NeedsKey: true}, {Prefix: "/public", StrictPath: true}}
	}, "http://a")
	for path, want := range map[string]event.Problem{"/public/x": event.None, "/public/a%2Fb": event.None, "/public%2Fx": event.BadRequest, "/x%2Fy": event.None} {
		if m, problem := h.proxy.Match(request(t, "GET", "a", path)); problem != want {
			t.Errorf("%s: route %d, %v %q, want %v", path, m.Route, problem, m.Detail, want)
		}
	}
}
