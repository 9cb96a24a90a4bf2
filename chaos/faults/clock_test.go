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

// A process cannot be given another wall clock while it runs; that is what chaos/sim has
// a made-up one for. What a start finds can be of any time.

// TestLongAway: a start that finds its clock two hours on does not believe it: it says
// so, takes writes at the time that it knows, and believes whoever is asked to tell.
func TestLongAway(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.lived(-2 * time.Hour)
	h.launch()
	doubted := row{phase: "degraded", ready: yes, read: yes, reads: yes, writes: yes, ailing: []string{"clock_untrusted"}}
	h.await(doubted)
	h.ready()
	h.is(doubted)
	h.says("node state changed", "state=degraded", "degraded_by=clock_untrusted", "writes=true")
	if v := h.verbose(); time.Since(v.At) < time.Hour || v.Offset < time.Hour.Milliseconds() {
		t.Fatalf("it believes that it is %v", v.At)
	}
	then := sent{key: "then", to: "then"}
	told := h.issue(then.key, then.to)
	h.keeps(then, told)
	key := h.Key
	h.Key = key[:len(key)-1] + "?" // an API key of the node that has scope admin may, as may the token
	a := h.ask(http.MethodPost, h.Admin+"/clock/accept", "", "")
	h.wants(a, http.StatusUnauthorized, "unauthorized")
	h.Key = h.Token
	a = h.ask(http.MethodPost, h.Admin+"/clock/accept", "", "")
	h.Key = key
	h.wants(a, http.StatusAccepted, "")
	h.await(wellness)
	h.is(wellness)
	if v := h.verbose(); time.Since(v.At) > time.Hour {
		t.Fatalf("it believes that it is %v", v.At)
	}
	h.keeps(then, told)
	h.stop()
	h.verify()
}

// TestClockBehind: a start whose clock is behind what the journal says goes on from
// there, slowly, and its time never goes back.
func TestClockBehind(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.lived(2 * time.Hour)
	var last time.Time
	for range 2 {
		h.launch()
		h.until("it is ready", func() error { return h.verbose().in(wellness) })
		h.ready()
		h.is(wellness)
		v := h.verbose()
		if time.Until(v.At) < time.Hour || v.Offset > -time.Hour.Milliseconds() || v.At.Before(last) {
			t.Fatalf("it believes that it is %v, after %v", v.At, last)
		}
		last = v.At
		h.stop()
	}
	h.verify()
}

// lived writes what a life at another time leaves.
func (h *house) lived(away time.Duration) {
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
