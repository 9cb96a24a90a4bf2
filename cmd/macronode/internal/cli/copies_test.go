package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"macronode/adapters/adminapi"
	"macronode/cmd/macronode/internal/testkit"
)

// twoProviders configures the directories a and b, and searches for missing copies often.
func twoProviders(disks string) []string {
	return sets(providersIn(disks, "a", "b"), "storage.repair.interval=20ms", "storage.scrub.interval=1s")
}

// TestCopiesAreRestored removes the directory of a provider and damages a file of the other one while the node serves: reads go on, a
// repair restores both, and verify finds all copies intact. A directory of another node is refused.
func TestCopiesAreRestored(t *testing.T) {
	t.Parallel()
	dir, disks := t.TempDir(), t.TempDir()
	a, b := filepath.Join(disks, "a"), filepath.Join(disks, "b")
	flags := twoProviders(disks)
	k := testkit.StartKillable(t, dir, flags...)
	contents := [][]byte{bytes.Repeat([]byte("a"), 5), bytes.Repeat([]byte("b"), 200_000), bytes.Repeat([]byte("c"), 70_000)}
	putObjects(t, k, contents...)
	if len(copyFiles(a)) != 3 || len(copyFiles(b)) != 3 {
		t.Fatalf("files %q and %q", copyFiles(a), copyFiles(b))
	}
	testkit.Must(t, os.Rename(b, b+".gone")) // at once: the node makes it again
	readObjects(t, k, contents...)
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
		return err == nil && len(whole) > 200_000 && bytes.Equal(whole[:200_000], contents[1])
	}
	readObjects(t, k, contents...)
	for check := testkit.HangGuard(t); !repaired(); time.Sleep(time.Millisecond) {
		check()
		readObjects(t, k, contents...)
	}
	k.End()

	if output, ok := macronode(append([]string{"verify", "--data", dir}, flags[:2]...)...); !ok || !strings.Contains(output, "provider b: 3 copies intact, 0 missing, 0 damaged") {
		t.Errorf("verify: %s", output)
	}
	testkit.Must(t, os.Remove(copyFiles(b)[0]))
	if output, ok := macronode(append([]string{"verify", "--data", dir}, flags[:2]...)...); ok || !strings.Contains(output, "provider b: 2 copies intact, 1 missing, 0 damaged") {
		t.Errorf("verify without a copy: %s", output)
	}
	if output, ok := macronode(append([]string{"serve", "--data", t.TempDir(), "--http", "127.0.0.1:0", "--admin", "127.0.0.1:0"}, flags...)...); ok || !strings.Contains(output, "provider a: its directory says") {
		t.Errorf("a node with the directories of another one: %s", output)
	}
}

