package faults_test

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestADiskForReadingAlone: on a disk that takes no writes a node does not start, and says so;
// its journal is checked and copied all the same.
func TestADiskForReadingAlone(t *testing.T) {
	h := plainHouse(t)
	h.start()
	seen := t.TempDir() // the directory of the node by another way, which takes no writes
	wanted(t, syscall.Mount(h.Data, seen, "", syscall.MS_BIND, ""))
	t.Cleanup(func() {
		if err := syscall.Unmount(seen, 0); err != nil {
			t.Error(err)
		}
	})
	wanted(t, syscall.Mount("", seen, "", syscall.MS_BIND|syscall.MS_REMOUNT|syscall.MS_RDONLY, ""))
	if out, code := h.command("verify", "--data", seen); code != 2 || !strings.Contains(out, "held by process") {
		t.Errorf("beside a node: exit %d, %s", code, out)
	}
	h.stop()
	copied := filepath.Join(filepath.Dir(h.Data), "copy")
	for _, c := range []struct {
		says string
		args []string
	}{
		{" is intact: ", []string{"verify"}},
		{copied + " has journal ", []string{"backup", copied}},
	} {
		if out, code := h.command(append(c.args, "--data", seen)...); code != 0 || !strings.Contains(out, c.says) {
			t.Errorf("%v: exit %d, %s", c.args, code, out)
		}
	}
	if out, code := h.command("serve", "--data", seen, "--http", "127.0.0.1:0", "--admin", "127.0.0.1:0"); code != 2 || strings.Count(out, "\n") != 1 || !strings.Contains(out, "read-only file system") {
		t.Errorf("serve: exit %d, %s", code, out)
	}
}
