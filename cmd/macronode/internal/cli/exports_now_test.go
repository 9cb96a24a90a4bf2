package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"testing"

	"macronode/adapters/adminapi"
	"macronode/cmd/macronode/internal/testkit"
)

// haveDelivered waits until all sinks of a node have the movements up to one.
func (n *exportsNode) haveDelivered(upto uint64, sinks int) {
	n.t.Helper()
	testkit.Until(func() bool {
		var is adminapi.Exports
		if err := json.Unmarshal([]byte(n.run("exports status --json", 0)), &is); err != nil {
			n.t.Fatal(err)
		}
		return len(is.Sinks) == sinks && !slices.ContainsFunc(is.Sinks, func(s adminapi.Sink) bool {
			return len(s.Lanes) != 1 || s.Lanes[0].Cursor != upto || s.Lanes[0].Head != upto
		})
	})
}

// TestSinkBeginsBeforeNodeIsReady: a sink that begins now gets the first item that is acknowledged after the node is ready.
func TestSinkBeginsBeforeNodeIsReady(t *testing.T) {
	t.Parallel()
	const issue = "wallet issue --to ann --asset EUR/2 --amount 100"
	r, dir := newReceiver(t), t.TempDir()
	n := startSink(t, dir, r.URL, "")
	n.run(issue, 0)
	n.end()
	n = startSink(t, dir, r.URL, "now")
	n.run(issue, 0)
	n.haveDelivered(2, 1)
	if got := r.positions("movements/default"); !slices.Equal(got, []int{2}) {
		t.Errorf("the receiver has %v", got)
	}
	n.end()
}

// TestSinkBeginsBeforeReloadIsAnswered: sinks that a reload adds, and that begin now, get the first item that is acknowledged after the
// reload was answered, also if the node takes few commands at once.
func TestSinkBeginsBeforeReloadIsAnswered(t *testing.T) {
	t.Parallel()
	const more = "permits:\n  wallet: 8\n"
	r := newReceiver(t)
	c := startWithFile(t, more)
	n := &exportsNode{process: c.process, t: t}
	n.run("wallet issue --to ann --asset EUR/2 --amount 100", 0)
	var sinks []string
	for i := range 12 {
		sinks = append(sinks, httpSink(fmt.Sprintf("s%d", i), r.URL, ", from: now"))
	}
	if is, status := c.reload(more + sinksText(sinks...)); status != http.StatusOK || !is.Last.Applied {
		t.Fatalf("%d %+v", status, is.Last)
	}
	n.run("wallet issue --to ann --asset EUR/2 --amount 100", 0)
	n.haveDelivered(2, len(sinks))
	if got := r.positions("movements/default"); !slices.Equal(got, slices.Repeat([]int{2}, len(sinks))) {
		t.Errorf("the receiver has %v", got)
	}
	n.end()
}
