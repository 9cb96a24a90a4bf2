package faults_test

import (
	"errors"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"macronode/adapters/fs"
	"macronode/adapters/journalfile"
	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/types"
)

// The wall clock of a running process cannot be changed; chaos/sim simulates that. At a start the clock can have
// any time.

// TestClockAheadAtStart: if the clock is two hours ahead at a start, the node does not trust it and reports that.
// Writes use the last trusted time until an operator confirms the clock.
func TestClockAheadAtStart(t *testing.T) {
	t.Parallel()
	h := newFaultyNode(t)
	h.runAt(-2 * time.Hour)
	h.launch()
	doubted := row{phase: "degraded", ready: yes, read: yes, reads: yes, writes: yes, ailing: []string{"clock_untrusted"}}
	h.await(doubted)
	h.findListener()
	h.checkRow(doubted)
	h.awaitLogLine("node state changed", "state=degraded", "degraded_by=clock_untrusted", "writes=true")
	if v := h.verbose(); time.Since(v.At) < time.Hour || v.Offset < time.Hour.Milliseconds() {
		t.Fatalf("it believes that it is %v", v.At)
	}
	then := sent{key: "then", to: "then"}
	receipt := h.issue(then.key, then.to)
	h.checkKept(then, receipt)
	key := h.Key
	h.Key = key[:len(key)-1] + "?" // an API key of the node that has scope admin may, as may the token
	a := h.ask(http.MethodPost, h.Admin+"/clock/accept", "", "")
	h.checkAnswer(a, http.StatusUnauthorized, "unauthorized")
	h.Key = h.Token
	a = h.ask(http.MethodPost, h.Admin+"/clock/accept", "", "")
	h.Key = key
	h.checkAnswer(a, http.StatusAccepted, "")
	h.await(wellness)
	h.checkRow(wellness)
	if v := h.verbose(); time.Since(v.At) > time.Hour {
		t.Fatalf("it believes that it is %v", v.At)
	}
	h.checkKept(then, receipt)
	h.stop()
	h.verify()
}

// TestClockBehindAtStart: if the clock is behind the journal at a start, time continues slowly from the journal's
// time and never goes back.
func TestClockBehindAtStart(t *testing.T) {
	t.Parallel()
	h := newFaultyNode(t)
	h.runAt(2 * time.Hour)
	var last time.Time
	ahead := wellness.and("clock_ahead")
	ahead.phase = "degraded"
	for range 2 {
		h.launch()
		h.until("it is ready", func() error { return h.verbose().in(ahead) })
		h.findListener()
		h.checkRow(ahead)
		v := h.verbose()
		if time.Until(v.At) < time.Hour || v.Offset > -time.Hour.Milliseconds() || v.At.Before(last) {
			t.Fatalf("it believes that it is %v, after %v", v.At, last)
		}
		last = v.At
		h.stop()
	}
	h.verify()
}

// runAt runs the node once with its clock shifted, and leaves its journal.
func (h *faultyNode) runAt(away time.Duration) {
	h.t.Helper()
	below := fs.Dir(filepath.Join(filepath.Dir(h.Data), "below"))
	j, _, err := journalfile.Recover(below, 7, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	arena := record.Begin(nil, 1, types.Time(time.Now().Add(away).UnixMilli()))
	arena, _ = record.Add(arena, 0, &record.Record{Kind: record.Started, Journal: 7})
	_, err = j.Write(arena, []event.Frame{{LSN: 1, Len: uint32(len(arena))}})
	_, failed := j.Sync()
	if err := errors.Join(err, failed, j.Close()); err != nil {
		h.t.Fatal(err)
	}
}
