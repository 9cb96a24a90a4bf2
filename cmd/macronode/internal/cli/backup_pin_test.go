package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"macronode/adapters/fs"
	"macronode/cmd/macronode/internal/testkit"
)

// TestBackupDefersCollection: while a backup has pinned the objects, the files of deleted objects stay, however often
// unused files are removed. Afterwards they are removed.
func TestBackupDefersCollection(t *testing.T) {
	t.Parallel()
	p := startNode(t, "storage.collect_interval=10ms")
	objects := filepath.Join(p.dir, "objects")
	content := filepath.Join(t.TempDir(), "content")
	testkit.Must(t, os.WriteFile(content, []byte("content"), 0o600))
	out, err := exec.CommandContext(t.Context(), "macronode", "object", "put", content, "--data", p.dir).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	files := func() int {
		names, err := fs.Dir(objects).List()
		testkit.Must(t, err)
		n := 0
		for _, name := range names {
			if !strings.HasPrefix(name, ".") && name != "provider.id" {
				n++
			}
		}
		return n
	}
	deferred := func() string {
		_, rest, _ := strings.Cut(p.adminText(t, "/metrics"), "\nstorage_collections_deferred_total ")
		n, _, _ := strings.Cut(rest, "\n")
		return n
	}
	pin, err := fs.Pin(fs.Dir(objects))
	testkit.Must(t, err)
	address := strings.Fields(string(out))[0]
	if out, err := exec.CommandContext(t.Context(), "macronode", "object", "rm", address, "--data", p.dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for range 2 { // the second one began after the deletion
		before := deferred()
		for check := testkit.HangGuard(t); deferred() == before; check() {
			time.Sleep(time.Millisecond) // until the next removal
		}
	}
	if n := files(); n != 1 {
		t.Errorf("%d files while the directory is pinned, want 1", n)
	}
	testkit.Must(t, pin.Close())
	for check := testkit.HangGuard(t); files() > 0; check() {
		time.Sleep(time.Millisecond) // until the next removal
	}
}
