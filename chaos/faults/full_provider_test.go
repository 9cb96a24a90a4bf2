package faults_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"macronode/adapters/fs"
	"macronode/adapters/provider"
	"macronode/chaos/faults"
)

// spareOfUploads is what uploads leave free on a disk: twice journal.min_free_bytes, and what they may write until they look again.
const spareOfUploads = 512<<20 + 4<<20

// TestFullProviderIsPassedOver: while one of three providers has no space, each object has its copies on the others, and nothing is refused. The
// provider has not failed. A copy that it loses is written elsewhere.
func TestFullProviderIsPassedOver(t *testing.T) {
	t.Parallel()
	n := prepareObjectNode(t)
	dir := filepath.Dir(n.Data)
	n.set(fmt.Sprintf(`storage.providers=[{"name":"a","path":%q},{"name":"b","path":%q},{"name":"c","path":%q}]`, n.a, filepath.Join(dir, "disk-b"), filepath.Join(dir, "c")),
		"storage.copies=2", "storage.copies_required=2", "storage.repair.interval=50ms")
	n.start()
	n.putObjects(10)
	before, err := objectFiles(n.b)
	if err != nil || len(before) == 0 {
		t.Fatalf("provider b has %q, %v", before, err)
	}
	n.disk.Leave(spareOfUploads)
	n.putObjects(20)
	n.checkObjects()
	if now, err := objectFiles(n.b); err != nil || len(now) != len(before) {
		t.Fatalf("provider b has %d objects, before %d; %v", len(now), len(before), err)
	}
	for _, name := range before[:len(before)/2] {
		if err := fs.Dir(n.b).Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	n.until("the lost copies are on the other providers", func() error {
		var s struct {
			Providers []struct {
				Objects, Missing int
				Full, Failure    string
			}
		}
		a := n.ask(http.MethodGet, n.Admin+"/storage", "", "")
		if err := json.Unmarshal(a.body, &s); err != nil || len(s.Providers) != 3 {
			return fmt.Errorf("%s: %w", a.body, err)
		}
		objects := 0
		for _, p := range s.Providers {
			objects += p.Objects
		}
		if b := s.Providers[1]; objects != 2*len(n.stored) || b.Full == "" || b.Failure != "" || b.Objects != len(before)-len(before)/2 {
			return fmt.Errorf("%s", a.body)
		}
		return nil
	})
	n.await(wellness)
	n.disk.Honest()
	n.putObjects(10)
	n.checkObjects()
	n.await(wellness)
	n.stop()
}

// TestFullProviderOfTwoRequired: if each object needs both providers, uploads are refused while one of them has no space, or refuses their files
// although it seems to have some, and the node reports it.
func TestFullProviderOfTwoRequired(t *testing.T) {
	t.Parallel()
	n := newObjectNode(t, "storage.copies_required=2")
	content := n.newContent()
	n.disk.Leave(spareOfUploads)
	n.awaitDegraded("uploads_refused")
	n.checkAnswer(n.upload(content), http.StatusServiceUnavailable, "unavailable")
	n.checkObjects()
	n.disk.Honest()
	n.await(wellness)
	n.disk.Begin(faults.Trouble{On: []faults.Op{faults.Write}, Err: syscall.ENOSPC, Of: func(c faults.Call) bool {
		return isObjectFile(c.Name) || strings.HasSuffix(c.Name, provider.DraftSuffix) && !strings.Contains(c.Name, "provider")
	}})
	n.checkAnswer(n.upload(content), http.StatusServiceUnavailable, "unavailable")
	n.awaitDegraded("uploads_refused")
	n.awaitLogLine("directory of objects cannot be written", "an upload was refused")
	n.disk.Heal()
	n.await(wellness)
	if err := n.put(content); err != nil {
		t.Fatal(err)
	}
	n.finish()
}
