package cli

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"macronode/cmd/macronode/internal/testkit"
)

// fiveProviders configures five directories with three shards of data and two of parity, and searches for missing shards often.
func fiveProviders(disks string, more ...string) (flags []string) {
	return sets(append(more, providersIn(disks, fiveNames...), "storage.repair.interval=20ms")...)
}

var fiveNames = []string{"a", "b", "c", "d", "e"}

// shardedContents are a few objects: one has copies, the others are larger than a stripe.
var shardedContents = [][]byte{mixed(0, 5000), mixed(1, 200_000), mixed(2, 700_000)}

// mixed returns the n-th content of a size.
func mixed(n, size int) []byte {
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(i>>8*31 + i*7 + n)
	}
	return b
}

// TestShardsAreRestored removes two of five directories and damages a shard while the node serves: reads go on, all shards are restored, and verify
// finds them intact. A node that is killed while uploads write leaves none of their files. Shards of a deleted object are removed.
func TestShardsAreRestored(t *testing.T) {
	t.Parallel()
	dir, disks := t.TempDir(), t.TempDir()
	flags := fiveProviders(disks, "storage.coding=3+2", "storage.collect_interval=20ms")
	disk := func(name string) string { return filepath.Join(disks, name) }
	k := testkit.StartKillable(t, dir, flags...)
	putObjects(t, k, shardedContents...)
	shards := func(name string) []string {
		found, _ := filepath.Glob(filepath.Join(disk(name), "*.rs3-2-*"))
		return found
	}
	await := func(names ...string) {
		t.Helper()
		for _, name := range names {
			for check := testkit.HangGuard(t); len(shards(name)) != 2; time.Sleep(time.Millisecond) {
				check()
			}
		}
	}
	await(fiveNames...)
	for _, name := range []string{"a", "d"} {
		testkit.Must(t, os.Rename(disk(name), disk(name)+".gone")) // at once: the node makes it again
	}
	readObjects(t, k, shardedContents...)
	await(fiveNames...)
	whole, err := os.ReadFile(shards("b")[0])
	testkit.Must(t, err)
	damaged := bytes.Clone(whole)
	damaged[100] ^= 1
	testkit.Must(t, os.WriteFile(shards("b")[0], damaged, 0o600))
	run := func(args ...string) (string, bool) {
		return macronode(append(args, "--data", dir)...)
	}
	if output, ok := run("storage", "scrub"); ok || !strings.Contains(output, " 1 damaged copies") || !strings.Contains(output, "larger ones have shards: 3+2") {
		t.Errorf("scrub: %s", output)
	}
	for check := testkit.HangGuard(t); ; time.Sleep(time.Millisecond) {
		check()
		if is, err := os.ReadFile(shards("b")[0]); err == nil && bytes.Equal(is, whole) {
			break
		}
	}
	if output, ok := run("storage", "rebalance"); !ok || !strings.Contains(output, "objects were moved") { // a repair may have written a copy elsewhere
		t.Errorf("rebalance: %s", output)
	}
	if output, ok := run("storage", "repair"); !ok || !strings.Contains(output, "all objects had their copies") {
		t.Errorf("repair: %s", output)
	}
	for range 3 {
		k.Half(t, make([]byte, 2_000_000))
	}
	for check := testkit.HangGuard(t); len(parts(disks)) < 5*3; time.Sleep(time.Millisecond) {
		check()
	}
	k.End()
	verify := func() (string, bool) { return run(append([]string{"verify"}, flags...)...) }
	if output, ok := verify(); !ok || !strings.Contains(output, "3 objects (905000 bytes) are intact") {
		t.Errorf("verify: %s", output)
	}
	k = testkit.StartKillable(t, dir, flags...)
	readObjects(t, k, shardedContents...)
	for check := testkit.HangGuard(t); len(parts(disks)) > 0; time.Sleep(time.Millisecond) {
		check()
	}
	if status, _ := k.Object(t, http.MethodDelete, "/o/"+addressOf(shardedContents[1]), nil); status != http.StatusOK {
		t.Errorf("delete: %d", status)
	}
	for _, name := range fiveNames {
		for check := testkit.HangGuard(t); len(shards(name)) != 1; time.Sleep(time.Millisecond) {
			check()
		}
	}
	k.End()
	testkit.Must(t, os.Remove(shards("a")[0]))
	testkit.Must(t, os.Truncate(shards("e")[0], 100))
	output, ok := verify()
	if ok || !strings.Contains(output, "2 objects (705000 bytes) are intact") || strings.Count(output, " 1 missing, 0 damaged") != 1 || strings.Count(output, " 0 missing, 1 damaged") != 1 {
		t.Errorf("verify without two shards: %s", output)
	}
	testkit.Must(t, os.Remove(shards("c")[0]))
	if output, ok := verify(); ok || !strings.Contains(output, "1 of 2 objects are unreadable") {
		t.Errorf("verify without three shards: %s", output)
	}
}

// parts returns the files that uploads are writing.
func parts(disks string) []string {
	found, _ := filepath.Glob(filepath.Join(disks, "*", "*.part"))
	return found
}

// TestSchemeOfNodeChanges: a node without a scheme reads what one with a scheme has stored, and the other way round. A backup of both has all objects, and
// a restore stores them as the configuration says.
func TestSchemeOfNodeChanges(t *testing.T) {
	t.Parallel()
	dir, disks := t.TempDir(), t.TempDir()
	coded, plain := fiveProviders(disks, "storage.coding=3+2"), fiveProviders(disks)
	for n, flags := range [][]string{coded, plain, coded} {
		k := testkit.StartKillable(t, dir, flags...)
		putObjects(t, k, shardedContents[n])
		readObjects(t, k, shardedContents[:n+1]...)
		k.End()
	}
	run := func(args ...string) string {
		t.Helper()
		output, ok := macronode(args...)
		if !ok {
			t.Fatalf("%q: %s", args, output)
		}
		return output
	}
	backup := filepath.Join(disks, "backup")
	if output := run(append([]string{"backup", backup, "--data", dir}, plain...)...); !strings.Contains(output, "and 3 objects of 905000 bytes") {
		t.Errorf("backup: %s", output)
	}
	for _, c := range []struct {
		scheme       string
		files, shard int
	}{{"storage.coding=2+2", 3 + 2*4, 2 * 4}, {"storage.copies=2", 3 * 2, 0}} {
		restored, others := t.TempDir(), t.TempDir()
		flags := fiveProviders(others, c.scheme)
		run(append([]string{"restore", backup, "--data", restored}, flags...)...)
		run(append([]string{"verify", "--data", restored}, flags...)...)
		files, _ := filepath.Glob(filepath.Join(others, "*", "*-*"))
		found, _ := filepath.Glob(filepath.Join(others, "*", "*.rs*"))
		if len(files) != c.files || len(found) != c.shard {
			t.Errorf("%s: files %q", c.scheme, files)
		}
		k := testkit.StartKillable(t, restored, flags...)
		readObjects(t, k, shardedContents...)
		k.End()
	}
}
