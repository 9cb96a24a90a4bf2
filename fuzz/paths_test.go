package fuzz

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"macronode/adapters/proxy"
	"macronode/core/event"
)

// normalisers are what servers do to a decoded path before they look for what it names.
var normalisers = []func(string) string{
	func(p string) string { return strings.ReplaceAll(p, `\`, "/") },
	func(p string) string { // decodes once more
		if again, err := url.PathUnescape(p); err == nil {
			return again
		}
		return p
	},
	func(p string) string { // cuts at what begins a query or a fragment
		if at := strings.IndexAny(p, "?#"); at >= 0 {
			return p[:at]
		}
		return p
	},
	func(p string) string { // takes what is between two slashes and the next for a host
		if rest, ok := strings.CutPrefix(p, "//"); ok {
			_, path, _ := strings.Cut(rest, "/")
			return "/" + path
		}
		return p
	},
	func(p string) string { // removes parameters
		return eachSegment(p, func(s string) string { s, _, _ = strings.Cut(s, ";"); return s })
	},
	func(p string) string { return eachSegment(p, func(s string) string { return strings.Trim(s, " ") }) },
	func(p string) string {
		return eachSegment(p, func(s string) string { return strings.TrimRight(s, ".") })
	},
	func(p string) string { return strings.ToValidUTF8(p, "") },
	strings.ToLower,
	func(p string) string {
		for strings.Contains(p, "//") {
			p = strings.ReplaceAll(p, "//", "/")
		}
		return p
	},
}

func eachSegment(path string, do func(string) string) string {
	all := strings.Split(path, "/")
	for i := range all {
		all[i] = do(all[i])
	}
	return strings.Join(all, "/")
}

// maxTarget bounds the time of one input: each is normalised in a thousand ways.
const maxTarget = 200

// FuzzStrictPath: a path that an open and strict route takes is under a path that wants a key in none of
// the ways in which servers normalise it.
func FuzzStrictPath(f *testing.F) {
	for _, seed := range []string{"/", "/secret", "/secret;a", "//h/secret", "/%5csecret", "/secret.", "/secret%20/x", "/%20secret", "/SECRET", "/%2573ecret", "/secret%3f", "/secret%2f",
		"/x;/secret", "/secret%85", "/%c0%afsecret", "/;/secret", "/a%2F%2Fsecret", "/.;/secret", "/s%25%36%35cret", "/a/b.html", "/What%3F", "/SECRET%3Fx", "/secret%2fx%23", "/\u212aey"} {
		f.Add(seed)
	}
	c := proxy.Default()
	to, err := url.Parse("http://127.0.0.1:1")
	if err != nil {
		f.Fatal(err)
	}
	c.Upstreams = []proxy.Upstream{{Name: "app", URLs: []*url.URL{to}}}
	c.Routes = []proxy.Route{{Prefix: "/", StrictPath: true}, {Prefix: "/secret", StrictPath: true, NeedsKey: true}}
	c.Fail = func(w http.ResponseWriter, _ *http.Request, p event.Problem) { w.WriteHeader(p.Status()) }
	p, err := proxy.New(c, new(recordingPort))
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(p.Retire)
	f.Fuzz(func(t *testing.T, target string) {
		u, err := url.ParseRequestURI(target)
		if err != nil || len(target) > maxTarget {
			return
		}
		m, why := p.Match(&http.Request{Method: "GET", Host: "a", URL: u, RequestURI: target, ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}})
		if why != event.None || m.Route != 0 {
			return
		}
		for set := range 1 << len(normalisers) {
			path := u.Path
			for i, normalise := range normalisers {
				if set>>i&1 == 1 {
					path = normalise(path)
				}
			}
			if path == "/secret" || strings.HasPrefix(path, "/secret/") {
				t.Fatalf("%q is %q to who normalises by the set %b", target, path, set)
			}
		}
	})
}
