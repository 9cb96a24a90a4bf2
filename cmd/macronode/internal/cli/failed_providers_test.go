package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"macronode/cmd/macronode/internal/testkit"
)

// TestFailedProvidersDegrade: while one of two directories cannot be used, the node is degraded by it. While neither can be
// used, reads and uploads of objects fail, and the node reports that as well.
func TestFailedProvidersDegrade(t *testing.T) {
	disks := t.TempDir()
	a, b := filepath.Join(disks, "a"), filepath.Join(disks, "b")
	p := startNode(t, fmt.Sprintf(`storage.providers=[{"name":"a","path":%q},{"name":"b","path":%q}]`, a, b), "storage.repair.interval=20ms")
	becomes := func(want string) {
		t.Helper()
		for check := testkit.HangGuard(t); !strings.Contains(p.adminText(t, "/readyz?verbose"), want); check() {
			time.Sleep(time.Millisecond) // until the next probe
		}
	}
	fail := func(dir string) { // a file in the place of the directory: it cannot be made again
		t.Helper()
		testkit.Must(t, os.Rename(dir, dir+".away"))
		for check := testkit.HangGuard(t); os.Symlink("nowhere", dir) != nil; check() { // the node has made it again
			testkit.Must(t, os.RemoveAll(dir))
		}
	}
	back := func(dir string) {
		t.Helper()
		testkit.Must(t, os.Remove(dir))
		for check := testkit.HangGuard(t); os.Rename(dir+".away", dir) != nil; check() { // the node has made it again
			testkit.Must(t, os.RemoveAll(dir))
		}
	}
	becomes(`"degraded_by":[]`)
	fail(b)
	becomes(`"degraded_by":["provider_failed"]`)
	becomes(`"failed_providers":["b: `)
	fail(a)
	becomes(`"degraded_by":["objects_unavailable","uploads_refused","provider_failed"]`)
	back(b)
	becomes(`"degraded_by":["provider_failed"]`)
	back(a)
	becomes(`"degraded_by":[]`)
}
