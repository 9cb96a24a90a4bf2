package cli

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"macronode/adapters/config"
	"macronode/cmd/macronode/internal/exit"
	"macronode/cmd/macronode/internal/settings"
	"macronode/cmd/macronode/internal/testkit"
)

// TestDescribeChange: a change of a list is described entry by entry, and only what changed.
func TestDescribeChange(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		key, was, is string
		want         []string
	}{
		"no list":              {"node.drain", "3s", "1s", []string{"node.drain: 3s -> 1s"}},
		"no list, of brackets": {"data", "{a", "[b", []string{"data: {a -> [b"}},
		"from none": {"upstreams", "{}", `{"app": {"max_attempts": 3}, "more": {"max_attempts": 1}}`,
			[]string{`upstreams.app: added, it is {"max_attempts": 3}`, `upstreams.more: added, it is {"max_attempts": 1}`}},
		"to none": {"quotas", `[{"scope": "peer"}]`, "[]", []string{`quotas[0]: removed, it was {"scope": "peer"}`}},
		"by name": {"upstreams", `{"a": {"max_attempts": 3, "urls": ["x"]}, "b": {"max_attempts": 1}, "c": {}}`, `{"a": {"urls": ["x", "y"], "host": "h"}, "c": {}, "d": {}}`,
			[]string{`upstreams.a.host: nothing -> "h"`, `upstreams.a.max_attempts: 3 -> nothing`, `upstreams.a.urls: ["x"] -> ["x", "y"]`, `upstreams.b: removed, it was {"max_attempts": 1}`, `upstreams.d: added, it is {}`}},
		"a section of one": {"upstreams", `{"a": {"health": {"path": "/h", "fall": 3}}}`, `{"a": {"health": {"path": "/h", "fall": 2}}}`, []string{"upstreams.a.health.fall: 3 -> 2"}},
		"the first of many": {"routes", `[{"path": "/a"}, {"path": "/b"}, {"path": "/c"}]`, `[{"path": "/b"}, {"path": "/c"}]`,
			[]string{`routes[0]: removed, it was {"path": "/a"}`}},
		"one in the middle": {"routes", `[{"path": "/a"}, {"path": "/c"}]`, `[{"path": "/a"}, {"path": "/b"}, {"path": "/c"}]`,
			[]string{`routes[1]: added, it is {"path": "/b"}`}},
		"by place": {"routes", `[{"path": "/a"}, {"path": "/b"}, {"path": "/c"}]`, `[{"path": "/a"}, {"path": "/x"}, {"path": "/c"}]`, []string{`routes[1].path: "/b" -> "/x"`}},
		"by name, in a sequence, moved": {"quotas", `[{"name": "a", "burst": 1}, {"name": "b", "burst": 2}]`, `[{"name": "b", "burst": 3}, {"name": "a", "burst": 1}]`,
			[]string{`quotas[b].burst: 2 -> 3`}},
		"another name": {"quotas", `[{"name": "a", "burst": 1}]`, `[{"name": "b", "burst": 1}]`,
			[]string{`quotas[a]: removed, it was {"name": "a", "burst": 1}`, `quotas[b]: added, it is {"name": "b", "burst": 1}`}},
		"a name for one": {"quotas", `[{"burst": 1}]`, `[{"name": "b", "burst": 1}]`,
			[]string{`quotas[0]: removed, it was {"burst": 1}`, `quotas[b]: added, it is {"name": "b", "burst": 1}`}},
		"names that stand twice": {"quotas", `[{"name": "a", "burst": 1}, {"name": "a", "burst": 2}]`, `[{"name": "a", "burst": 1}, {"name": "a", "burst": 3}]`,
			[]string{`quotas[1].burst: 2 -> 3`}},
		"another order": {"quotas", `[{"name": "a"}, {"name": "b"}]`, `[{"name": "b"}, {"name": "a"}]`, []string{"quotas: the same entries in another order"}},
		"words": {"http.trusted_proxies", `["10.0.0.0/8", "10.1.0.0/16"]`, `["10.1.0.0/16", "10.2.0.0/16"]`,
			[]string{`http.trusted_proxies[10.0.0.0/8]: removed, it was "10.0.0.0/8"`, `http.trusted_proxies[10.2.0.0/16]: added, it is "10.2.0.0/16"`}},
	} {
		if got := describeChange(c.key, c.was, c.is); !slices.Equal(got, c.want) {
			t.Errorf("%s:\n%s\nwants\n%s", name, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
	}
}

// TestOneChangedEntryOfMany: in a list of any length, one removed, added or changed entry is one line.
func TestOneChangedEntryOfMany(t *testing.T) {
	t.Parallel()
	const many = 50
	routes := func(without int, deadline string) *config.Config {
		var ups, all []string
		for i := range many {
			ups = append(ups, fmt.Sprintf(`"up%d":{"url":"http://127.0.0.1:%d"}`, i, 9000+i))
			if of := fmt.Sprintf(`{"path":"/p%d","upstream":"up%d","auth":"none"`, i, i); i == many-1 {
				all = append(all, of+`,"deadline":"`+deadline+`"}`)
			} else if i != without {
				all = append(all, of+"}")
			}
		}
		return testkit.Config(t, "upstreams={"+strings.Join(ups, ",")+"}", "routes=["+strings.Join(all, ",")+"]")
	}
	for name, c := range map[string]struct {
		was, is *config.Config
		want    string
	}{
		"gone":    {routes(many, "5s"), routes(7, "5s"), `routes[7]: removed, it was {"path": "/p7", `},
		"come":    {routes(7, "5s"), routes(many, "5s"), `routes[7]: added, it is {"path": "/p7", `},
		"changed": {routes(many, "5s"), routes(many, "2s"), `routes[49].deadline: "5s" -> "2s"`},
	} {
		all, err := settings.Compare(c.was, c.is)
		if err != nil || len(all) != 1 {
			t.Fatal(all, err)
		}
		d := newTestConsole()
		if err := (nodeReport{d.Console}).printChanges(all); err != nil || !strings.HasPrefix(d.out.String(), c.want) || strings.Count(d.out.String(), "\n") != 1 || d.out.Len() > 300 {
			t.Errorf("%s: %v\n%s", name, err, &d.out)
		}
	}
}

// TestPartialCheckIsShown: config status and config reload show that the check of a change ended at its limit.
func TestPartialCheckIsShown(t *testing.T) {
	t.Parallel()
	const note = "its rehearsal is partial"
	for _, verb := range []string{"status", "reload"} {
		for _, partial := range []bool{false, true} {
			p, d := newPeer(t, fmt.Sprintf(`200 {"version":"c0ffee","changes":1,"last":{"applied":true,"version":"c0ffee","changed":[],"rehearsal_partial":%v}}`, partial)), newTestConsole()
			dir, _ := writeRunFiles(t, os.Getpid(), "h:1", p.at())
			if code := Run([]string{"config", verb, "--data", dir}, d.Console); code != exit.CodeDone || strings.Contains(d.out.String(), note) != partial {
				t.Errorf("config %s, partial %v: %d\n%s%s", verb, partial, code, &d.out, &d.err)
			}
		}
	}
}
