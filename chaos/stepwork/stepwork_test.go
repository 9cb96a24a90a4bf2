// Package stepwork bounds what one step of the node executes: the number of statements of
// core, which is the same on every machine, not a time. A loop over all requests that are
// queued, at work or held is seen, wherever in core it stands.
package stepwork

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	_ "macronode/core/node" // what is measured: a change of it makes a cached result void
)

const (
	few, many = 64, 1024
	// factor and extra are by how much a step of a node with many requests may execute more than
	// that of one with few: for a heap, which is a little deeper, and for the probes of tables.
	factor, extra = 1.5, 200
)

// TestStepWorkDoesNotGrowWithRequests: sixteen times the requests do not make a step longer.
func TestStepWorkDoesNotGrowWithRequests(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "measure")
	run(t, "go", "build", "-cover", "-covermode=atomic", "-coverpkg=macronode/core/...,macronode/chaos/stepwork/measure", "-o", binary, "./measure")
	before, after := measured(t, binary, few), measured(t, binary, many)
	for kind, want := range before {
		got := after[kind]
		t.Logf("%-14s %5d statements with %d requests, %5d with %d", kind, want, few, got, many)
		if want == 0 || float64(got) > float64(want)*factor+extra {
			t.Errorf("%s: a step executes %d statements with %d requests, and %d with %d", kind, want, few, got, many)
		}
	}
}

// measured returns how many statements a step of each kind executes.
func measured(t *testing.T, binary string, requests int) map[string]int {
	t.Helper()
	dir := t.TempDir()
	run(t, binary, dir, strconv.Itoa(requests))
	kinds, err := os.ReadDir(dir)
	if err != nil || len(kinds) == 0 {
		t.Fatalf("nothing is measured: %v", err)
	}
	executed := map[string]int{}
	for _, kind := range kinds {
		profile := filepath.Join(t.TempDir(), "profile")
		run(t, "go", "tool", "covdata", "textfmt", "-i="+filepath.Join(dir, kind.Name()), "-o="+profile)
		executed[kind.Name()] = statements(t, profile)
	}
	return executed
}

// statements adds up a profile, whose lines are "file:place STATEMENTS TIMES".
func statements(t *testing.T, profile string) (sum int) {
	t.Helper()
	file, err := os.Open(profile)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) != 3 || !strings.HasPrefix(fields[0], "macronode/core/") {
			continue // the mode, and the program that measures
		}
		block, err1 := strconv.Atoi(fields[1])
		times, err2 := strconv.Atoi(fields[2])
		if err1 != nil || err2 != nil {
			t.Fatalf("not a line of a profile: %q", lines.Text())
		}
		sum += block * times
	}
	return sum
}

func run(t *testing.T, name string, args ...string) {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), "GOCOVERDIR="+t.TempDir(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}
