package cli

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"macronode/cmd/macronode/internal/testkit"
)

// TestFullTenantStopsNoOther: a tenant whose streams want more lanes than it gets keeps no other tenant from a lane. The log names the
// key of the limit.
func TestFullTenantStopsNoOther(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	n := &exportsNode{t: t, process: startInDir(t, t.TempDir(), "--set", "accounting.window=1s", "--set", "accounting.grace=0s", "--set", "exports.lanes=4", "--set",
		fmt.Sprintf(`exports.sinks=[{"name":"app","kind":"http","url":%q,"streams":["usage","wallet"]}]`, r.URL))}
	_, other := n.callers(t)
	for i := range 3 {
		n.run(fmt.Sprintf("usage record --dimension custom:d%d --value 1", i), 0)
	}
	testkit.Until(func() bool { return strings.Contains(n.log.String(), "Without exports.max_lanes_per_tenant") })
	other.wants(t, "", "/v1/issue", issueTo("a", "EUR"))
	testkit.Until(func() bool { return len(r.positions("movements/9")) > 0 })
	for check := testkit.HangGuard(t); ; check() {
		code, is := program(t, "exports", "status", "--data", n.dir)
		if code == 0 && strings.Contains(is, "waiting") && strings.Contains(is, "no room for another lane, so streams without one wait, 1 of them") {
			break
		}
	}
	if strings.Contains(n.adminText(t, "/metrics"), "\nexport_lag_seconds{sink=\"app\"} 0\n") {
		t.Error("a stream that waits for a lane has no lag")
	}
}

// TestReloadWithoutRoomForSinks: a reload with more new sinks than the node can know is not applied.
func TestReloadWithoutRoomForSinks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	sinks := func(round int) string {
		var all []string
		for i := range 16 {
			all = append(all, fmt.Sprintf("{name: s%d-%d, kind: file, dir: %q, from: now}", round, i, filepath.Join(dir, fmt.Sprint(round, "-", i))))
		}
		return "exports: {sinks: [" + strings.Join(all, ", ") + "]}\n"
	}
	c := startWithFile(t, sinks(0))
	for round := 1; round < 4; round++ {
		if is, status := c.reload(sinks(round)); status != 200 {
			t.Fatalf("round %d: %d %+v", round, status, is)
		}
	}
	code, answer := reloadText(t, c, sinks(4))
	if code == 0 || !strings.Contains(answer, "exports.sinks has 16 new sinks, and there is room for 0: the node knows 64") || !strings.Contains(answer, "macronode exports remove") {
		t.Errorf("%d: %s", code, answer)
	}
}

func reloadText(t *testing.T, c *reloadableNode, text string) (code int, answer string) {
	t.Helper()
	c.write(text)
	return program(t, "config", "reload", "--data", c.dir)
}
