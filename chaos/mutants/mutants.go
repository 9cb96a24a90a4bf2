// Package mutants breaks the house by hand, one bug at a time, and wants the checks
// to see each: a check that was never seen to fail is no check.
//
// A mutant is edits to source files, laid over the tree for one `go test`; the tree
// itself is not touched. An anchor that no longer stands in its file is an error: a
// mutant that mutates nothing would count as killed by nobody.
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

// A Mutant is one bug.
type Mutant struct {
	Name  string   // the bug, in words
	Holds string   // what it breaks: an invariant, or a rule of the contract
	Edits []Edit   // all of them together
	Kills []string // the checks that must each see it: package, and tests by a pattern
	Alone string   // why one check is all that there can be; empty: there are more
}

// alone is m, which one check alone can see, and why.
func alone(why string, m Mutant) Mutant {
	m.Alone = why
	return m
}

// An Edit replaces the one place in a file where Old stands.
type Edit struct{ File, Old, New string }

// texts are the files that m edits, as must be them.
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
			return nil, fmt.Errorf("%s: the anchor stands %d times in %s: %q", m.Name, n, e.File, e.Old)
		}
		text[path] = strings.Replace(text[path], e.Old, e.New, 1)
	}
	return text, nil
}

// Lay writes the overlay for m alone, over the tree at root, into dir.
func (m Mutant) Lay(root, dir string) (overlay string, err error) {
	text, err := m.texts(root)
	if err != nil {
		return "", err
	}
	return lay(dir, text)
}

// lay writes files, and the overlay that puts them in the place of others, into dir.
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

// A Check is tests of one package.
type Check struct {
	Package, Tests string
	Draws          int           // of what draws at random: always the same; 0 is others each time, as many as it takes
	CPU            time.Duration // who takes more goes round in circles; 0 is no limit
}

// Split reads "package tests"; all of its tests, where none are named.
func Split(check string) Check {
	pkg, tests, _ := strings.Cut(check, " ")
	return Check{Package: pkg, Tests: tests}
}

// draws reports that its package uses rapid, whose flags are there only then.
func (c Check) draws(root string) bool {
	files, _ := filepath.Glob(filepath.Join(root, c.Package, "*_test.go"))
	return slices.ContainsFunc(files, func(path string) bool {
		raw, err := os.ReadFile(path)
		return err == nil && strings.Contains(string(raw), `"pgregory.net/rapid"`)
	})
}

// Build compiles the tests of a package over an overlay.
func Build(root, overlay, pkg, to string) error {
	cmd := exec.Command("go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-overlay", overlay, "-o", to, pkg)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "GOGC=400") // a compiler ends before it would pay to collect what it leaves
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("compile %s: %w\n%s", pkg, err, out)
	}
	return nil
}

// A Verdict is what one check said of one mutant.
type Verdict struct {
	Dead  bool
	Blind bool // the check does not even contain what is broken
	CPU   time.Duration
	Why   string // the first line of the complaint
}

var complaint = regexp.MustCompile(`(?m)^\s*(\S+_test\.go:\d+: .*|panic: .*|\S+\.go:\d+:\d+: .*|.*: broken: .*)$`)

// Calm runs one check, that was built to a file, with no mutant on.
func Calm(root, built string, c Check) Verdict { return c.run(root, built, 0, 0) }

// draws is how often what draws at random draws: more than usual, and ten times as often
// before it is believed to see nothing, and once more.
var draws = [...]int{400, 4000, 40000}

// Try runs one check, that was built to a file, with a mutant on; 0 is none, or the one that
// it was built with.
func Try(root, built string, c Check, mutant int) (v Verdict) {
	if !c.draws(root) {
		return c.run(root, built, mutant, 0)
	}
	if c.Draws > 0 {
		return c.run(root, built, mutant, c.Draws, "-rapid.seed=1")
	}
	for i, n := range draws { // a counterexample need not be small to be one
		v = c.run(root, built, mutant, n)
		v.Dead = v.Dead && (i == 0 || !strings.HasPrefix(v.Why, "panic: test timed out")) // which is no complaint of so many
		if v.Dead {
			break
		}
	}
	return v
}

func (c Check) run(root, built string, mutant, draws int, args ...string) Verdict {
	args = append(args, "-test.timeout=180s", "-test.failfast")
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
