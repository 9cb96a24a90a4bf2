package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"macronode/chaos/sim"
)

// runCommand runs one command line.
func runCommand(t *testing.T, args ...string) (code int, out string) {
	t.Helper()
	var b bytes.Buffer
	code = run(args, &b, &b)
	return code, b.String()
}

func written(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "run.log")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// TestCodes: each outcome has its exit code and a message.
func TestCodes(t *testing.T) {
	dull := written(t, "choices 1\nmoves 65536 3\n")
	later := written(t, "choices 1\nmoves 7 3\n")
	for _, is := range []struct {
		args     string
		code     int
		contains string
	}{
		{"", unable, "wants -seed"},
		{"-nonsense", unable, "not defined"},
		{"-replay /nowhere/at/all", unable, "no such file"},
		{"-replay " + written(t, "nonsense"), unable, "line 1"},
		{"-shrink " + dull, unable, "wants -o"},
		{"-seed 1 -moves 20", kept, "no rule was broken"},
		{"-seed 1 -runs 3 -moves 20", kept, "no rule was broken"},
		{"-replay " + dull, kept, "no rule was broken"},
		{"-shrink " + dull + " -o /nowhere/at/all", kept, "nothing to make small"},
		{"-timeline " + dull, unable, "wants -o"},
		{"-timeline " + dull + " -o " + filepath.Join(t.TempDir(), "f.svg"), kept, ""},
		{"-timeline " + later + " -o /nowhere/at/all", diverged, "diverged"},
		{"-replay " + later, diverged, "diverged at choice 0"},
	} {
		if code, out := runCommand(t, strings.Fields(is.args)...); code != is.code || !strings.Contains(out, is.contains) {
			t.Errorf("simulate %s: %d, want %d with %q:\n%s", is.args, code, is.code, is.contains, out)
		}
	}
}

// TestVerdict: a broken rule is reported by name and has an exit code of its own.
func TestVerdict(t *testing.T) {
	var b bytes.Buffer
	code := options{out: &b}.verdict(&sim.Failure{Rule: "durable-lost", Text: "recovered @0, durable was @2", Move: 7})
	if code != broken || !strings.Contains(b.String(), "durable-lost, at move 7: recovered @0") {
		t.Errorf("%d: %s", code, b.String())
	}
}
