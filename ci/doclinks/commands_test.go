package doclinks

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// testCommand matches a command that runs named tests: its packages, and the pattern with or without quotes.
var testCommand = regexp.MustCompile("go test ((?:\\./[a-z0-9/._-]+ )+)(?:-[a-z]+ )*-run (?:\"([^\"]+)\"|([^`\\s]+))")

// TestCommandsRunTests: each pattern of a command in a page matches a test of the command's packages. Without one, `go
// test` reports success and has run nothing.
func TestCommandsRunTests(t *testing.T) {
	seen := 0
	for _, page := range pages(t) {
		text, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range testCommand.FindAllStringSubmatch(string(text), -1) {
			seen++
			names := testsIn(t, strings.Fields(m[1]))
			for pattern := range strings.SplitSeq(strings.ReplaceAll(m[2]+m[3], `\|`, "|"), "|") { // a table escapes the bar
				test, _, _ := strings.Cut(pattern, "/")
				if is, err := regexp.Compile("(?m)" + test); err != nil || !is.MatchString(names) {
					t.Errorf("%s: %s matches no test of %s%v", page, test, m[1], err)
				}
			}
		}
	}
	if seen < 40 {
		t.Errorf("only %d commands were found", seen)
	}
}

// pages returns the paths of all Markdown files of the tree.
func pages(t *testing.T) (all []string) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(root), ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && strings.HasPrefix(d.Name(), ".") && path != ".":
			return fs.SkipDir
		case strings.HasSuffix(path, ".md"):
			all = append(all, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

var testName = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)

// testsIn returns the names of the tests of some packages, one in each line.
func testsIn(t *testing.T, packages []string) string {
	t.Helper()
	var names strings.Builder
	for _, p := range packages {
		files, err := filepath.Glob(filepath.Join(root, p, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range files {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range testName.FindAllStringSubmatch(string(text), -1) {
				names.WriteString(m[1] + "\n")
			}
		}
	}
	return names.String()
}
