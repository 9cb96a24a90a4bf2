package faults_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"macronode/chaos/faults"
)

// TestOnlyDirectoryHangs: while the disk of the only directory of objects changes nothing, uploads get 503 in time, leave their places to others,
// and objects are read. While it answers nothing, reads get 503 too. State, log and metrics report what hangs. When the disk answers, everything
// works without a restart.
func TestOnlyDirectoryHangs(t *testing.T) {
	t.Parallel()
	n := prepareObjectNode(t)
	n.providers = fmt.Sprintf(`storage.providers=[{"name":"b","path":%q}]`, filepath.Join(filepath.Dir(n.Data), "disk-b"))
	n.set(n.providers, "http.request_deadline=5s") // a response may come later than that
	n.start()
	n.putObjects(5)
	n.checkObjects()
	changes := []faults.Op{faults.Write, faults.Sync, faults.SyncDir}
	for _, c := range []struct {
		what string
		on   []faults.Op
		row  row
		line string
	}{
		{"changes hang", changes, wellness.and("uploads_refused"), "directory of objects cannot be written"},
		{"all hangs", append(changes, faults.Read, faults.Free), wellness.and("objects_unavailable").and("uploads_refused"), "directory of objects cannot be read"},
	} {
		t.Log(c.what)
		readable := !slices.Contains(c.on, faults.Read)
		c.row.phase = "degraded"
		held := n.disk.Begin(faults.Trouble{On: c.on, Hold: true})
		var all sync.WaitGroup
		for range 8 {
			content := n.newContent()
			all.Go(func() {
				if a := n.upload(content); a.err != nil || a.status != http.StatusServiceUnavailable || a.code != "unavailable" {
					t.Errorf("an upload while %s: %d %s (%v)", c.what, a.status, a.body, a.err)
				}
			})
		}
		<-held.Met()
		if readable {
			n.checkObjects()
		}
		all.Wait()
		n.await(c.row)
		n.awaitLogLine(c.line, "the disk does not answer")
		n.until("no upload has a place", func() error {
			if got := n.metric(`queue_depth{queue="uploads"}`); got != 0 {
				return fmt.Errorf("%v have one", got)
			}
			return nil
		})
		if got := n.metric("storage_failed_providers"); got != 1 {
			t.Errorf("%v providers have failed", got)
		}
		n.checkAnswer(n.upload(n.newContent()), http.StatusServiceUnavailable, "unavailable")
		if readable {
			n.checkObjects()
		} else {
			n.checkAnswer(n.object(http.MethodGet, n.stored[0]), http.StatusServiceUnavailable, "unavailable")
		}
		if out, code := n.command("status", "--data", n.seen); code != 0 || !strings.Contains(out, "uploads_refused") {
			t.Errorf("status: exit %d\n%s", code, out)
		}
		n.disk.Heal()
		n.await(wellness)
		n.awaitLogLine("directory of objects can be read and written again")
		n.putObjects(5)
		n.checkObjects()
	}
	n.stop()
	if out, code := n.command("verify", "--data", n.seen, "--set", n.providers); code != 0 {
		t.Errorf("verify: exit %d\n%s", code, out)
	}
}