// TestScrubFindsDamage damages a copy that no read meets: the periodic scrub finds it, and it is restored. The commands report it.
func TestScrubFindsDamage(t *testing.T) {
	t.Parallel()
	dir, disks := t.TempDir(), t.TempDir()
	b := filepath.Join(disks, "b")
	k := testkit.StartKillable(t, dir, twoProviders(disks)...)
	content := bytes.Repeat([]byte("scrub"), 50_000)
	putObjects(t, k, content)
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

// TestRepairTime: while copies are restored at a limited rate, the state has the bytes to repair and the remaining time. Without the limit
// they are restored.
func TestRepairTime(t *testing.T) {
	t.Parallel()
	const objects, size = 8, 128 << 10
	dir, disks := t.TempDir(), t.TempDir()
	b := filepath.Join(disks, "b")
	flags := twoProviders(disks)[:2]
	k := testkit.StartKillable(t, dir, append(slices.Clone(flags), "--set", "storage.repair.rate=64KiB", "--set", "storage.repair.burst=128KiB")...)
	for n := range objects {
		content := bytes.Repeat([]byte{byte(n)}, size)
		putObjects(t, k, content)
	}
	lost := copyFiles(b)
	for _, file := range lost {
		testkit.Must(t, os.Remove(file))
	}
	repair := exec.Command("macronode", "storage", "repair", "--data", dir)
	testkit.Must(t, repair.Start())
	status := func() (is adminapi.Storage) {
		output, err := exec.Command("macronode", "storage", "status", "--json", "--data", dir).Output()
		testkit.Must(t, errors.Join(err, json.Unmarshal(output, &is)))
		return is
	}
	is := status()
	for check := testkit.HangGuard(t); is.Inventory.Objects == 0; is = status() {
		check()
	}
	if is.Inventory.Bytes != objects*size || is.ETA != 2*objects*size/(64<<10) { // each byte is read twice
		t.Errorf("%d bytes to repair, %d seconds", is.Inventory.Bytes, is.ETA)
	}
	k.End()
	if err := repair.Wait(); err == nil {
		t.Error("the node has ended, and the repair succeeded")
	}

	testkit.StartKillable(t, dir, flags...)
	output, err := exec.Command("macronode", "storage", "repair", "--data", dir).CombinedOutput()
	if err != nil || !strings.Contains(string(output), "all objects had their copies at ") {
		t.Errorf("%v %s", err, output)
	}
	if is := status(); is.ETA != 0 || len(copyFiles(b)) != len(lost) {
		t.Errorf("afterwards: %d seconds, %d copies of %d", is.ETA, len(copyFiles(b)), len(lost))
	}
}

// TestRepairShowsProgress: while the node restores copies, the terminal shows the restored bytes and the bytes to repair.
func TestRepairShowsProgress(t *testing.T) {
	t.Parallel()
	state := func(status int, inventory uint64, restored uint64, waiting int) string {
		found := adminapi.Inventory{At: time.Unix(0, 0), Number: inventory, Bytes: 8 << 20}
		text, err := json.Marshal(adminapi.Storage{Inventory: found, Restored: restored, Waiting: waiting, Copies: 2})
		testkit.Must(t, err)
		return fmt.Sprintf("%d %s", status, text)
	}
	const before = 1 << 20
	p := newPeer(t, state(202, 1, before, 0), state(200, 2, before, 8), state(200, 2, before, 8), state(200, 2, before+2<<20, 6),
		state(200, 2, before+8<<20, 0), state(202, 2, before+8<<20, 0), state(200, 3, before+8<<20, 0))
	dir, _ := writeRunFiles(t, os.Getpid(), "", p.Listener.Addr().String())
	d := newTestConsole()
	d.Console.isErrTerminal = true
	d.Console.now = func() time.Time { d.time = d.time.Add(time.Second); return d.time }
	if code := Run([]string{"storage", "repair", "--data", dir}, d.Console); code != 0 || !strings.Contains(d.out.String(), "all objects had their copies at ") {
		t.Errorf("%d %s%s", code, &d.out, &d.err)
	}
	shown := strings.Split(d.err.String(), "\x1b[K")
	want := []string{
		"\rrestored [                              ] 0.0 MiB of 8.0 MiB, 0.0 MiB/s",
		"\rrestored [=======                       ] 2.0 MiB of 8.0 MiB, 1.0 MiB/s, 6s left",
		"\rrestored [==============================] 8.0 MiB of 8.0 MiB, 2.7 MiB/s, 0s left",
	}
	if len(shown) < len(want) || !slices.Equal(shown[:len(want)], want) {
		t.Errorf("%q, want %q", shown, want)
	}
}

// TestScrubReportsUnreadCopies: while a provider has failed, its copies are not read, and a scrub does not exit with 0.
func TestScrubReportsUnreadCopies(t *testing.T) {
	t.Parallel()
	dir, disks := t.TempDir(), t.TempDir()
	b := filepath.Join(disks, "b")
	k := testkit.StartKillable(t, dir, twoProviders(disks)...)
	for n := range 3 {
		content := bytes.Repeat([]byte{byte(n)}, 1000)
		putObjects(t, k, content)
	}
	failDirectory(t, b)
	scrub := func(flags ...string) (string, bool) {
		output, err := exec.Command("macronode", append([]string{"storage", "scrub", "--data", dir}, flags...)...).CombinedOutput()
		return string(output), err == nil
	}
	var output string
	for check, ok := testkit.HangGuard(t), true; ok; check() { // until the node has found that the provider has failed
		output, ok = scrub()
	}
	for _, want := range []string{"a: 3 objects, 3000 bytes", "0 damaged at the last scrub, 3 of 3000 bytes not read by it; failed: ", "scrub: 3000 bytes were verified at ",
		" 0 damaged copies; 3 copies of 3000 bytes were not read\n", "3 copies were not read: their providers have failed or refuse access, or the node had too many open files; repeat the scrub when they can be used"} {
		if !strings.Contains(output, want) {
			t.Errorf("%s\nhas not %q", output, want)
		}
	}
	if output, ok := scrub("--json"); ok || !strings.Contains(output, `"damaged_copies":0,"unread_copies":3,"unread_bytes":3000}`) {
		t.Error(output)
	}
	restoreDirectory(t, b)
	for check, ok := testkit.HangGuard(t), false; !ok; check() {
		output, ok = scrub()
	}
	if !strings.Contains(output, "scrub: 6000 bytes were verified at ") || !strings.Contains(output, " 0 damaged copies\n") {
		t.Error(output)
	}
}

// TestNothingIsVerifiedWithoutProviders: while all providers have failed, a scrub, a repair and a rebalance end with the reason, and a scrub
// verifies all copies once the directories are back.
func TestNothingIsVerifiedWithoutProviders(t *testing.T) {
	t.Parallel()
	dir, disks := t.TempDir(), t.TempDir()
	a, b := filepath.Join(disks, "a"), filepath.Join(disks, "b")
	k := testkit.StartKillable(t, dir, twoProviders(disks)...)
	content := []byte("kept")
	putObjects(t, k, content)
	command := func(args ...string) (string, error) {
		output, err := exec.Command("macronode", append([]string{"storage", "--data", dir}, args...)...).CombinedOutput()
		return string(output), err
	}
	for _, disk := range []string{a, b} {
		failDirectory(t, disk)
	}
	for check, output := testkit.HangGuard(t), ""; strings.Count(output, "; failed: ") < 2; check() { // until the node has found that they have failed
		output, _ = command("status")
	}
	for _, c := range []struct{ what, want string }{
		{"scrub", "copies were not verified: every provider has failed"},
		{"repair", "copies were not counted: every provider has failed"},
		{"rebalance", "every provider has failed"},
	} {
		output, err := command(c.what)
		if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 1 || !strings.Contains(output, c.want) {
			t.Errorf("%s: %v\n%s", c.what, err, output)
		}
	}
	for _, disk := range []string{a, b} {
		restoreDirectory(t, disk)
	}
	for check, err, output := testkit.HangGuard(t), error(errors.ErrUnsupported), ""; err != nil; check() {
		if output, err = command("scrub"); err == nil && (!strings.Contains(output, "scrub: 8 bytes were verified at ") || strings.Contains(output, "not verified")) {
			t.Error(output)
		}
	}
}

// failDirectory makes the directory of a provider unusable, and restoreDirectory puts it back with its files.
func failDirectory(t *testing.T, dir string) {
	t.Helper()
	testkit.Must(t, os.Rename(dir, dir+".away"))
	for check := testkit.HangGuard(t); os.Symlink("nowhere", dir) != nil; check() {
		_ = os.RemoveAll(dir) // the node has made it again, and may still put files into it
	}
}

func restoreDirectory(t *testing.T, dir string) {
	t.Helper()
	testkit.Must(t, os.Remove(dir))
	for check := testkit.HangGuard(t); os.Rename(dir+".away", dir) != nil; check() {
		_ = os.RemoveAll(dir) // the node has made it again, and may still put files into it
	}
}

// TestBackupRepairsDamage follows docs/how-to/repair-damage.md: a segment before the end of the backup is damaged or missing, and objects
// were stored after the backup. Nothing is lost.
func TestBackupRepairsDamage(t *testing.T) {
	t.Parallel()
	for what, harm := range map[string]func(journal string) error{
		"the start of a segment":    func(j string) error { return flipByte(filepath.Join(j, "00000002.seg"), 20) },
		"a frame":                   func(j string) error { return flipByte(filepath.Join(j, "00000001.seg"), 300) },
		"a missing segment":         func(j string) error { return os.Remove(filepath.Join(j, "00000002.seg")) },
		"the first segment missing": func(j string) error { return os.Remove(filepath.Join(j, "00000001.seg")) },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			dir, copied := t.TempDir(), filepath.Join(t.TempDir(), "copy")
			put := func(n int) {
				k := testkit.StartKillable(t, dir)
				content := bytes.Repeat([]byte{byte(n)}, 1000)
				putObjects(t, k, content)
				k.End()
			}
			succeeds := func(want string, args ...string) {
				t.Helper()
				if output, err := exec.Command("macronode", append(args, "--data", dir)...).CombinedOutput(); err != nil || !strings.Contains(string(output), want) {
					t.Fatalf("%v: %v: %s", args, err, output)
				}
			}
			put(1)
			put(2)
			put(3)
			succeeds("and 3 objects of 3000 bytes: 3 objects, 3000 bytes are new", "backup", copied)
			put(4)
			journal := filepath.Join(dir, "journal")
			testkit.Must(t, harm(journal))
			if output, err := exec.Command("macronode", "verify", "--data", dir).CombinedOutput(); err == nil {
				t.Fatalf("verify: %s", output)
			}
			succeeds("and 4 objects of 4000 bytes: 1 objects, 1000 bytes are new", "backup", copied)
			testkit.Must(t, os.Rename(journal, dir+".damaged"))
			testkit.Must(t, os.CopyFS(journal, os.DirFS(filepath.Join(copied, "journal"))))
			succeeds("4 objects (4000 bytes) are intact", "verify")
			put(5)
			succeeds("5 objects (5000 bytes) are intact", "verify")
		})
	}
}

