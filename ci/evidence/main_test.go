package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestPageIsFresh: docs/evidence.md equals page.md except for the numbers.
func TestPageIsFresh(t *testing.T) {
	raw, err := os.ReadFile("../../docs/evidence.md")
	if err != nil {
		t.Fatal(err)
	}
	rest := string(raw)
	for _, piece := range hole.Split(page, -1) {
		_, after, ok := strings.Cut(rest, piece)
		if !ok {
			t.Fatalf("docs/evidence.md has not, or not here: %q; go run ./ci/evidence writes it", piece)
		}
		rest = after
	}
}

// TestEveryNumberIsMeasured: a check prints a fact for each placeholder of the page.
func TestEveryNumberIsMeasured(t *testing.T) {
	holes := hole.FindAllStringSubmatch(page, -1)
	if len(holes) < 10 {
		t.Fatalf("only %d holes", len(holes))
	}
	for _, h := range holes {
		if h[1] == "mutants.table" {
			continue
		}
		if out, err := exec.Command("grep", "-rlF", "evidence: "+h[1]+" = ", "../../chaos", "../../models", "../../ci", "../../core").CombinedOutput(); err != nil {
			t.Errorf("no check measures %s: %s", h[1], out)
		}
	}
}

// TestFillReplacesPlaceholders: with facts of any log, the later ones first; a missing fact names
// its step.
func TestFillReplacesPlaceholders(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"a.txt": "x\n    some_test.go:3: evidence: a.b = 12 of 12\n", "b.txt": "evidence: c = 1\nevidence: c = 2\r\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	facts := map[string]string{}
	for _, name := range []string{"a.txt", "b.txt"} {
		if err := read(filepath.Join(dir, name), facts); err != nil {
			t.Fatal(err)
		}
	}
	if got := fill("{{a.b}}, {{c}}, {{trace.d}}", facts); got != "12 of 12, 2, not measured: the last gate had no `ci/run simulate`" {
		t.Fatal(got)
	}
}

// TestEveryNumberHasAStep: the step of a missing fact exists.
func TestEveryNumberHasAStep(t *testing.T) {
	run, err := os.ReadFile("../run")
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range hole.FindAllStringSubmatch(page, -1) {
		kind, _, _ := strings.Cut(h[1], ".")
		if step := stepOf(kind); !strings.Contains(string(run), "\nstep_"+step+"()") {
			t.Errorf("%s is of the step %s, which ci/run has not", h[1], step)
		}
	}
}
