package doclinks

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// checks matches the Go column of specs/README.md: rules of sim, rules of trace, transcripts, a
// package, a test of the package named last before it.
var checks = regexp.MustCompile("sim ((?:`[a-z -]+`(?:, )?)+)|trace ((?:[A-Z][A-Za-z]+(?:, )?)+)|transcripts? ((?:`[a-z0-9-]+`(?:, )?)+)|`([a-z/]+)`|\\b(Test[A-Z][A-Za-z0-9]*)\\b")

// TestSpecificationsNameExistingChecks: the Go checks that specs/README.md names exist.
func TestSpecificationsNameExistingChecks(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "specs", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	sim, rules := sources(t, "chaos/sim"), sources(t, "chaos/trace")
	seen := [6]int{}
	for n, line := range strings.Split(string(page), "\n") {
		cells := strings.Split(line, " | ")
		if len(cells) != 3 || !strings.HasPrefix(line, "| ") {
			continue
		}
		dir := ""
		for _, m := range checks.FindAllStringSubmatch(cells[1], -1) {
			for i := range seen {
				if i > 0 && m[i] != "" {
					seen[i]++
				}
			}
			switch {
			case m[1] != "":
				for rule := range strings.SplitSeq(strings.Trim(m[1], "`, "), "`, `") {
					if !hasRule(sim, rule) {
						t.Errorf("line %d: %s is no rule of chaos/sim", n+1, rule)
					}
				}
			case m[2] != "":
				for rule := range strings.SplitSeq(strings.TrimSuffix(m[2], ", "), ", ") {
					if !strings.Contains(rules, `broken("`+rule+`"`) {
						t.Errorf("line %d: %s is no rule of chaos/trace", n+1, rule)
					}
				}
			case m[3] != "":
				for name := range strings.SplitSeq(strings.Trim(m[3], "`, "), "`, `") {
					if _, err := os.Stat(filepath.Join(root, "core/node/testdata", name+".story")); err != nil {
						t.Errorf("line %d: %v", n+1, err)
					}
				}
			case m[4] != "":
				dir = m[4]
				if _, err := os.Stat(filepath.Join(root, dir)); err != nil {
					dir = "adapters/" + dir
				}
			default:
				if !declared(t, filepath.Join(root, dir), m[5]) {
					t.Errorf("line %d: %s is no test of %s", n+1, m[5], dir)
				}
			}
		}
	}
	for i, count := range seen[1:] {
		if count < 5 {
			t.Errorf("only %d names of kind %d", count, i+1)
		}
	}
}

// hasRule reports whether the simulator can fail with a rule. "stuck X" is the rule of something that does not end
// after the last fault: see World.Settled.
func hasRule(sim, rule string) bool {
	if what, ok := strings.CutPrefix(rule, "stuck "); ok {
		return regexp.MustCompile(`note\(.*, "` + what + `", "`).MatchString(sim)
	}
	return strings.Contains(sim, `fail("`+rule+`", `)
}

// sources returns the text of the files of a directory, without their tests.
func sources(t *testing.T, dir string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	return all.String()
}