// flipByte changes a bit of a file.
func flipByte(file string, at int) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	b[at] ^= 1
	return os.WriteFile(file, b, 0o600)
}

// TestRestoreWritesAllProviders backs up a node whose first copies are damaged, and restores into two other directories: a node
// starts on them, and each copy is intact. The directories of the old node are refused.
func TestRestoreWritesAllProviders(t *testing.T) {
	t.Parallel()
	dir, disks := t.TempDir(), t.TempDir()
	at := func(name string) string { return filepath.Join(disks, name) }
	k := testkit.StartKillable(t, dir, twoProviders(disks)...)
	for n := range 3 {
		content := bytes.Repeat([]byte{byte(n)}, 100_000)
		putObjects(t, k, content)
	}
	k.End()
	testkit.Must(t, os.Truncate(copyFiles(at("a"))[0], 70_000))
	testkit.Must(t, os.Remove(copyFiles(at("b"))[1]))
	old, other := twoProviders(disks)[:2], sets(providersIn(disks, "c", "d"), "storage.repair.interval=20ms")
	if output, ok := macronode(append([]string{"backup", at("copy"), "--data", dir}, old...)...); !ok || !strings.Contains(output, "and 3 objects of 300000 bytes") {
		t.Fatalf("backup: %s", output)
	}
	testkit.Must(t, os.Rename(at("a"), at("x"))) // of another provider
	testkit.Must(t, os.Rename(at("b"), at("a")))
	restored := t.TempDir()
	if output, ok := macronode(append([]string{"restore", at("copy"), "--take-providers", "--data", restored}, old...)...); ok || !strings.Contains(output, "provider a: its directory says") {
		t.Errorf("restore into directories of others: %s", output)
	}
	if output, ok := macronode(append([]string{"restore", at("copy"), "--data", restored}, other[:2]...)...); !ok {
		t.Fatalf("restore: %s", output)
	}
	if output, ok := macronode(append([]string{"verify", "--data", restored}, other[:2]...)...); !ok || !strings.Contains(output, "provider c: 3 copies intact, 0 missing, 0 damaged") ||
		!strings.Contains(output, "provider d: 3 copies intact, 0 missing, 0 damaged") {
		t.Errorf("verify: %s", output)
	}
	testkit.StartKillable(t, restored, other...).End()
}

