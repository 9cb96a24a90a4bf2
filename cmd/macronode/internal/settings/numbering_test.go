package settings

import (
	"slices"
	"testing"

	"macronode/cmd/macronode/internal/testkit"
)

// TestRenumber: an entry with the same identity keeps its number at any position, and a new one gets another.
func TestRenumber(t *testing.T) {
	const app = `upstreams={"app":{"urls":["http://127.0.0.1:9","http://127.0.0.1:10"]}}`
	was, err := Numbers{}.renumber(testkit.Config(t, app,
		`routes=[{"name":"shop","path":"/shop","upstream":"app"},{"path":"/a","upstream":"app"},{"path":"/b","upstream":"app"}]`,
		`quotas=[{"scope":"peer","requests_per_second":1},{"scope":"peer","requests_per_second":2},{"scope":"route","route":"shop","requests_per_second":3}]`))
	if err != nil {
		t.Fatal(err)
	}
	is, err := was.renumber(testkit.Config(t, `upstreams={"app":{"urls":["http://127.0.0.1:11","http://127.0.0.1:10"]},"aaa":{"url":"http://127.0.0.1:9"}}`,
		`routes=[{"path":"/b","upstream":"app"},{"name":"shop","path":"/elsewhere","upstream":"app"},{"name":"inn","path":"/inn","upstream":"app"}]`,
		`quotas=[{"scope":"route","route":"inn","requests_per_second":3},{"scope":"route","route":"shop","requests_per_second":9},{"scope":"peer","requests_per_second":5}]`))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ got, want []int }{
		"routes":    {is.route, []int{2, 0, 3}},
		"quotas":    {is.rule, []int{3, 2, 0}},
		"upstreams": {is.upstream, []int{1, 0}}, // in the order of their names
		"endpoints": {is.endpoint[1], []int{2, 1}},
	} {
		if !slices.Equal(c.got, c.want) {
			t.Errorf("%s: %v, want %v", name, c.got, c.want)
		}
	}
	if fresh := is.Rules.changedBits(was.Rules); fresh != 1<<3 {
		t.Errorf("fresh rules %b", fresh)
	}
	if given := is.Endpoints["app"].assigned(); given != 1<<1|1<<2 {
		t.Errorf("endpoints %b", given)
	}
}
