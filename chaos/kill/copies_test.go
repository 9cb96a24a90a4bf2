package kill_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"macronode/chaos/kill"
	"macronode/core/types"
)

// TestKillCopies kills a node with two providers again and again under uploads, deletes and reads, and removes the directory of one
// provider in the middle: while the node serves, and while it is down. Every acknowledged put and delete holds, no read has other
// bytes, and after a repair all objects have two intact copies.
func TestKillCopies(t *testing.T) {
	binary, err := build()
	if err != nil {
		t.Fatal(err)
	}
	disks := t.TempDir()
	removed := filepath.Join(disks, "b")
	providers := fmt.Sprintf(`storage.providers=[{"name":"a","path":%q},{"name":"b","path":%q}]`, filepath.Join(disks, "a"), removed)
	n := &kill.Node{Binary: binary, Data: t.TempDir(), Args: []string{"--set", "storage.collect_interval=10ms", "--set", providers, "--set", "storage.repair.interval=50ms"}}
	var all []*kill.ObjectClient
	for i := range uint64(6) {
		all = append(all, kill.NewObjectClient(i+1))
	}
	dice, runs := types.NewRand(*seed), *kills/4+3
	for run := range runs {
		if run == runs/2+1 {
			remove(t, removed)
		}
		start(t, n)
		for _, c := range all {
			if err := c.Hold(t.Context(), n); err != nil {
				t.Fatalf("go test ./chaos/kill -run TestKillCopies -seed %d: %v\n%s", *seed, err, n.Output())
			}
		}
		killUnderLoad(t, n, all, &dice, func() {
			if run == runs/2 {
				remove(t, removed)
				awaitFolded(t, n, folded(t, n)+uint64(4*len(all)))
			}
		})
	}
	start(t, n)
	puts := 0
	for _, c := range all {
		if err := c.Hold(t.Context(), n); err != nil {
			t.Fatal(err)
		}
		puts += c.Puts
	}
	if output, err := exec.Command(binary, "storage", "repair", "--data", n.Data).CombinedOutput(); err != nil {
		t.Fatalf("storage repair: %v: %s\n%s", err, output, n.Output())
	}
	if output, code := n.Stop(); code != 0 {
		t.Fatalf("exit %d:\n%s", code, output)
	}
	output, err := exec.Command(binary, "verify", "--data", n.Data, "--set", providers).CombinedOutput()
	if err != nil || !strings.Contains(string(output), "provider b: ") || strings.Contains(string(output), "provider b: 0 copies") {
		t.Fatalf("verify: %v: %s", err, output)
	}
	if puts < runs {
		t.Fatalf("%d puts: no load", puts)
	}
	t.Logf("%d runs, %d puts: %s", runs, puts, output)
}

// remove removes a directory at once, as a disk that is gone.
func remove(t *testing.T, dir string) {
	t.Helper()
	if err := errors.Join(os.Rename(dir, dir+".gone"), os.RemoveAll(dir+".gone")); err != nil {
		t.Fatal(err)
	}
}
