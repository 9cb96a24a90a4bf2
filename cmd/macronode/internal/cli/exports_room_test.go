package cli

import (
	"fmt"
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
}
