// Package mutants inserts bugs into the code, one at a time, and verifies that the checks detect
// each: a check that has never failed proves nothing.
//
// A mutant is a set of edits of source files, in an overlay for one `go test`; the tree itself is
// not changed. If an anchor is not in its file, that is an error: the mutant would change
// nothing.
package mutants

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Mutant is a bug.
type Mutant struct {
	Name  string   // the fault
	Holds string   // the invariant or rule that it breaks
	Edits []Edit   // applied together
	Kills []string // the checks that must each detect it: package, and a pattern of tests
	Alone string   // why there is only one check; empty: there are more
}

// alone returns m with the reason why only one check detects it.
func alone(why string, m Mutant) Mutant {
	m.Alone = why
	return m
}

// An Edit replaces the only occurrence of Old in a file.
type Edit struct{ File, Old, New string }

// texts returns the files that m edits, with the edits.
func (m Mutant) texts(root string) (map[string]string, error) {
	text := map[string]string{}
	for _, e := range m.Edits {
		path := filepath.Join(root, e.File)
		if _, ok := text[path]; !ok {
			raw, err := os.ReadFile(path)
			if err != nil {
				return nil, err
			}
			text[path] = string(raw)
		}
		if n := strings.Count(text[path], e.Old); n != 1 {
			return nil, fmt.Errorf("%s: the anchor occurs %d times in %s: %q", m.Name, n, e.File, e.Old)
		}
		text[path] = strings.Replace(text[path], e.Old, e.New, 1)
	}
	return text, nil
}

// Lay writes the overlay for m alone, over the tree at root, to dir.
func (m Mutant) Lay(root, dir string) (overlay string, err error) {
	text, err := m.texts(root)
	if err != nil {
		return "", err
	}
	return lay(dir, text)
}

// lay writes files to dir, and an overlay that replaces others by them.
func lay(dir string, text map[string]string) (overlay string, err error) {
	replace := map[string]string{}
	for path, now := range text { //nolint:maporder // the names of the files mean nothing
		to := filepath.Join(dir, fmt.Sprintf("%d.go", len(replace)))
		if err := os.WriteFile(to, []byte(now), 0o600); err != nil {
			return "", err
		}
		replace[path] = to
	}
	raw, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay = filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, raw, 0o600)
}

// A Check is a set of tests of one package.
type Check struct {
	Package, Tests string
	Draws          int           // number of random cases, always the same; 0: new ones each time, increasing
	CPU            time.Duration // limit of CPU time, for endless loops; 0: none
}

// Split parses "package tests"; without tests, all of them.
func Split(check string) Check {
	pkg, tests, _ := strings.Cut(check, " ")
	return Check{Package: pkg, Tests: tests}
}

// draws reports whether the package uses rapid, which defines the flags.
func (c Check) draws(root string) bool {
	files, _ := filepath.Glob(filepath.Join(root, c.Package, "*_test.go"))
	return slices.ContainsFunc(files, func(path string) bool {
		raw, err := os.ReadFile(path)
		return err == nil && strings.Contains(string(raw), `"pgregory.net/rapid"`)
	})
}

// Build compiles the tests of a package with an overlay.
func Build(root, overlay, pkg, to string) error {
	cmd := exec.Command("go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-overlay", overlay, "-o", to, pkg)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "GOGC=400") // the compiler ends before a collection would pay
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("compile %s: %w\n%s", pkg, err, out)
	}
	return nil
}

// Compile compiles packages with an overlay, and keeps nothing; without packages, all.
func Compile(root, overlay string, packages ...string) error {
	if len(packages) == 0 {
		packages = []string{"./..."}
	}
	cmd := exec.Command("go", append([]string{"build", "-overlay", overlay, "-o", os.DevNull}, packages...)...)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
}

// A Verdict is the result of one check with one mutant.
type Verdict struct {
	Dead  bool
	Blind bool // the check does not contain the mutated code
	CPU   time.Duration
	Why   string // the first line of the failure
}

var complaint = regexp.MustCompile(`(?m)^\s*(\S+_test\.go:\d+: .*|panic: .*|\S+\.go:\d+:\d+: .*|.*: broken: .*)$`)

// Calm runs a compiled check without a mutant.
func Calm(root, built string, c Check) Verdict { return c.run(root, built, 0, 0) }

// draws is the number of random cases per try: more than by default, and then ten times as many
// twice, before a check counts as blind.
var draws = [...]int{400, 4000, 40000}

// Try runs a compiled check with a mutant; 0 is none, or the one of its overlay.
func Try(root, built string, c Check, mutant int) (v Verdict) {
	if !c.draws(root) {
		return c.run(root, built, mutant, 0, c.hangs()...)
	}
	if c.Draws > 0 {
		return c.run(root, built, mutant, c.Draws, "-rapid.seed=1")
	}
	for i, n := range draws { // a counterexample need not be minimal
		v = c.run(root, built, mutant, n)
		v.Dead = v.Dead && (i == 0 || !strings.HasPrefix(v.Why, "panic: test timed out")) // a timeout with many cases is not a detection
		if v.Dead {
			break
		}
	}
	return v
}

// hangs returns the flag with which a check that hangs is detected. Without a mutant such a check takes seconds. The checks
// of chaos run until rare situations occur.
func (c Check) hangs() []string {
	if strings.HasPrefix(c.Package, "./chaos/") {
		return nil
	}
	return []string{"-test.timeout=90s"}
}

func (c Check) run(root, built string, mutant, draws int, args ...string) Verdict {
	args = append([]string{"-test.timeout=180s", "-test.failfast"}, args...)
	if mutant > 0 {
		args = append(args, "-mutant="+strconv.Itoa(mutant))
	}
	if draws > 0 {
		args = append(args, "-rapid.shrinktime=0s", "-rapid.nofailfile", "-rapid.checks="+strconv.Itoa(draws))
	}
	if c.Tests != "" {
		args = append(args, "-test.run="+c.Tests)
	}
	cmd := exec.Command(built, args...)
	if c.CPU > 0 {
		limit := fmt.Sprintf(`ulimit -t %d; exec "$0" "$@"`, int(c.CPU.Seconds())+1)
		cmd = exec.Command("sh", append([]string{"-c", limit, built}, args...)...)
	}
	cmd.Dir = filepath.Join(root, c.Package)
	out, err := cmd.CombinedOutput()
	v := Verdict{Dead: err != nil, Blind: strings.Contains(string(out), "flag provided but not defined: -mutant") || strings.Contains(string(out), "no tests to run")}
	if s := cmd.ProcessState; s != nil {
		v.CPU = s.UserTime() + s.SystemTime()
	}
	for _, line := range complaint.FindAllString(string(out), -1) {
		if line = strings.TrimSpace(line); !strings.Contains(line, "[rapid]") {
			v.Why = line[:min(len(line), 120)]
			break
		}
	}
	return v
}
