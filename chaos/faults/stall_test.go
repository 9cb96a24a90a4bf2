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

// TestStall: a slow disk stops writes and never reads. When it answers, the waiting requests are answered first,
// and no operator is needed.
func TestStall(t *testing.T) {
	for name, on := range map[string][]faults.Op{
		"sync": {faults.Sync}, "write": {faults.Write}, "room": {faults.Sync, faults.Free},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newFaultyNode(t)
			h.start()
			for _, key := range []string{"first", "second"} {
				h.checkStall(key, on)
			}
			h.stop()
			h.verify()
		})
	}
}

func (h *faultyNode) checkStall(key string, on []faults.Op) {
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
	h.checkRow(stalled)
	h.checkStays(stalled) // time goes on, also if the disk does not answer how much space is free
	h.checkStale()
	flies := h.txid(h.verbose().LSN)
	h.checkAnswer(h.tx(flies), http.StatusGatewayTimeout, "outcome_unknown")
	again := h.send(key, 2) // waits for the same answer
	if len(on) == 1 {
		h.awaitLogLine("node state changed", "state=degraded", "degraded_by=journal_stalled", "reads=true", "writes=false")
	}
	select {
	case a := <-waits.reply:
		h.t.Fatalf("told while the disk had said nothing: %d %s", a.status, a.body)
	default:
	}
	h.checkRow(stalled)
	slow := h.metric("journal_sync_seconds_count") - h.metric(`journal_sync_seconds_bucket{le="0.1"}`)
	held.End()
	receipt := h.awaitAnswer(waits)
	h.await(wellness)
	h.checkKept(waits, receipt)
	if a := h.awaitAnswer(again); !bytes.Equal(a.body, receipt.body) {
		h.t.Fatalf("who asked again was told %s", a.body)
	}
	if receipt.txid != flies {
		h.t.Fatalf("%s was on its way, told %s", flies, receipt.body)
	}
	h.checkRow(wellness)
	h.checkFresh()
	h.until("the flush is counted as slow", func() error {
		if now := h.metric("journal_sync_seconds_count") - h.metric(`journal_sync_seconds_bucket{le="0.1"}`); now <= slow {
			return errors.New("not yet")
		}
		return nil
	})
}

// TestStalledFlushFails: by default a flush fails after five seconds. Its requests get unknown outcomes, and
// writes are rejected for good, even if the disk answers later. The next start finds the outcomes.
func TestStalledFlushFails(t *testing.T) {
	t.Parallel()
	h := newFaultyNode(t, "journal.sync_timeout=5s", "node.commit_timeout=5s", "http.request_deadline=5s")
	h.start()
	began := time.Now()
	held := h.disk.Begin(faults.Trouble{On: []faults.Op{faults.Sync}, Hold: true})
	waits := h.send("waits", 1)
	h.await(readOnly("journal_stalled", ""))
	h.checkAnswer(h.awaitAnswer(waits), http.StatusGatewayTimeout, "outcome_unknown")
	given := readOnly("journal_stalled", "too slow").and("journal_failed")
	h.await(given)
	if took := time.Since(began); took < 5*time.Second {
		h.t.Fatalf("given up after %v", took)
	}
	h.checkRow(given)
	h.checkStale()
	h.awaitLogLine("node state changed", "state=degraded", "journal_failed", `fault="too slow"`)
	held.End()
	after := readOnly("journal_failed", "too slow")
	h.await(after) // it has answered, late
	h.checkStays(after)
	h.checkRow(after)
	h.stop()
	h.start()
	h.checkSettled(waits, true) // it was written after all
	h.stop()
	h.verify()
}

// TestKillDuringStall: a process that is killed while the disk holds its flush ends when the disk lets it. Until
// then no other process gets the directory. Then all acknowledged outcomes are there.
func TestKillDuringStall(t *testing.T) {
	for name, lose := range map[string]bool{"written": false, "lost": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newFaultyNode(t)
			h.start()
			held := h.disk.Begin(faults.Trouble{On: []faults.Op{faults.Sync}, Hold: true, Err: syscall.EIO, Lose: lose})
			waits := h.send("waits", 1)
			<-held.Met()
			h.await(readOnly("journal_stalled", ""))
			h.Signal(syscall.SIGKILL)
			output, code := h.command("verify", "--data", h.Data)
			if h.Gone() || code != 2 || !strings.Contains(output, "is in use") { // it is in the kernel, waiting for the disk
				t.Fatalf("gone %v; a second process: exit %d, %s", h.Gone(), code, output)
			}
			held.End()
			h.Wait()
			if a := h.awaitAnswer(waits); a.err == nil {
				t.Fatalf("told %d %s by the dead", a.status, a.body)
			}
			h.start()
			h.checkSettled(waits, !lose)
			receipt := h.issue(waits.key, waits.to)
			h.Kill()
			if err := h.disk.Lose(); err != nil { // acknowledged outcomes are on the disk, although another process wrote them
				t.Fatal(err)
			}
			h.start()
			h.checkKept(waits, receipt)
			h.stop()
			h.verify()
		})
	}
}
