package config

import (
	"fmt"
	"testing"
)

// TestPathNormalizationIsStrictWithKeys: a route with API keys is strict, and so is each other
// route of its host; an explicit value is kept.
func TestPathNormalizationIsStrictWithKeys(t *testing.T) {
	for _, c := range []struct {
		routes []Route
		want   string
	}{
		{[]Route{{Auth: "none"}}, "[off]"},
		{[]Route{{Auth: "key"}}, "[strict]"},
		{[]Route{{Auth: "none"}, {Auth: "none", Host: "a"}}, "[off off]"},
		{[]Route{{Auth: "none"}, {Auth: "key", Path: "/secret"}}, "[strict strict]"},
		{[]Route{{Auth: "none"}, {Auth: "key", Host: "a"}}, "[strict strict]"},
		{[]Route{{Auth: "none", Host: "a"}, {Auth: "key"}}, "[strict strict]"},
		{[]Route{{Auth: "none", Host: "b"}, {Auth: "key", Host: "a"}}, "[off strict]"},
		{[]Route{{Auth: "none", Host: "a.example"}, {Auth: "key", Host: "*.example"}}, "[strict strict]"},
		{[]Route{{Auth: "none", Host: "*.example"}, {Auth: "key", Host: "b.a.example"}}, "[strict strict]"},
		{[]Route{{Auth: "none", Host: "*.example"}, {Auth: "key", Host: "*.a.example"}}, "[strict strict]"},
		{[]Route{{Auth: "none", Host: "example"}, {Auth: "key", Host: "*.example"}}, "[off strict]"},
		{[]Route{{Auth: "none", PathNormalization: AnyPaths}, {Auth: "key"}}, "[off strict]"},
		{[]Route{{Auth: "none", PathNormalization: StrictPaths}, {Auth: "key", PathNormalization: AnyPaths}}, "[strict off]"},
	} {
		all := Config{Routes: c.routes}
		all.completePaths()
		got := make([]string, 0, len(all.Routes))
		for _, r := range all.Routes {
			got = append(got, r.PathNormalization)
		}
		if fmt.Sprint(got) != c.want {
			t.Errorf("%+v: %v, want %s", c.routes, got, c.want)
		}
	}
}
