package faults_test

import (
	"bytes"
	"errors"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"macronode/chaos/faults"
)

// TestStall: a disk that takes too long stops writes and never reads; when it answers,
// so does the node, those who waited first, and nobody has to do anything about it.
func TestStall(t *testing.T) {
	for name, on := range map[string][]faults.Op{
		"sync": {faults.Sync}, "write": {faults.Write}, "room": {faults.Sync, faults.Free},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			h.start()
			for _, key := range []string{"first", "second"} {
				h.stalls(key, on)
			}
			h.stop()
			h.verify()
		})
	}
}

func (h *house) stalls(key string, on []faults.Op) {
	h.t.Helper()
	began := time.Now()
	held := h.disk.Begin(faults.Trouble{On: on, Hold: true})
	waits := h.send(key, 1)
	<-held.Met()
	stalled := readOnly("journal_stalled", "")
	h.await(stalled)
	if took := time.Since(began); took < 2*time.Second {
		h.t.Fatalf("stalled after %v: that is no stall yet", took)
	}
	h.is(stalled)
	h.ages()
	flies := h.txid(h.verbose().LSN)
	h.wants(h.tx(flies), http.StatusGatewayTimeout, "outcome_unknown")
	again := h.send(key, 2) // waits for the same answer
	if len(on) == 1 {
		h.says("node state changed", "state=degraded", "degraded_by=journal_stalled", "reads=true", "writes=false")
	}
	select {
	case a := <-waits.told:
		h.t.Fatalf("told while the disk had said nothing: %d %s", a.status, a.body)
	default:
	}
	h.is(stalled)
	slow := h.metric("journal_sync_seconds_count") - h.metric(`journal_sync_seconds_bucket{le="0.1"}`)
	held.End()
	told := h.ends(waits)
	h.await(wellness)
	h.keeps(waits, told)
	if a := h.ends(again); !bytes.Equal(a.body, told.body) {
		h.t.Fatalf("who asked again was told %s", a.body)
	}
	if told.txid != flies {
		h.t.Fatalf("%s was on its way, told %s", flies, told.body)
	}
	h.is(wellness)
	h.fresh()
	h.until("the flush is counted as slow", func() error {
		if now := h.metric("journal_sync_seconds_count") - h.metric(`journal_sync_seconds_bucket{le="0.1"}`); now <= slow {
			return errors.New("not yet")
		}
		return nil
	})
}

// TestGivenUp: by default a flush has failed after five seconds. Nobody waits for it any
// longer, writes are refused for good, though the disk may answer, and the next start
// knows what became of it.
func TestGivenUp(t *testing.T) {
	t.Parallel()
	h := newHouse(t, "journal.sync_timeout=5s", "node.commit_timeout=5s", "http.request_deadline=5s")
	h.start()
	began := time.Now()
	held := h.disk.Begin(faults.Trouble{On: []faults.Op{faults.Sync}, Hold: true})
	waits := h.send("waits", 1)
	h.await(readOnly("journal_stalled", ""))
	h.wants(h.ends(waits), http.StatusGatewayTimeout, "outcome_unknown")
	given := readOnly("journal_stalled", "too slow").and("journal_failed")
	h.await(given)
	if took := time.Since(began); took < 5*time.Second {
		h.t.Fatalf("given up after %v", took)
	}
	h.is(given)
	h.ages()
	h.says("node state changed", "state=degraded", "journal_failed", `fault="too slow"`)
	held.End()
	after := readOnly("journal_failed", "too slow")
	h.await(after) // it has answered, late
	h.stays(after)
	h.is(after)
	h.stop()
	h.start()
	h.settles(waits, true) // it was written after all
	h.stop()
	h.verify()
}

// TestKilledInAStall: killed while the disk holds its flush, the process goes when the
// disk lets it; until then nobody else gets the directory, and then all is as told.
func TestKilledInAStall(t *testing.T) {
	for name, lose := range map[string]bool{"written": false, "lost": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			h.start()
			held := h.disk.Begin(faults.Trouble{On: []faults.Op{faults.Sync}, Hold: true, Err: syscall.EIO, Lose: lose})
			waits := h.send("waits", 1)
			<-held.Met()
			h.await(readOnly("journal_stalled", ""))
			h.Signal(syscall.SIGKILL)
			said, code := h.command("verify", "--data", h.Data)
			if h.Gone() || code != 2 || !strings.Contains(said, "is in use") { // it is in the kernel, waiting for the disk
				t.Fatalf("gone %v; a second process: exit %d, %s", h.Gone(), code, said)
			}
			held.End()
			h.Wait()
			if a := h.ends(waits); a.err == nil {
				t.Fatalf("told %d %s by the dead", a.status, a.body)
			}
			h.start()
			h.settles(waits, !lose)
			told := h.issue(waits.key, waits.to)
			h.Kill()
			if err := h.disk.Lose(); err != nil { // what was told is on the disk, though another life wrote it
				t.Fatal(err)
			}
			h.start()
			h.keeps(waits, told)
			h.stop()
			h.verify()
		})
	}
}
