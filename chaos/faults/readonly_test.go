package faults_test

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestReadOnlyDisk: on a read-only disk a node does not start and reports why; its journal can be verified and
// backed up.
func TestReadOnlyDisk(t *testing.T) {
	h := newPlainNode(t)
	h.start()
	seen := t.TempDir() // the directory of the node by another way, which takes no writes
	skipWithoutDisk(t, syscall.Mount(h.Data, seen, "", syscall.MS_BIND, ""))
	t.Cleanup(func() {
		if err := syscall.Unmount(seen, 0); err != nil {
			t.Error(err)
		}
	})
	skipWithoutDisk(t, syscall.Mount("", seen, "", syscall.MS_BIND|syscall.MS_REMOUNT|syscall.MS_RDONLY, ""))
	if out, code := h.command("verify", "--data", seen); code != 2 || !strings.Contains(out, "held by process") {
		t.Errorf("beside a node: exit %d, %s", code, out)
	}
	h.stop()
	copied := filepath.Join(filepath.Dir(h.Data), "copy")
	for _, c := range []struct {
		contains string
		args     []string
	}{
		{" is intact: ", []string{"verify"}},
		{copied + " has journal ", []string{"backup", copied}},
	} {
		if out, code := h.command(append(c.args, "--data", seen)...); code != 0 || !strings.Contains(out, c.contains) {
			t.Errorf("%v: exit %d, %s", c.args, code, out)
		}
	}
	if out, code := h.command("serve", "--data", seen, "--http", "127.0.0.1:0", "--admin", "127.0.0.1:0"); code != 2 || strings.Count(out, "\n") != 1 || !strings.Contains(out, "read-only file system") {
		t.Errorf("serve: exit %d, %s", code, out)
	}
}
