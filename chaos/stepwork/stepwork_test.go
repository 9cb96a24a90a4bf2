// Package stepwork bounds the work of one step of the node: the number of executed statements of
// core, which is the same on every machine. It detects a loop over all requests that are queued,
// running or held, anywhere in core.
package stepwork

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	_ "macronode/core/node" // imported so that a change invalidates the cached result
)

const (
	few, many = 64, 1024
	// factor and extra are how much more a step may execute with many requests than with few: for
	// a deeper heap, and for longer probes in tables.
	factor, extra = 1.5, 200
)

// TestStepWorkDoesNotGrowWithRequests: a step with sixteen times the requests is not longer.
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
		t.Fatalf("no statement is measured: %v", err)
	}
	executed := map[string]int{}
	for _, kind := range kinds {
		profile := filepath.Join(t.TempDir(), "profile")
		run(t, "go", "tool", "covdata", "textfmt", "-i="+filepath.Join(dir, kind.Name()), "-o="+profile)
		executed[kind.Name()] = statements(t, profile)
	}
	return executed
}

// statements sums a profile with lines "file:place STATEMENTS TIMES".
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
			continue // the mode, and the measuring program
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
