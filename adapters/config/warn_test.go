package config

import (
	"fmt"
	"testing"
)

// TestWarnings: a route whose deadline is longer than node.drain is reported, unless both are
// defaults.
func TestWarnings(t *testing.T) {
	route := func(deadline string) string {
		return `routes=[{"path":"/","upstream":"app","deadline":"` + deadline + `"}]`
	}
	const app, plain = `upstreams={"app":{"url":"http://127.0.0.1:9"}}`, `routes=[{"path":"/","upstream":"app"}]`
	for _, c := range []struct {
		sets []string
		want string
	}{
		{nil, "[]"},
		{[]string{app, plain}, "[]"},
		{[]string{app, route("5s")}, "[]"},
		{[]string{app, route("30s")}, "[routes[0].deadline (flag --set " + route("30s") + ") is 30s: requests that take longer than node.drain (default), which is 3s, are cut when the node ends]"},
		{[]string{app, route("30s"), "node.drain=1m"}, "[]"},
		{[]string{app, route("2m"), "node.drain=1m"}, "[routes[0].deadline (flag --set " + route("2m") + ") is 2m: requests that take longer than node.drain (flag --set node.drain=1m), which is 1m, are cut when the node ends]"},
		{[]string{app, route("4s"), "node.drain=4s", "http.request_deadline=4s"}, "[]"},
		{[]string{"http.request_deadline=10s"}, "[http.request_deadline (flag --set http.request_deadline=10s) is 10s: requests that take longer than node.drain (default), which is 3s, are cut when the node ends]"},
	} {
		got, err := Load(sources(t, "", nil, c.sets...))
		if err != nil {
			t.Fatal(err)
		}
		if reported := fmt.Sprint(got.Warnings()); reported != c.want {
			t.Errorf("%q:\n got %s\nwant %s", c.sets, reported, c.want)
		}
	}
}
