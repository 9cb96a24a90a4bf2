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
	"strings"
)

// A Mutant is one bug.
type Mutant struct {
	Name  string   // the bug, in words
	Holds string   // what it breaks: an invariant, or a rule of the contract
	Edits []Edit   // all of them together
	Kills []string // the checks that must each see it: package, and tests by a pattern
}

// An Edit replaces the one place in a file where Old stands.
type Edit struct{ File, Old, New string }

// Lay writes the overlay for m, over the tree at root, into dir.
func (m Mutant) Lay(root, dir string) (overlay string, err error) {
	text := map[string]string{}
	for _, e := range m.Edits {
		path := filepath.Join(root, e.File)
		if _, ok := text[path]; !ok {
			raw, err := os.ReadFile(path)
			if err != nil {
				return "", err
			}
			text[path] = string(raw)
		}
		if n := strings.Count(text[path], e.Old); n != 1 {
			return "", fmt.Errorf("%s: the anchor stands %d times in %s: %q", m.Name, n, e.File, e.Old)
		}
		text[path] = strings.Replace(text[path], e.Old, e.New, 1)
	}
	replace := map[string]string{}
	for path, now := range text {
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

// A Verdict is what one check said of one mutant.
type Verdict struct {
	Dead  bool
	Built bool
	Why   string // the first line of the complaint
}

var complaint = regexp.MustCompile(`(?m)^\s*(\S+_test\.go:\d+: .*|panic: .*|\S+\.go:\d+:\d+: .*|.*: broken: .*)$`)

// Try runs one check with the mutant in place. A mutant that does not compile
// proves nothing.
func Try(root, overlay, check string) Verdict {
	pkg, pattern, ok := strings.Cut(check, " ")
	args := []string{"test", "-overlay", overlay, "-vet=off", "-timeout", "180s", pkg}
	if ok {
		args = append(args, "-run", pattern)
	}
	cmd := exec.Command("go", args...)
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	text := string(out)
	v := Verdict{Dead: err != nil, Built: !strings.Contains(text, "[build failed]") && !strings.Contains(text, "[setup failed]")}
	for _, line := range complaint.FindAllString(text, -1) {
		if line = strings.TrimSpace(line); !strings.Contains(line, "[rapid]") {
			v.Why = line[:min(len(line), 120)]
			break
		}
	}
	return v
}
