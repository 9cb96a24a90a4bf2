package cli

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"macronode/cmd/macronode/internal/testkit"
)

// lostNode is a node with one directory of objects.
type lostNode struct {
	t   *testing.T
	dir string
}

// await runs a command until its output contains a text.
func (n *lostNode) await(want string, args ...string) string {
	n.t.Helper()
	var output []byte
	defer func() {
		if n.t.Failed() {
			n.t.Logf("%s without %q:\n%s", args, want, output)
		}
	}()
	for check := testkit.HangGuard(n.t); ; time.Sleep(time.Millisecond) {
		output, _ = exec.CommandContext(n.t.Context(), "macronode", append(args, "--data", n.dir)...).CombinedOutput() // it may fail: the output says why
		if strings.Contains(string(output), want) {
			return string(output)
		}
		check()
	}
}

// put uploads a content and returns its address.
func (n *lostNode) put(content []byte) string {
	n.t.Helper()
	file := filepath.Join(n.t.TempDir(), "content")
	testkit.Must(n.t, os.WriteFile(file, content, 0o600))
	output, err := exec.CommandContext(n.t.Context(), "macronode", "object", "put", "--again", file, "--data", n.dir).Output()
	testkit.Must(n.t, err)
	return strings.TrimSpace(string(output))
}

// file returns the newest file of an object. Those of deleted objects may be there as well.
func (n *lostNode) file(address string) string {
	n.t.Helper()
	files, err := filepath.Glob(filepath.Join(n.dir, "objects", strings.TrimPrefix(address, "b3:")+"*"))
	if err != nil || len(files) == 0 {
		n.t.Fatalf("%s: files %q, %v", address, files, err)
	}
	return files[len(files)-1]
}

// damage changes a byte of the file of an object, and returns what it was.
func (n *lostNode) damage(address string) (file string, before []byte) {
	n.t.Helper()
	file = n.file(address)
	before, err := os.ReadFile(file)
	testkit.Must(n.t, err)
	harmed := bytes.Clone(before)
	harmed[3] ^= 1
	testkit.Must(n.t, os.WriteFile(file, harmed, 0o600))
	return file, before
}

// TestLostObjectIsReported damages the only copy of an object. A read finds it: storage status has its address, the node is degraded and
// stays ready. It is forgotten when the content is uploaded again, when the object is deleted, and when its file was put back and is read.
func TestLostObjectIsReported(t *testing.T) {
	t.Parallel()
	n := &lostNode{t: t, dir: t.TempDir()}
	testkit.StartKillable(t, n.dir, sets("storage.repair.interval=20ms")...)
	content := bytes.Repeat([]byte("lost"), 50_000)
	address := n.put(content)
	is := func(address string) {
		t.Helper()
		n.await("LOST: 1 objects", "storage", "status")
		n.await("lost: "+address+", ", "storage", "status")
		n.await(`"lost_objects":[{"address":"`+address+`","bytes":`, "storage", "status", "--json")
		n.await("objects_lost (1: macronode storage status lists them)", "status")
		n.await(`{"ready":true,`, "status", "--json")
		n.await(`"lost_objects":1,`, "status", "--json")
	}
	isNot := func() {
		t.Helper()
		n.await(`"lost_objects":[],"other_lost_objects":0`, "storage", "status", "--json")
		n.await(`"degraded_by":[]`, "status", "--json")
	}
	isNot()
	n.damage(address)
	n.await("object_unreadable", "object", "get", address)
	is(address)
	n.put(content)
	isNot()

	n.damage(address)
	n.await("object_unreadable", "object", "get", address)
	is(address)
	if output, ok := macronode("object", "rm", address, "--data", n.dir); !ok {
		t.Fatal(output)
	}
	isNot()

	address = n.put(content)
	file, before := n.damage(address)
	n.await("1 objects are lost: no repair can make them whole", "storage", "scrub")
	is(address)
	testkit.Must(t, os.WriteFile(file, before, 0o600))
	if output, ok := macronode("storage", "repair", "--data", n.dir); !ok {
		t.Errorf("a repair of a file that was put back: %s", output)
	}
	isNot()
	testkit.Must(t, os.Remove(file))
	is(address) // an inventory finds it
}
