package cli

import (
	"fmt"
	"slices"
	"testing"

	"macronode/adapters/adminapi"
	"macronode/cmd/macronode/internal/testkit"
)

// startSink starts a node with one sink, which begins somewhere when it is seen for the first time; from empty: without a sink.
func startSink(t *testing.T, dir, url, from string) *exportsNode {
	args := []string{"--set", "accounting.window=1s", "--set", "accounting.grace=0s"}
	if from != "" {
		args = append(args, "--set", fmt.Sprintf(`exports.sinks=[{"name":"app","kind":"http","url":%q,"streams":["usage","wallet"],"from":%q}]`, url, from))
	}
	return &exportsNode{process: startInDir(t, dir, args...), t: t}
}

// TestSinkBeginsNow: a sink that is added to a node with items gets what comes after that, of old and of new streams. Where it began
// is decided once, until it is removed.
func TestSinkBeginsNow(t *testing.T) {
	t.Parallel()
	r, dir := newReceiver(t), t.TempDir()
	has := func(stream string, want ...int) {
		t.Helper()
		testkit.Until(func() bool { return len(r.positions(stream)) >= len(want) })
		if got := r.positions(stream); !slices.Equal(got, want) {
			t.Fatalf("%s: the receiver has %v, not %v", stream, got, want)
		}
	}
	delivered := func(s adminapi.Sink) bool {
		return len(s.Lanes) >= 2 && s.Pending != nil && *s.Pending == 0 && s.InFlight == 0
	}
	issue := "wallet issue --to ann --asset EUR/2 --amount 100"

	n := startSink(t, dir, r.URL, "")
	n.use()
	n.use()
	n.run(issue, 0)
	n.end()

	next := n.next
	n = startSink(t, dir, r.URL, "now")
	n.next = next
	n.await("the sink is seen", delivered)
	n.use()
	n.run(issue, 0)
	n.next++ // the slice of another dimension
	n.run("usage record --dimension bytes_in --value 1", 0)
	has("slices/default/requests", 3)
	has("slices/default/bytes_in", 1)
	has("movements/default", 2)
	n.end()

	next = n.next
	n = startSink(t, dir, r.URL, "start")
	n.next = next
	n.use()
	has("slices/default/requests", 3, 4)
	has("movements/default", 2)
	n.end()

	n = startSink(t, dir, r.URL, "")
	n.run("exports remove app", 0)
	n.end()
	n = startSink(t, dir, r.URL, "start")
	has("slices/default/requests", 3, 4, 1, 2, 3, 4)
	has("slices/default/bytes_in", 1, 1)
	has("movements/default", 2, 1, 2)
	n.end()
}
