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

// TestCleanPackages checks the Go files of the packages that have been rewritten.
func TestCleanPackages(t *testing.T) {
	for _, dir := range clean {
		files := 0
		err := filepath.WalkDir(filepath.Join("../..", dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") {
				return err
			}
			files++
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			found, err := language.CheckSource(strings.TrimPrefix(path, "../../"), text)
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
