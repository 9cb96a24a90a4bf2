package faults_test

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"macronode/chaos/faults"
	"macronode/chaos/kill"
)

// everything selects all calls.
var everything = []faults.Op{faults.Read, faults.Write, faults.Sync, faults.SyncDir, faults.Free}

// newNodeOnDisk has its whole data directory on the disk. The test reads below the disk, because the process that
// serves a disk must not wait for it.
func newNodeOnDisk(t *testing.T, settings ...string) *faultyNode {
	t.Helper()
	dir := t.TempDir()
	at, below := filepath.Join(dir, "data"), filepath.Join(dir, "below")
	for _, d := range []string{at, below} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	h := &faultyNode{t: t, Node: &kill.Node{Binary: binary(t), Data: below, Args: []string{"--data", at}}, seen: at}
	h.set(settings...)
	h.disk = mount(t, below, at)
	t.Cleanup(h.killAll)
	return h
}

// TestAllHeld: a disk that does not answer any call stops writes, and never reads from memory.
func TestAllHeld(t *testing.T) {
	t.Parallel()
	h := newNodeOnDisk(t)
	h.start()
	for _, key := range []string{"first", "second"} {
		h.checkStall(key, everything)
	}
	h.stop()
	h.verify()
}

// TestIndexFailure: if the index cannot be opened, its endpoints are unavailable, the node reports that the index
// is behind, and operations continue. When the disk recovers the index opens in the same process.
func TestIndexFailure(t *testing.T) {
	t.Parallel()
	h := newNodeOnDisk(t)
	h.start()
	lists := func() answer { return h.ask(http.MethodGet, h.HTTP+"/v1/accounts", "", "") }
	h.until("the index is there", func() error {
		if a := lists(); a.status != yes || !bytes.Contains(a.body, []byte(`"ann"`)) {
			return fmt.Errorf("%d %s", a.status, a.body)
		}
		return nil
	})
	h.stop()
	trouble := h.disk.Begin(faults.Trouble{On: []faults.Op{faults.Write, faults.Sync}, Err: syscall.EIO,
		Of: func(c faults.Call) bool { return strings.HasPrefix(c.Name, "index/") }})
	h.launch()
	<-trouble.Met()
	h.until("the index is reported as behind", func() error {
		if v := h.verbose(); !slices.Contains(v.Ailing, "index_behind") || !v.Ready || !v.Writes {
			return fmt.Errorf("%+v", v)
		}
		return nil
	})
	h.findListener()
	h.checkAnswer(lists(), no, "unavailable")
	h.checkKept(sent{key: "now", to: "now"}, h.issue("now", "now"))
	h.disk.Heal()
	h.until("the index is there, with all that it missed", func() error {
		if a := lists(); a.status != yes || !bytes.Contains(a.body, []byte(`"now"`)) {
			return fmt.Errorf("%d %s", a.status, a.body)
		}
		return nil
	})
	h.until("the index is reported as behind no longer", func() error {
		if v := h.verbose(); slices.Contains(v.Ailing, "index_behind") {
			return fmt.Errorf("%+v", v)
		}
		return nil
	})
	h.stop()
	h.verify()
}

// TestAbandonedEnginesAreCounted: an engine of the index that cannot write its list of tables stops. It is
// counted, the index opens again, and operations continue.
func TestAbandonedEnginesAreCounted(t *testing.T) {
	t.Parallel()
	h := newNodeOnDisk(t, "index.memtable_frames=100")
	h.start()
	if n := h.metric("index_abandoned_engines"); n != 0 {
		t.Fatalf("%v engines are abandoned at the start", n)
	}
	trouble := h.disk.Begin(faults.Trouble{On: []faults.Op{faults.Write}, Err: syscall.EIO,
		Of: func(c faults.Call) bool { return strings.HasPrefix(c.Name, "index/tables/MANIFEST") }})
	for n := range 120 { // a full memtable becomes a table, which is added to the list
		if a := h.issue(fmt.Sprint("list-", n), "ann"); a.status != yes {
			t.Fatalf("%d %s", a.status, a.body)
		}
	}
	<-trouble.Met()
	h.until("the engine is counted", func() error {
		if n := h.metric("index_abandoned_engines"); n < 1 {
			return fmt.Errorf("%v engines are abandoned", n)
		}
		return nil
	})
	h.disk.Heal()
	h.until("the index is there again", func() error {
		if v := h.verbose(); slices.Contains(v.Ailing, "index_behind") {
			return fmt.Errorf("%+v", v)
		}
		return nil
	})
	h.stop()
	h.verify()
}
