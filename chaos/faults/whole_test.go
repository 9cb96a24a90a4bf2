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

// everything is all that a disk is asked for.
var everything = []faults.Op{faults.Read, faults.Write, faults.Sync, faults.SyncDir, faults.Free}

// wholeHouse has all of its directory on the disk; what the test itself reads of it, it
// reads below: who carries a disk must not wait for it.
func wholeHouse(t *testing.T, settings ...string) *house {
	t.Helper()
	dir := t.TempDir()
	at, below := filepath.Join(dir, "data"), filepath.Join(dir, "below")
	for _, d := range []string{at, below} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	h := &house{t: t, Node: &kill.Node{Binary: binary(t), Data: below, Args: []string{"--data", at}}, seen: at}
	h.set(settings...)
	h.disk = mount(t, below, at)
	t.Cleanup(h.raze)
	return h
}

// TestAllHeld: a disk that answers nothing at all, to nobody, stops writes and never
// reads of what is in memory.
func TestAllHeld(t *testing.T) {
	t.Parallel()
	h := wholeHouse(t)
	h.start()
	for _, key := range []string{"first", "second"} {
		h.stalls(key, everything)
	}
	h.stop()
	h.verify()
}

// TestViewsFail: where the index of the journal cannot be opened, what it would show is
// unavailable, the node says that the index is behind, and money moves on. When the disk is
// well the index is there again, in the same process.
func TestViewsFail(t *testing.T) {
	t.Parallel()
	h := wholeHouse(t)
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
	h.ready()
	h.wants(lists(), no, "unavailable")
	h.keeps(sent{key: "now", to: "now"}, h.issue("now", "now"))
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
