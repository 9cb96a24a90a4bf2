package cli

import (
	"bytes"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"macronode/cmd/macronode/internal/testkit"
)

// rebalanced is a node whose objects are moved to other providers.
type rebalanced struct {
	dir, disks string
	contents   [][]byte
	want       int // parts of each object
}

func (r *rebalanced) disk(name string) string { return filepath.Join(r.disks, name) }

// start starts the node with some providers.
func (r *rebalanced) start(t *testing.T, names string, keys ...string) *testkit.Killable {
	t.Helper()
	return testkit.StartKillable(t, r.dir, sets(append(keys, providersIn(r.disks, strings.Fields(names)...))...)...)
}

// files returns how many files of objects some disks have.
func (r *rebalanced) files(names string) (n int) {
	for _, name := range strings.Fields(names) {
		n += len(copyFiles(r.disk(name)))
	}
	return n
}

// checkParts fails if an object has fewer different shards, or fewer copies, than before the move. Parts move to the last disks, which are read last:
// none is missed.
func (r *rebalanced) checkParts(t *testing.T, names string) {
	t.Helper()
	seen := map[string]map[string]bool{}
	for _, name := range strings.Fields(names) {
		for _, file := range copyFiles(r.disk(name)) {
			object, shard, isShard := strings.Cut(filepath.Base(file), ".rs")
			if object = strings.TrimSuffix(object, ".object"); seen[object] == nil {
				seen[object] = map[string]bool{}
			}
			if !isShard {
				shard = name
			}
			if !strings.HasSuffix(file, ".part") {
				seen[object][shard] = true
			}
		}
	}
	for object, parts := range seen {
		if len(parts) < r.want {
			t.Fatalf("%s has %d parts, want %d", object, len(parts), r.want)
		}
	}
	if len(seen) != len(r.contents) {
		t.Fatalf("%d objects have files", len(seen))
	}
}

// begin begins a rebalance, and waits until the new disks have some files more. No object has lost a part meanwhile.
func (r *rebalanced) begin(t *testing.T, old, added string, files int) (moving *exec.Cmd, output *bytes.Buffer) {
	t.Helper()
	moving, output = exec.Command("macronode", "storage", "rebalance", "--data", r.dir), new(bytes.Buffer)
	moving.Stdout, moving.Stderr = output, output
	testkit.Must(t, moving.Start())
	before := r.files(added)
	for check := testkit.HangGuard(t); r.files(added) < before+files; time.Sleep(time.Millisecond) {
		check()
		r.checkParts(t, old+" "+added)
	}
	return moving, output
}

// end moves what is left. Afterwards each object has as many parts as before, some are in each new disk, there is nothing left to move, and all are intact.
func (r *rebalanced) end(t *testing.T, k *testkit.Killable, old, added string, keys ...string) {
	t.Helper()
	readObjects(t, k, r.contents...)
	for _, want := range []string{"objects were moved", "copies or shards of 0 of 0 objects were moved"} {
		if output, ok := macronode("storage", "rebalance", "--data", r.dir); !ok || !strings.Contains(output, want) {
			t.Fatalf("%s, want %s", output, want)
		}
		readObjects(t, k, r.contents...)
	}
	r.checkParts(t, old+" "+added)
	if n := r.files(old + " " + added); n != r.want*len(r.contents) {
		t.Errorf("%d parts of %d objects", n, len(r.contents))
	}
	k.End()
	output, ok := macronode(append([]string{"verify", "--data", r.dir}, sets(append(keys, providersIn(r.disks, strings.Fields(old+" "+added)...))...)...)...)
	for _, name := range strings.Fields(added) {
		n := r.files(name)
		if want := fmt.Sprintf("provider %s: %d copies intact, 0 missing, 0 damaged", name, n); !ok || n < len(r.contents)/4 || !strings.Contains(output, want) {
			t.Errorf("%s\nwant %s", output, want)
		}
	}
}

// TestRebalance adds a provider and moves copies to it. The node is killed meanwhile: no object is ever without its copies.
func TestRebalance(t *testing.T) {
	t.Parallel()
	r := &rebalanced{dir: t.TempDir(), disks: t.TempDir(), want: 2}
	for n := range 24 {
		r.contents = append(r.contents, bytes.Repeat([]byte{byte('a' + n)}, 70_000))
	}
	k := r.start(t, "a b")
	putObjects(t, k, r.contents...)
	k.End()

	k = r.start(t, "a b c", "storage.repair.rate=256KiB", "storage.repair.burst=128KiB")
	if r.files("c") > 0 {
		t.Fatal("the new provider has copies already")
	}
	moving, output := r.begin(t, "a b", "c", 3)
	readObjects(t, k, r.contents...)
	k.End()
	if moving.Wait() == nil {
		t.Errorf("the command succeeded although the node was killed: %s", output)
	}
	r.checkParts(t, "a b c")
	r.end(t, r.start(t, "a b c"), "a b", "c")
}

