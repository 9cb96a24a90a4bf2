package cli

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"macronode/adapters/adminapi"
	"macronode/cmd/macronode/internal/testkit"
)

// TestStreamBehindFullQuarantineWaits: a stream whose item finds no room in the quarantine is waiting, with the reason and the age of
// that item, also between two attempts. It goes on when there is room. An item that is skipped leaves no lag.
func TestStreamBehindFullQuarantineWaits(t *testing.T) {
	t.Parallel()
	const reason = "the quarantine is full, so 1 stream waits with its item: see macronode exports quarantine, then deliver its items again with macronode exports redrive, or give them up with macronode exports skip"
	r := newReceiver(t)
	n := &exportsNode{t: t, process: startInDir(t, t.TempDir(), "--set", "exports.quarantine_after=0s", "--set", "exports.quarantine=1", "--set", "exports.max_quarantine_per_tenant=1", "--set",
		fmt.Sprintf(`exports.sinks=[{"name":"app","kind":"http","url":%q,"streams":["wallet"]}]`, r.URL))}
	issue := func() { n.run("wallet issue --to ann --asset EUR/2 --amount 100", 0) }
	delivered := func(s adminapi.Sink) bool {
		return s.State == "ok" && hasPending(s, 0) && s.LagSeconds == 0 && s.Blocked == 0
	}
	// waits looks at the sink until its lag is a second: then it has made several attempts.
	waits := func() {
		t.Helper()
		n.await("blocked", func(s adminapi.Sink) bool { return s.Blocked == 1 })
		for check, last, first := testkit.HangGuard(t), 0.0, time.Now(); last < 1 || time.Since(first) < time.Second; check() {
			s := n.sink()
			if s.State != "waiting" || s.Reason != reason || s.LagSeconds <= last {
				t.Fatalf("after a lag of %v s: %+v", last, s)
			}
			last = s.LagSeconds
		}
		testkit.Until(func() bool { return n.scrapedValues(t)[`export_lag_seconds{sink="app"}`] >= 1 })
	}

	r.answer(http.StatusUnprocessableEntity)
	issue()
	n.await("quarantined", func(s adminapi.Sink) bool { return delivered(s) && s.Quarantined == 1 })
	issue()
	waits()
	n.run("exports skip app wallet 1", 0) // makes room for the second item
	n.await("quarantined", func(s adminapi.Sink) bool { return delivered(s) && s.Quarantined == 1 })

	issue()
	waits()
	n.run("exports skip app wallet 3", 0) // gives the item up that is repeated
	n.await("skipped", func(s adminapi.Sink) bool { return hasPending(s, 0) && s.Blocked == 0 && s.InFlight == 0 })
	if s := n.sink(); !delivered(s) {
		t.Errorf("an item is skipped: %+v", s)
	}

	issue()
	waits()
	r.answer(http.StatusOK)
	n.await("delivered", delivered)
	if got := r.positions("movements/default"); len(got) != 1 || got[0] != 4 {
		t.Errorf("the receiver has %v", got)
	}
	n.end()
}
