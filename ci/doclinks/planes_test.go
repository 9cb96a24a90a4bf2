package doclinks

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// mostEdits is how many files that exist already a new plane may edit.
const mostEdits = 5

// editedFile matches a row of the table of edited files.
var editedFile = regexp.MustCompile("(?m)^\\| `([a-z/_]+\\.go)` \\| ")

// namesCounter matches code that concerns the example plane.
var namesCounter = regexp.MustCompile(`examples/counter|\bPlaneExample\b|\bcounternode\.|\bbeginCounter\b|\bcounters\(\)`)

// ofCounter are the files that the example plane adds.
var ofCounter = regexp.MustCompile(`^examples/counter|^chaos/(sim|mutants)/counter(_test)?\.go$`)

// TestPlaneEditsFewFiles: the how-to page lists the files that the example plane edits, no other file names the
// plane, and they are few.
func TestPlaneEditsFewFiles(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs/how-to/add-a-plane.md"))
	if err != nil {
		t.Fatal(err)
	}
	var listed, found []string
	for _, m := range editedFile.FindAllStringSubmatch(string(page), -1) {
		listed = append(listed, m[1])
	}
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if d.IsDir() && (strings.HasPrefix(d.Name(), ".") && name != "." || d.Name() == "testdata") {
			return filepath.SkipDir
		}
		// Tests of other packages use the ID of examples for planes of their own.
		if err != nil || filepath.Ext(name) != ".go" || ofCounter.MatchString(name) || strings.HasSuffix(name, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if namesCounter.Match(text) {
			found = append(found, filepath.ToSlash(name))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(listed)
	slices.Sort(found)
	if !slices.Equal(listed, found) || len(found) == 0 || len(found) > mostEdits {
		t.Errorf("the example plane is named in %q, the page lists %q; at most %d files are permitted", found, listed, mostEdits)
	}
	t.Logf("%d files are edited", len(found))
}
