package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"macronode/cmd/macronode/internal/testkit"
)

// TestMissingObjectDirectoryDegrades: while the directory of the objects is not there, the node is degraded and says
// so; when the directory is back, it is ready.
func TestMissingObjectDirectoryDegrades(t *testing.T) {
	t.Parallel()
	p := startNode(t)
	objects := filepath.Join(p.dir, "objects")
	becomes := func(want string) {
		t.Helper()
		for check := testkit.HangGuard(t); !strings.Contains(p.adminText(t, "/readyz?verbose"), want); check() {
			time.Sleep(10 * time.Millisecond) // until the next probe
		}
	}
	becomes(`"degraded_by":[]`)
	testkit.Must(t, os.Rename(objects, objects+".away"))
	becomes(`"degraded_by":["objects_unavailable","uploads_refused"]`)
	<-p.log.Await("directory of objects cannot be read")
	testkit.Must(t, os.Rename(objects+".away", objects))
	becomes(`"degraded_by":[]`)
	<-p.log.Await("directory of objects can be read and written again")
}

// TestUnmountedObjectDirectoryDegrades: while another directory, or none, is in the place of the one with the objects, the node refuses
// to read and store objects, and writes nothing there. All else is served. It goes on when the right directory is back, without a restart.
func TestUnmountedObjectDirectoryDegrades(t *testing.T) {
	t.Parallel()
	const probes = "storage.repair.interval=20ms"
	p := startNode(t, probes)
	dir := p.dir
	objects, content := filepath.Join(dir, "objects"), filepath.Join(t.TempDir(), "content")
	testkit.Must(t, os.WriteFile(content, []byte("abc"), 0o600))
	run := func(code int, want string, args ...string) string {
		t.Helper()
		cmd := exec.Command("macronode", append(args, "--data", dir)...)
		out, _ := cmd.CombinedOutput()
		if cmd.ProcessState.ExitCode() != code || !strings.Contains(string(out), want) {
			t.Fatalf("%v: exit code %d, %s\n%s", args, cmd.ProcessState.ExitCode(), out, p.log)
		}
		return strings.TrimSpace(string(out))
	}
	becomes := func(want string) {
		t.Helper()
		for check := testkit.HangGuard(t); !strings.Contains(p.adminText(t, "/readyz?verbose"), want); check() {
			time.Sleep(10 * time.Millisecond) // until the next probe
		}
	}
	const degraded, ready = `"degraded_by":["objects_unavailable","uploads_refused"`, `"degraded_by":[]`
	address := run(0, "b3:", "object", "put", content)
	refused := func(files int) {
		t.Helper()
		becomes(degraded)
		run(1, "unavailable: The directory of the objects is not there", "object", "get", address, "--timeout", "1ms")
		run(1, "unavailable: The directory of the objects is not there", "object", "put", content, "--timeout", "1ms")
		run(0, "", "wallet", "issue", "--to", "ann", "--asset", "EUR/2", "--amount", "1")
		run(0, "objects_unavailable", "status")
		if all, err := os.ReadDir(objects); len(all) != files {
			t.Fatalf("the directory has %v, %v", all, err)
		}
	}
	back := func() {
		t.Helper()
		testkit.Must(t, os.RemoveAll(objects))
		testkit.Must(t, os.Rename(objects+".away", objects))
		becomes(ready)
		run(0, "abc", "object", "get", address)
		run(0, address, "object", "put", content)
	}
	becomes(ready)
	testkit.Must(t, os.Rename(objects, objects+".away"))
	testkit.Must(t, os.Mkdir(objects, 0o700)) // a mount point without its disk
	refused(0)
	back()

	p.end()
	testkit.Must(t, os.Rename(objects, objects+".away"))
	p = startInDir(t, dir, "--set", probes) // no mount point
	refused(0)
	<-p.log.Await("the directory of the objects is not there: open ")
	back()

	p.end()
	testkit.Must(t, os.Rename(objects, objects+".away"))
	testkit.Must(t, os.Mkdir(objects, 0o700))
	p = startInDir(t, dir, "--set", probes)
	refused(0)
	back()

	p.end() // a version that wrote no identity
	testkit.Must(t, os.Remove(filepath.Join(objects, "provider.id")))
	p = startInDir(t, dir, "--set", probes)
	becomes(ready)
	run(0, "abc", "object", "get", address)
	if _, err := os.Stat(filepath.Join(objects, "provider.id")); err != nil {
		t.Error(err)
	}
}