// TestProvidersAreOfOneProcess: a copy of the data directory does not start with the providers of the running node, and a restore does not take
// them over.
func TestProvidersAreOfOneProcess(t *testing.T) {
	t.Parallel()
	dir, disks, clone := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "clone")
	at := func(name string) string { return filepath.Join(disks, name) }
	flags := twoProviders(disks)
	k := testkit.StartKillable(t, dir, flags...)
	k.End()
	testkit.Must(t, os.CopyFS(clone, os.DirFS(dir)))
	k = testkit.StartKillable(t, dir, flags...)
	content := bytes.Repeat([]byte("x"), 1000)
	putObjects(t, k, content)
	run := func(args ...string) (string, error) {
		output, err := exec.Command("macronode", append(args, flags[:2]...)...).CombinedOutput()
		return string(output), err
	}
	refused := func(what, output string, err error) {
		t.Helper()
		if err == nil || !strings.Contains(output, "provider a: ") || !strings.Contains(output, "a node with the data directory "+dir+", ") {
			t.Errorf("%s: %v\n%s", what, err, output)
		}
	}
	output, err := run("serve", "--http", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--data", clone)
	refused("the clone", output, err)
	if output, err := run("backup", at("copy"), "--data", dir); err != nil {
		t.Fatal(output)
	}
	output, err = run("restore", at("copy"), "--take-providers", "--data", filepath.Join(disks, "new"))
	refused("a restore", output, err)
	if len(copyFiles(at("a"))) != 1 || len(copyFiles(at("b"))) != 1 {
		t.Errorf("files %q and %q", copyFiles(at("a")), copyFiles(at("b")))
	}
	if files, _ := filepath.Glob(filepath.Join(at("copy"), "objects", "*.lock")); len(files) > 0 {
		t.Errorf("the backup has %q", files)
	}
	k.End()
}

