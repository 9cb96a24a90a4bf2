package rooms_test

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

	"macronode/ci/rooms"
)

const module = "macronode"

// TestHouse holds the whole tree against the law.
func TestHouse(t *testing.T) {
	seeTree(t, "../..")
	pkgs, err := packages.Load(&packages.Config{Mode: packages.LoadSyntax, Dir: "../.."}, "./...")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(pkgs, func(p *packages.Package) bool { return p.PkgPath == module+"/ci/rooms" }) {
		t.Fatalf("this is not the tree: %v", pkgs)
	}
	for _, p := range pkgs {
		for _, e := range p.Errors {
			t.Error(e)
		}
	}
	graph, err := checker.Analyze([]*analysis.Analyzer{rooms.Analyzer(module)}, pkgs, nil)
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

// seeTree looks at every file here, in this process, so that go test knows what
// the answer rests on and never replays a stale one from its cache: the package
// loader reads in a child process, which the cache cannot see.
func seeTree(t *testing.T, root string) {
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

// TestLawBites holds a house of fixtures against the law: each line marked "want"
// must be reported, and no other. A rule without a fixture is a wish.
func TestLawBites(t *testing.T) {
	results := analysistest.Run(t, analysistest.TestData(), rooms.Analyzer(module), module+"/...")
	if len(results) == 0 {
		t.Fatal("no fixture was seen")
	}
}

// TestLawIsSound: a room uses what stands above it, or itself, and none is hidden
// behind an earlier one. A use that is misspelt would forbid in silence.
func TestLawIsSound(t *testing.T) {
	above := []string{}
	for _, room := range rooms.House {
		for _, path := range above {
			if room.Path == path || strings.HasPrefix(room.Path, path+"/") {
				t.Errorf("%s is hidden behind %s", room.Path, path)
			}
		}
		for _, use := range room.Uses {
			known := use == room.Path || slices.ContainsFunc(above, func(path string) bool {
				return path == use || strings.HasPrefix(path, use+"/")
			})
			if !known {
				t.Errorf("%s uses %s, which does not stand above it", room.Path, use)
			}
		}
		if !room.Pure && len(room.Std) > 0 {
			t.Errorf("%s names what pure rooms take, and is none", room.Path)
		}
		above = append(above, room.Path)
	}
}
