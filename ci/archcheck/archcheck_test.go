package archcheck_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/analysistest"
	"golang.org/x/tools/go/analysis/checker"
	"golang.org/x/tools/go/packages"

	"macronode/ci/archcheck"
)

const module = "macronode"

// TestTree checks all packages of the module against the rules.
func TestTree(t *testing.T) {
	statTree(t, "../..")
	pkgs, err := packages.Load(&packages.Config{Mode: packages.LoadSyntax, Dir: "../.."}, "./...")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(pkgs, func(p *packages.Package) bool { return p.PkgPath == module+"/ci/archcheck" }) {
		t.Fatalf("not the module: %v", pkgs)
	}
	for _, p := range pkgs {
		for _, e := range p.Errors {
			t.Error(e)
		}
	}
	graph, err := checker.Analyze([]*analysis.Analyzer{archcheck.Analyzer(module)}, pkgs, nil)
	if err != nil {
		t.Fatal(err)
	}
	for act := range graph.All() {
		if act.Err != nil {
			t.Errorf("%v: %v", act, act.Err)
		}
		for _, d := range act.Diagnostics {
			t.Errorf("%s: %s", act.Package.Fset.Position(d.Pos), d.Message)
		}
	}
}

// statTree stats every source file in this process, so that go test knows the inputs of the
// result and does not return a stale one from its cache: the package loader reads them in a
// child process, which the cache does not track.
func statTree(t *testing.T, root string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != root && strings.HasPrefix(d.Name(), ".") {
			return fs.SkipDir
		}
		if ext := filepath.Ext(path); ext == ".go" || ext == ".s" || d.Name() == "go.mod" {
			_, err = os.Stat(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestRulesReportFixtures checks the fixtures in testdata: each line marked "want" must be
// reported, and no other line. Every rule needs a fixture.
func TestRulesReportFixtures(t *testing.T) {
	results := analysistest.Run(t, analysistest.TestData(), archcheck.Analyzer(module), module+"/...")
	if len(results) == 0 {
		t.Fatal("no fixture was analysed")
	}
}

// TestLayersAreOrdered: a layer imports only layers above it or itself, and no layer is shadowed
// by an earlier one. A misspelt import would silently forbid a package.
func TestLayersAreOrdered(t *testing.T) {
	above := []string{}
	for _, layer := range archcheck.Layers {
		for _, path := range above {
			if layer.Path == path || strings.HasPrefix(layer.Path, path+"/") {
				t.Errorf("%s is shadowed by %s", layer.Path, path)
			}
		}
		for _, use := range layer.Imports {
			known := use == layer.Path || slices.ContainsFunc(above, func(path string) bool {
				return path == use || strings.HasPrefix(path, use+"/")
			})
			if !known {
				t.Errorf("%s imports %s, which is not above it", layer.Path, use)
			}
		}
		if !layer.Pure && len(layer.Std) > 0 {
			t.Errorf("%s has Std but is not pure", layer.Path)
		}
		above = append(above, layer.Path)
	}
}
