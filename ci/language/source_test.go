package language_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"macronode/ci/language"
)

// clean are the packages, with those below them, whose comments and names are in plain English.
// A package is added when it has been rewritten, and is never removed.
var clean = []string{
	"adapters",
	"cmd",
	"chaos",
	"ci",
	"core",
	"examples", "fuzz", "models",
}

// TestCleanPackages checks the comments and names of the packages that have been rewritten.
func TestCleanPackages(t *testing.T) {
	for _, dir := range clean {
		checkFiles(t, dir, language.CheckSource, func(string) bool { return true })
	}
}

// TestMessages checks the messages of the product.
func TestMessages(t *testing.T) {
	for _, dir := range []string{"adapters", "cmd", "core"} {
		checkFiles(t, dir, language.CheckMessages, func(path string) bool { return !strings.HasSuffix(path, "_test.go") })
	}
}

// checkFiles checks the Go files below dir that are selected by their path.
func checkFiles(t *testing.T, dir string, check func(name string, text []byte) ([]string, error), selects func(path string) bool) {
	t.Helper()
	files := 0
	err := filepath.WalkDir(filepath.Join("../..", dir), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || !selects(path) {
			return err
		}
		files++
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		found, err := check(strings.TrimPrefix(path, "../../"), text)
		for _, finding := range found {
			t.Error(finding)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if files == 0 {
		t.Errorf("%s has no Go files", dir)
	}
}

// TestCheckMessagesFinds shows that the check reports what it should, and nothing else.
func TestCheckMessagesFinds(t *testing.T) {
	for text, want := range map[string]int{
		"package p\n\nvar a = \"The queue is full.\"":                         0,
		"package p\n\n// nobody\nvar nobody = 1":                              0,
		"package p\n\nvar a = \"nobody waits\" + `whose turn`":                2,
		"package p\n\ntype a struct{ b int `json:\"ailing\"` }\n":             1,
		"package p\n\nvar a = map[string]int{\"strangers\": 1, \"cache\": 2}": 1,
	} {
		found, err := language.CheckMessages("p.go", []byte(text))
		if err != nil || len(found) != want {
			t.Errorf("%q: %q, %v, want %d findings", text, found, err, want)
		}
	}
	if _, err := language.CheckMessages("p.go", []byte("package")); err == nil {
		t.Error("a file that cannot be parsed is accepted")
	}
}

// TestCheckSourceFinds shows that the check reports what it should, and nothing else.
func TestCheckSourceFinds(t *testing.T) {
	for text, want := range map[string]int{
		"// Package p checks quotas.\npackage p":                              0,
		"// If nobody waits, it is told.\npackage p":                          2,
		"package p\n\nvar whole, wholesale int // for the caller whose key":   0,
		"package p\n\nfunc tellTwin() {}\n":                                   1,
		"package p\n\nfunc f(who int) (said string) { return \"nobody\" }\n":  2,
		"package p\n\nfunc f() { for whoKnows := range 3 { _ = whoKnows } }":  1,
		"package p\n\nfunc f() { lastSaid := 1; lastSaid = 2; _ = lastSaid }": 1,
		"package p\n\ntype house struct{ purse int }\n":                       2,
	} {
		found, err := language.CheckSource("p.go", []byte(text))
		if err != nil || len(found) != want {
			t.Errorf("%q: %q, %v, want %d findings", text, found, err, want)
		}
	}
	if _, err := language.CheckSource("p.go", []byte("package")); err == nil {
		t.Error("a file that cannot be parsed is accepted")
	}
}
