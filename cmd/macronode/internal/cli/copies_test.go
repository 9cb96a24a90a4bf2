package cli

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"macronode/cmd/macronode/internal/testkit"
	"macronode/core/digest"
	"macronode/core/storage"
)

// twoProviders configures two directories, and searches for missing copies often.
func twoProviders(a, b string) []string {
	return []string{"--set", fmt.Sprintf(`storage.providers=[{"name":"a","path":%q},{"name":"b","path":%q}]`, a, b),
		"--set", "storage.repair.interval=20ms", "--set", "storage.scrub.interval=1s"}
}

// copyFiles returns the files of objects in a directory.
func copyFiles(dir string) []string {
	found, _ := filepath.Glob(filepath.Join(dir, "*-*"))
	return found
}

// TestCopiesAreRestored removes the directory of a provider and damages a file of the other one while the node serves: reads go on, a
// repair restores both, and verify finds all copies intact. A directory of another node is refused.
func TestCopiesAreRestored(t *testing.T) {
	dir, disks := t.TempDir(), t.TempDir()
	a, b := filepath.Join(disks, "a"), filepath.Join(disks, "b")
	flags := twoProviders(a, b)
	k := testkit.StartKillable(t, dir, flags...)
	content := func(n int) []byte { return bytes.Repeat([]byte{byte('a' + n)}, []int{5, 200_000, 70_000}[n]) }
	at := func(n int) string { return "/o/" + storage.Address(digest.Sum(content(n))).String() }
	read := func() {
		t.Helper()
		for n := range 3 {
			if status, got := k.Object(t, http.MethodGet, at(n), nil); status != http.StatusOK || !bytes.Equal(got, content(n)) {
				t.Fatalf("object %d: %d, %d bytes", n, status, len(got))
			}
		}
	}
	for n := range 3 {
		if status, got := k.Object(t, http.MethodPut, at(n), content(n)); status != http.StatusCreated {
			t.Fatalf("object %d: %d %s", n, status, got)
		}
	}
	if len(copyFiles(a)) != 3 || len(copyFiles(b)) != 3 {
		t.Fatalf("files %q and %q", copyFiles(a), copyFiles(b))
	}
	testkit.Must(t, os.Rename(b, b+".gone")) // at once: the node makes it again
	read()
	for check := testkit.HangGuard(t); len(copyFiles(b)) < 3; time.Sleep(time.Millisecond) {
		check()
	}
	var damaged string
	for _, name := range copyFiles(a) {
		if whole, err := os.ReadFile(name); err == nil && len(whole) > 200_000 {
			whole[100_000] ^= 1
			testkit.Must(t, os.WriteFile(name, whole, 0o600))
			damaged = name
		}
	}
	repaired := func() bool {
		whole, err := os.ReadFile(damaged)
		return err == nil && len(whole) > 200_000 && bytes.Equal(whole[:200_000], content(1))
	}
	read()
	for check := testkit.HangGuard(t); !repaired(); time.Sleep(time.Millisecond) {
		check()
		read()
	}
	k.End()

	run := func(args ...string) (string, bool) {
		output, err := exec.Command("macronode", args...).CombinedOutput()
		return string(output), err == nil
	}
	if output, ok := run(append([]string{"verify", "--data", dir}, flags[:2]...)...); !ok || !strings.Contains(output, "provider b: 3 copies intact, 0 missing, 0 damaged") {
		t.Errorf("verify: %s", output)
	}
	testkit.Must(t, os.Remove(copyFiles(b)[0]))
	if output, ok := run(append([]string{"verify", "--data", dir}, flags[:2]...)...); ok || !strings.Contains(output, "provider b: 2 copies intact, 1 missing, 0 damaged") {
		t.Errorf("verify without a copy: %s", output)
	}
	if output, ok := run(append([]string{"serve", "--data", t.TempDir(), "--http", "127.0.0.1:0", "--admin", "127.0.0.1:0"}, flags...)...); ok || !strings.Contains(output, "provider a: its directory says") {
		t.Errorf("a node with the directories of another one: %s", output)
	}
}