// TestScrubDuringRebalance: what a rebalance moves while a scrub runs is not damaged.
func TestScrubDuringRebalance(t *testing.T) {
	t.Parallel()
	const coding, rate, burst = "storage.coding=3+2", "storage.repair.rate=1MiB", "storage.repair.burst=128KiB"
	const old, added = "a b c d e", "f g"
	r := &rebalanced{dir: t.TempDir(), disks: t.TempDir(), want: 5}
	for n := range 12 {
		r.contents = append(r.contents, mixed(n, 250_000))
	}
	k := r.start(t, old, coding)
	putObjects(t, k, r.contents...)
	k.End()
	k = r.start(t, old+" "+added, coding, rate, burst)
	moving, output := r.begin(t, old, added, 1)
	if scrub, ok := macronode("storage", "scrub", "--data", r.dir); !ok || !strings.Contains(scrub, ", 0 damaged copies\n") || strings.Count(scrub, ", 0 damaged at the last scrub") != 7 {
		t.Errorf("scrub: %s", scrub)
	}
	if err := moving.Wait(); err != nil {
		t.Errorf("rebalance: %v: %s", err, output)
	}
	r.end(t, k, old, added, coding)
}

// TestDiskIsEmptied gives a disk almost no weight: a rebalance moves all its shards to the others while every object keeps its shards, and the disk can be
// removed.
func TestDiskIsEmptied(t *testing.T) {
	t.Parallel()
	const coding, rate, burst = "storage.coding=3+2", "storage.repair.rate=8MiB", "storage.repair.burst=128KiB"
	r := &rebalanced{dir: t.TempDir(), disks: t.TempDir(), want: 5}
	for n := range 16 {
		r.contents = append(r.contents, mixed(n, 250_000))
	}
	k := r.start(t, "a b c d e f", coding)
	putObjects(t, k, r.contents...)
	k.End()
	if r.files("a") == 0 {
		t.Fatal("the disk has no shards")
	}
	list := []string{fmt.Sprintf(`{"name":"a","path":%q,"weight":1}`, r.disk("a"))}
	for _, name := range strings.Fields("b c d e f") {
		list = append(list, fmt.Sprintf(`{"name":%q,"path":%q,"weight":1000000}`, name, r.disk(name)))
	}
	k = testkit.StartKillable(t, r.dir, sets(coding, rate, burst, "storage.providers=["+strings.Join(list, ",")+"]")...)
	moving := exec.Command("macronode", "storage", "rebalance", "--data", r.dir)
	testkit.Must(t, moving.Start())
	for check := testkit.HangGuard(t); r.files("a") > 0; time.Sleep(time.Millisecond) {
		check()
		r.checkParts(t, "a b c d e f")
	}
	testkit.Must(t, moving.Wait())
	k.End()
	k = r.start(t, "b c d e f", coding)
	readObjects(t, k, r.contents...)
	if output, ok := macronode("storage", "repair", "--data", r.dir); !ok || !strings.Contains(output, "all objects had their copies") {
		t.Error(output)
	}
	r.checkParts(t, "b c d e f")
}

// TestRebalanceOfShards adds two providers and moves shards to them. The node is killed again and again, and one of the new disks fails for a
// while: no object ever has fewer shards, and the command that is running meanwhile succeeds.
func TestRebalanceOfShards(t *testing.T) {
	t.Parallel()
	const coding, often, burst = "storage.coding=3+2", "storage.repair.interval=20ms", "storage.repair.burst=128KiB"
	const slow, rate = "storage.repair.rate=128KiB", "storage.repair.rate=256KiB" // so that shards are left to move on a slow machine
	const old, added = "a b c d e", "f g"
	r := &rebalanced{dir: t.TempDir(), disks: t.TempDir(), want: 5}
	for n := range 16 {
		r.contents = append(r.contents, mixed(n, 250_000))
	}
	k := r.start(t, old, coding)
	putObjects(t, k, r.contents...)
	k.End()
	for range 3 {
		k = r.start(t, old+" "+added, coding, slow, burst)
		readObjects(t, k, r.contents...)
		moving, output := r.begin(t, old, added, 2)
		k.End()
		if moving.Wait() == nil {
			t.Errorf("the command succeeded although the node was killed: %s", output)
		}
		r.checkParts(t, old+" "+added)
	}
	k = r.start(t, old+" "+added, coding, rate, burst, often)
	moving, output := r.begin(t, old, added, 1)
	failDirectory(t, r.disk("f"))
	for check, status := testkit.HangGuard(t), ""; !strings.Contains(status, "; failed: "); check() {
		status, _ = macronode("storage", "status", "--data", r.dir)
	}
	readObjects(t, k, r.contents...)
	restoreDirectory(t, r.disk("f"))
	if err := moving.Wait(); err != nil {
		t.Errorf("a disk failed for a while: %v: %s", err, output)
	}
	r.end(t, k, old, added, coding)
}
