// Package doclinks checks that docs/seeds.md, and the checks named in specs/README.md, exist.
package doclinks

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = "../.."

// TestSeedsNameExistingChecks: every file, directory and test that the page names exists; a test
// belongs to the directory named last before it.
func TestSeedsNameExistingChecks(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs", "seeds.md"))
	if err != nil {
		t.Fatal(err)
	}
	paths, tests := regexp.MustCompile("`((?:adapters|chaos|ci|cmd|core|docs|fuzz|models|specs)[a-z0-9_./-]*)`"), regexp.MustCompile(`\b(?:Test|Fuzz)[A-Z][A-Za-z0-9]*\b`)
	named := regexp.MustCompile(paths.String() + "|" + tests.String())
	seen := 0
	for n, line := range strings.Split(string(page), "\n") {
		dir := ""
		for _, name := range named.FindAllString(line, -1) {
			seen++
			if name[0] != '`' {
				if !declared(t, filepath.Join(root, dir), name) {
					t.Errorf("line %d: %s is no test of %s", n+1, name, dir)
				}
				continue
			}
			path := strings.Trim(name, "`")
			at, err := os.Stat(filepath.Join(root, path))
			if err != nil {
				t.Errorf("line %d: %v", n+1, err)
			} else if at.IsDir() {
				dir = path
			}
		}
	}
	if seen < 100 {
		t.Errorf("only %d names", seen)
	}
}

// declared reports that a directory has a test.
func declared(t *testing.T, dir, name string) bool {
	t.Helper()
	found := false
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && path != dir {
			return filepath.SkipDir
		}
		if strings.HasSuffix(path, "_test.go") {
			text, err := os.ReadFile(path)
			found = found || bytes.Contains(text, []byte("func "+name+"("))
			return err
		}
		return nil
	})
	return err == nil && found
}
