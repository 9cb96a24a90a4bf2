package faults_test

import (
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"macronode/chaos/faults"
)

// TestFailedFlushStopsWrites: a failed flush is never retried, even if the disk recovers. The outcomes of its
// requests are unknown, reads continue, and writes stay rejected until a restart has read the journal. Then a
// retry gets one outcome.
func TestFailedFlushStopsWrites(t *testing.T) {
	for name, c := range map[string]struct {
		trouble faults.Trouble
		fault   string
		there   bool // the frame, after all
		line    string
	}{
		"sync, and it is there":    {faults.Trouble{On: []faults.Op{faults.Sync}, Err: syscall.EIO}, "sync failed", true, "input/output error"},
		"sync, and it is lost":     {faults.Trouble{On: []faults.Op{faults.Sync}, Err: syscall.EIO, Lose: true}, "sync failed", false, "input/output error"},
		"slow sync":                {faults.Trouble{On: []faults.Op{faults.Sync}, Err: syscall.EIO, Hold: true}, "sync failed", true, "input/output error"},
		"write":                    {faults.Trouble{On: []faults.Op{faults.Write}, Err: syscall.EIO}, "write failed", false, "input/output error"},
		"write of the second half": {faults.Trouble{On: []faults.Op{faults.Write}, Err: syscall.EIO, Of: second()}, "write failed", false, "input/output error"},
		"no space":                 {faults.Trouble{On: []faults.Op{faults.Write}, Err: syscall.ENOSPC}, "no space", false, "no space left on device"},
		"no space for all of it":   {faults.Trouble{On: []faults.Op{faults.Write}, Err: syscall.ENOSPC, Of: second()}, "no space", false, "no space left on device"},
		"no space at the sync":     {faults.Trouble{On: []faults.Op{faults.Sync}, Err: syscall.ENOSPC}, "no space", true, "no space left on device"},
		"over quota":               {faults.Trouble{On: []faults.Op{faults.Write}, Err: syscall.EDQUOT}, "no space", false, "disk quota exceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newFaultyNode(t)
			h.start()
			held := c.trouble.Hold
			c.trouble.Hold = true // until a request waits
			trouble := h.disk.Begin(c.trouble)
			if c.trouble.Of != nil {
				h.disk.Begin(faults.Trouble{On: []faults.Op{faults.Write}, Half: true})
			}
			waits := h.send("waits", 1)
			<-trouble.Met()
			if held {
				h.await(readOnly("journal_stalled", ""))
			}
			trouble.End()
			h.checkAnswer(h.awaitAnswer(waits), http.StatusGatewayTimeout, "outcome_unknown")
			h.disk.Heal()
			failed := readOnly("journal_failed", c.fault)
			if held {
				failed = readOnly("journal_stalled", c.fault).and("journal_failed")
			}
			h.await(failed)
			h.checkRow(failed)
			h.checkStale()
			h.checkStays(failed)
			h.checkAnswer(h.issue(waits.key, waits.to), http.StatusGatewayTimeout, "outcome_unknown")
			h.awaitLogLine("journal failed", fmt.Sprintf("fault=%q", c.fault), c.line)
			h.awaitLogLine("node state changed", "state=degraded", "journal_failed", "reads=true", "writes=false", fmt.Sprintf("fault=%q", c.fault))
			if n := h.metric(`io_errors_total{op="journal"}`); n < 1 {
				t.Fatalf("%v failures are counted", n)
			}
			if n := h.metric(`io_timeouts_total{op="reply"}`); n != 2 { // including the retry
				t.Fatalf("%v replies without an outcome are counted", n)
			}
			h.checkAnswer(h.tx(h.txid(h.verbose().LSN)), http.StatusGatewayTimeout, "outcome_unknown")
			h.stop()
			h.verify()
			h.start()
			h.checkSettled(waits, c.there)
			h.stop()
			h.verify()
		})
	}
}

// TestLaterFlushIsNotTried: a flush after a failed one is not tried on a disk that has recovered, because frames
// must not follow a gap.
func TestLaterFlushIsNotTried(t *testing.T) {
	for name, lose := range map[string]bool{"kept": false, "lost": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newFaultyNode(t, "journal.stall_threshold=10s")
			h.start()
			durable := h.verbose().Durable
			trouble := h.disk.Begin(faults.Trouble{On: []faults.Op{faults.Sync}, Err: syscall.EIO, Lose: lose, Hold: true})
			before := h.send("before", 1)
			<-trouble.Met()
			behind := h.send("behind", 2)
			trouble.End()
			h.checkAnswer(h.awaitAnswer(before), http.StatusGatewayTimeout, "outcome_unknown")
			h.checkAnswer(h.awaitAnswer(behind), http.StatusGatewayTimeout, "outcome_unknown")
			failed := readOnly("journal_failed", "sync failed")
			h.await(failed)
			h.checkStays(failed)
			if v := h.verbose(); v.Durable != durable || v.Folded != durable || v.LSN != durable+2 {
				t.Fatalf("%+v", v)
			}
			h.stop()
			h.verify()
			h.start()
			h.checkSettled(before, !lose)
			h.checkSettled(behind, false)
			h.stop()
			h.verify()
		})
	}
}

// second selects every second call.
func second() func(faults.Call) bool {
	calls := 0
	return func(faults.Call) bool {
		calls++
		return calls%2 == 0
	}
}

// TestShortWrites: a disk that takes only half of each write is slow, and nothing fails.
func TestShortWrites(t *testing.T) {
	t.Parallel()
	h := newFaultyNode(t)
	h.disk.Begin(faults.Trouble{On: []faults.Op{faults.Write}, Half: true})
	h.start()
	for i := range 20 {
		name := fmt.Sprintf("short-%d", i)
		h.checkKept(sent{key: name, to: name}, h.issue(name, name))
	}
	h.checkRow(wellness)
	h.stop()
	h.verify()
	h.start()
	h.checkSettled(sent{key: "short-7", to: "short-7"}, true)
	h.stop()
}

// TestCannotStart: on a disk that cannot make anything durable the node does not start. Nothing is served or lost,
// and a start after the disk has recovered succeeds.
func TestCannotStart(t *testing.T) {
	t.Parallel()
	h := newFaultyNode(t)
	h.start()
	h.stop()
	for _, c := range []struct {
		on  faults.Op
		err syscall.Errno
		why string
	}{
		{faults.Sync, syscall.EIO, "input/output error"}, {faults.SyncDir, syscall.EIO, "input/output error"},
		{faults.Write, syscall.EIO, "input/output error"}, {faults.Write, syscall.ENOSPC, "free space or inodes on the disk"},
	} {
		trouble := h.disk.Begin(faults.Trouble{On: []faults.Op{c.on}, Err: c.err})
		if err := h.Launch(); err != nil {
			t.Fatal(err)
		}
		if output, code := h.Wait(); code != 2 || !strings.Contains(output, c.why) {
			t.Fatalf("exit %d:\n%s", code, output)
		}
		trouble.End()
	}
	h.start()
	h.checkRow(wellness)
	h.stop()
	h.verify()
}