// TestRestoreRefusesProvidersOfAnotherJournal: a restore with the configuration of the node that was backed up changes nothing, unless
// --take-providers is given.
func TestRestoreRefusesProvidersOfAnotherJournal(t *testing.T) {
	t.Parallel()
	dir, disks := t.TempDir(), t.TempDir()
	at := func(name string) string { return filepath.Join(disks, name) }
	flags := twoProviders(disks)
	k := testkit.StartKillable(t, dir, flags...)
	content := bytes.Repeat([]byte("x"), 1000)
	putObjects(t, k, content)
	k.End()
	run := func(want bool, args ...string) string {
		t.Helper()
		output, err := exec.Command("macronode", append(args, flags[:2]...)...).CombinedOutput()
		if (err == nil) != want {
			t.Fatalf("%q: %v\n%s", args, err, output)
		}
		return string(output)
	}
	run(true, "backup", at("copy"), "--data", dir)
	before, err := os.ReadFile(filepath.Join(at("a"), "provider.id"))
	testkit.Must(t, err)
	_, journal, _ := strings.Cut(strings.TrimSpace(string(before)), "\n")
	restored := filepath.Join(t.TempDir(), "new")
	for _, output := range []string{run(false, "restore", at("copy"), "--data", restored), run(true, "restore", at("copy"), "--preview", "--data", restored), run(true, "restore", at("copy"), "--validate", "--data", restored)} {
		if !strings.Contains(output, "provider a belongs to "+journal+", provider b belongs to "+journal) || !strings.Contains(output, "--set storage.providers=") || !strings.Contains(output, "--take-providers") {
			t.Errorf("%s", output)
		}
	}
	if after, err := os.ReadFile(filepath.Join(at("a"), "provider.id")); err != nil || !bytes.Equal(before, after) {
		t.Errorf("identity %q, %v", after, err)
	}
	if _, err := os.Stat(restored); !os.IsNotExist(err) {
		t.Errorf("the directory was made: %v", err)
	}
	if output := run(true, "restore", at("copy"), "--preview", "--take-providers", "--data", restored); strings.Contains(output, "refused") {
		t.Errorf("%s", output)
	}
	run(true, "restore", at("copy"), "--take-providers", "--data", restored)
	if output := run(false, "serve", "--data", dir); !strings.Contains(output, "remove none of them") || strings.Contains(output, "empty the directory") {
		t.Errorf("start of the node before: %s", output)
	}
	testkit.StartKillable(t, restored, flags...).End()
}
