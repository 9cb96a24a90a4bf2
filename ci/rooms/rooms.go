// Package rooms is the law of the house: which package may import which, and what
// a line of code may do in each room.
//
// Change the code to fit the law, or change the law in a commit of its own that
// says why. A rule is dropped only together with its fixture in testdata.
package rooms

import (
	"go/ast"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/tools/go/analysis"
)

// Analyzer reports every line that breaks the law of its room.
func Analyzer(module string) *analysis.Analyzer {
	return &analysis.Analyzer{
		Name: "rooms",
		Doc:  "reports imports and effects that a room does not allow",
		Run: func(pass *analysis.Pass) (any, error) {
			path := strings.TrimSuffix(pass.Pkg.Path(), "_test")
			if strings.HasSuffix(path, ".test") {
				return nil, nil // the main of a test, which nobody wrote
			}
			if path == module {
				pass.Reportf(pass.Files[0].Package, "no package at the root: structure goes there to die")
			}
			if here, ok := strings.CutPrefix(path, module+"/"); ok {
				visit(pass, module, here)
			}
			return nil, nil
		},
	}
}

func visit(pass *analysis.Pass, module, here string) {
	room := roomOf(here)
	if room == nil {
		pass.Reportf(pass.Files[0].Package, "%s stands in no room: add it to rooms.House", here)
		return
	}
	for _, name := range slices.Concat(pass.OtherFiles, pass.IgnoredFiles) {
		if room.Pure && !isTest(name) {
			pass.Reportf(pass.Files[0].Package, "%s is not Go for every machine", filepath.Base(name))
		}
	}
	for _, file := range pass.Files {
		if isTest(pass.Fset.File(file.Pos()).Name()) {
			continue
		}
		checkImports(pass, module, room, file)
		checkStarts(pass, room, file)
		if room.Pure {
			checkPure(pass, room, file)
		}
	}
}

// isTest reports a file that may look anywhere.
func isTest(name string) bool { return strings.HasSuffix(name, "_test.go") }

func roomOf(path string) *Room {
	for i := range House {
		if within(path, House[i].Path) {
			return &House[i]
		}
	}
	return nil
}

// within reports that path is one of the trees or in it.
func within(path string, trees ...string) bool {
	return slices.ContainsFunc(trees, func(tree string) bool {
		return path == tree || strings.HasPrefix(path, tree+"/")
	})
}

func checkImports(pass *analysis.Pass, module string, room *Room, file *ast.File) {
	for _, spec := range file.Imports {
		path, _ := strconv.Unquote(spec.Path.Value)
		ours, isOurs := strings.CutPrefix(path, module+"/")
		host, _, _ := strings.Cut(path, "/")
		switch {
		case isOurs && roomOf(ours) == nil:
			pass.Reportf(spec.Pos(), "%s stands in no room", ours)
		case isOurs && !within(ours, room.Uses...):
			pass.Reportf(spec.Pos(), "room %s may not import %s", room.Path, ours)
		case isOurs:
		case strings.Contains(host, "."):
			if !within(path, room.Borrows...) {
				pass.Reportf(spec.Pos(), "room %s may not borrow %s", room.Path, path)
			}
		case room.Pure && !takes(room, path):
			pass.Reportf(spec.Pos(), "pure room %s may not import %s", room.Path, path)
		}
	}
}

// takes reports that a pure room may take something of a standard package.
func takes(room *Room, path string) bool {
	return slices.Contains(pureStd, path) || slices.ContainsFunc(room.Std, func(name string) bool {
		return name == path || strings.HasPrefix(name, path+".")
	})
}

// checkStarts holds each go statement against who may say it.
func checkStarts(pass *analysis.Pass, room *Room, file *ast.File) {
	for _, decl := range file.Decls {
		ast.Inspect(decl, func(n ast.Node) bool {
			start, ok := n.(*ast.GoStmt)
			switch {
			case !ok || room.Starts == Anybody:
			case room.Starts == Nobody:
				pass.Reportf(start.Pos(), "no goroutine here: only adapters and cmd start one")
			case !isRunner(pass, decl):
				pass.Reportf(start.Pos(), "no goroutine here: only a type with Run(ctx) error starts one")
			}
			return true
		})
	}
}

// checkPure walks a file of a pure room.
func checkPure(pass *analysis.Pass, room *Room, file *ast.File) {
	for _, decl := range file.Decls {
		checkPackageState(pass, decl)
	}
	sorted := sortedCalls(pass, file)
	ast.Inspect(file, func(n ast.Node) bool {
		if why := impure(pass, room, n, sorted); why != "" {
			pass.Reportf(n.Pos(), "%s", why)
			_, expr := n.(ast.Expr)
			return !expr // one complaint an expression
		}
		return true
	})
}

// checkPackageState allows constants, error sentinels and blank assertions.
func checkPackageState(pass *analysis.Pass, decl ast.Decl) {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil && d.Name.Name == "init" {
			pass.Reportf(d.Pos(), "no init here: construct it where it is used")
		}
	case *ast.GenDecl:
		if d.Tok != token.VAR {
			return
		}
		for _, spec := range d.Specs {
			for _, name := range spec.(*ast.ValueSpec).Names {
				if name.Name != "_" && !isSentinel(pass, name) {
					pass.Reportf(name.Pos(), "no package state here: %s belongs in a struct", name.Name)
				}
			}
		}
	}
}