// TestScrubFindsDamage damages a copy that no read meets: the periodic scrub finds it, and it is restored. The commands report it.
func TestScrubFindsDamage(t *testing.T) {
	dir, disks := t.TempDir(), t.TempDir()
	a, b := filepath.Join(disks, "a"), filepath.Join(disks, "b")
	k := testkit.StartKillable(t, dir, twoProviders(a, b)...)
	content := bytes.Repeat([]byte("scrub"), 50_000)
	if status, got := k.Object(t, http.MethodPut, "/o/"+storage.Address(digest.Sum(content)).String(), content); status != http.StatusCreated {
		t.Fatalf("%d %s", status, got)
	}
	whole, err := os.ReadFile(copyFiles(b)[0])
	testkit.Must(t, err)
	harmed := bytes.Clone(whole)
	harmed[100_000] ^= 1
	testkit.Must(t, os.WriteFile(copyFiles(b)[0], harmed, 0o600))
	for check := testkit.HangGuard(t); !bytes.Equal(harmed, whole); time.Sleep(time.Millisecond) {
		check()
		if files := copyFiles(b); len(files) == 1 {
			harmed, err = os.ReadFile(files[0])
			testkit.Must(t, err)
		}
	}
	for _, c := range []struct{ args, want string }{
		{"storage status", "2 copies of each object, 1 required for an upload\na: 1 objects, 250000 bytes; 0 copies missing"},
		{"storage scrub", "scrub: 500000 bytes were verified at "},
		{"storage repair", "all objects had their copies at "},
		{"storage status --json", `"providers":[{"name":"a","failure_domain":"a","errors":0,"objects":1,"bytes":250000,"missing_copies":0`},
	} {
		output, err := exec.Command("macronode", append(strings.Fields(c.args), "--data", dir)...).CombinedOutput()
		if err != nil || !strings.Contains(string(output), c.want) {
			t.Errorf("%s: %v, %s, want %s", c.args, err, output, c.want)
		}
	}
	for check := testkit.HangGuard(t); ; check() { // the periodic scrub may find it first, and then it is restored
		for _, file := range copyFiles(b) {
			testkit.Must(t, os.WriteFile(file, harmed[:7], 0o600))
		}
		output, err := exec.Command("macronode", "storage", "scrub", "--data", dir).CombinedOutput()
		if err != nil && strings.Contains(string(output), "damaged") {
			break
		}
	}
}

// TestRestoreWritesAllProviders backs up a node whose first copies are damaged, and restores into two other directories: a node
// starts on them, and each copy is intact. The directories of the old node are refused.
func TestRestoreWritesAllProviders(t *testing.T) {
	dir, disks := t.TempDir(), t.TempDir()
	at := func(name string) string { return filepath.Join(disks, name) }
	k := testkit.StartKillable(t, dir, twoProviders(at("a"), at("b"))...)
	for n := range 3 {
		content := bytes.Repeat([]byte{byte(n)}, 100_000)
		if status, got := k.Object(t, http.MethodPut, "/o/"+storage.Address(digest.Sum(content)).String(), content); status != http.StatusCreated {
			t.Fatalf("%d %s", status, got)
		}
	}
	k.End()
	testkit.Must(t, os.Truncate(copyFiles(at("a"))[0], 70_000))
	testkit.Must(t, os.Remove(copyFiles(at("b"))[1]))
	run := func(args ...string) (string, bool) {
		output, err := exec.Command("macronode", args...).CombinedOutput()
		return string(output), err == nil
	}
	old, other := twoProviders(at("a"), at("b"))[:2], twoProviders(at("c"), at("d"))
	other[1] = strings.NewReplacer(`"name":"a"`, `"name":"c"`, `"name":"b"`, `"name":"d"`).Replace(other[1])
	if output, ok := run(append([]string{"backup", at("copy"), "--data", dir}, old...)...); !ok || !strings.Contains(output, "and 3 objects of 300000 bytes") {
		t.Fatalf("backup: %s", output)
	}
	testkit.Must(t, os.Rename(at("a"), at("x"))) // of another provider
	testkit.Must(t, os.Rename(at("b"), at("a")))
	restored := t.TempDir()
	if output, ok := run(append([]string{"restore", at("copy"), "--data", restored}, old...)...); ok || !strings.Contains(output, "provider a: its directory says") {
		t.Errorf("restore into directories of others: %s", output)
	}
	if output, ok := run(append([]string{"restore", at("copy"), "--data", restored}, other[:2]...)...); !ok {
		t.Fatalf("restore: %s", output)
	}
	if output, ok := run(append([]string{"verify", "--data", restored}, other[:2]...)...); !ok || !strings.Contains(output, "provider c: 3 copies intact, 0 missing, 0 damaged") ||
		!strings.Contains(output, "provider d: 3 copies intact, 0 missing, 0 damaged") {
		t.Errorf("verify: %s", output)
	}
	testkit.StartKillable(t, restored, other...).End()
}
