package faults_test

import (
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"macronode/chaos/faults"
)

// TestFails: a flush that failed is never tried again, whatever the disk says later: what
// was in is not known, reads go on, no write is taken until a restart has looked at what
// there is. Then whoever asks again is told one outcome.
func TestFails(t *testing.T) {
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
			h := newHouse(t)
			h.start()
			held := c.trouble.Hold
			c.trouble.Hold = true // until it is known that somebody waits
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
			h.wants(h.ends(waits), http.StatusGatewayTimeout, "outcome_unknown")
			h.disk.Heal()
			failed := readOnly("journal_failed", c.fault)
			if held {
				failed = readOnly("journal_stalled", c.fault).and("journal_failed")
			}
			h.await(failed)
			h.is(failed)
			h.ages()
			h.stays(failed)
			h.wants(h.issue(waits.key, waits.to), http.StatusGatewayTimeout, "outcome_unknown")
			h.says("journal failed", fmt.Sprintf("fault=%q", c.fault), c.line)
			h.says("node state changed", "state=degraded", "journal_failed", "reads=true", "writes=false", fmt.Sprintf("fault=%q", c.fault))
			if n := h.metric(`io_errors_total{op="journal"}`); n < 1 {
				t.Fatalf("%v failures are counted", n)
			}
			if n := h.metric(`io_timeouts_total{op="reply"}`); n != 2 { // also who asked again
				t.Fatalf("%v replies without an outcome are counted", n)
			}
			h.wants(h.tx(h.txid(h.verbose().LSN)), http.StatusGatewayTimeout, "outcome_unknown")
			h.stop()
			h.verify()
			h.start()
			h.settles(waits, c.there)
			h.stop()
			h.verify()
		})
	}
}

// TestFailsBefore: what was to be flushed behind a flush that failed is not flushed, on a
// disk that is well again: the first is not there, and nothing may stand behind it.
func TestFailsBefore(t *testing.T) {
	for name, lose := range map[string]bool{"kept": false, "lost": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t, "journal.stall_threshold=10s")
			h.start()
			durable := h.verbose().Durable
			trouble := h.disk.Begin(faults.Trouble{On: []faults.Op{faults.Sync}, Err: syscall.EIO, Lose: lose, Hold: true})
			before := h.send("before", 1)
			<-trouble.Met()
			behind := h.send("behind", 2)
			trouble.End()
			h.wants(h.ends(before), http.StatusGatewayTimeout, "outcome_unknown")
			h.wants(h.ends(behind), http.StatusGatewayTimeout, "outcome_unknown")
			failed := readOnly("journal_failed", "sync failed")
			h.await(failed)
			h.stays(failed)
			if v := h.verbose(); v.Durable != durable || v.Folded != durable || v.LSN != durable+2 {
				t.Fatalf("%+v", v)
			}
			h.stop()
			h.verify()
			h.start()
			h.settles(before, !lose)
			h.settles(behind, false)
			h.stop()
			h.verify()
		})
	}
}

// second is of every two calls the second one.
func second() func(faults.Call) bool {
	calls := 0
	return func(faults.Call) bool {
		calls++
		return calls%2 == 0
	}
}

// TestShortWrites: a disk that takes half of what it is given, every time, is slow and no
// more than that.
func TestShortWrites(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.disk.Begin(faults.Trouble{On: []faults.Op{faults.Write}, Half: true})
	h.start()
	for i := range 20 {
		name := fmt.Sprintf("short-%d", i)
		h.keeps(sent{key: name, to: name}, h.issue(name, name))
	}
	h.is(wellness)
	h.stop()
	h.verify()
	h.start()
	h.settles(sent{key: "short-7", to: "short-7"}, true)
	h.stop()
}

// TestCannotStart: a disk on which nothing can be made durable carries no node. Nothing
// is served and nothing is lost; a start on a disk that is well again is as any other.
func TestCannotStart(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.start()
	h.stop()
	for _, c := range []struct {
		on  faults.Op
		err syscall.Errno
		why string
	}{
		{faults.Sync, syscall.EIO, "input/output error"}, {faults.SyncDir, syscall.EIO, "input/output error"},
		{faults.Write, syscall.EIO, "input/output error"}, {faults.Write, syscall.ENOSPC, "free space on the disk"},
	} {
		trouble := h.disk.Begin(faults.Trouble{On: []faults.Op{c.on}, Err: c.err})
		if err := h.Launch(); err != nil {
			t.Fatal(err)
		}
		if said, code := h.Wait(); code != 2 || !strings.Contains(said, c.why) {
			t.Fatalf("exit %d:\n%s", code, said)
		}
		trouble.End()
	}
	h.start()
	h.is(wellness)
	h.stop()
	h.verify()
}
