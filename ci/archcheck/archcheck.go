// Package archcheck enforces the architecture: which package may import which, and what code may
// do in each layer.
//
// Change the code to fit the rules, or change the rules in a separate commit that gives the
// reason. A rule is removed only together with its fixture in testdata.
package archcheck

import (
	"go/ast"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/tools/go/analysis"
)

// Analyzer reports every line that breaks a rule of its layer.
func Analyzer(module string) *analysis.Analyzer {
	return &analysis.Analyzer{
		Name: "archcheck",
		Doc:  "reports imports and effects that a layer does not allow",
		Run: func(pass *analysis.Pass) (any, error) {
			path := strings.TrimSuffix(pass.Pkg.Path(), "_test")
			if strings.HasSuffix(path, ".test") {
				return nil, nil // generated main of a test
			}
			if path == module {
				pass.Reportf(pass.Files[0].Package, "no package at the root of the module")
			}
			if here, ok := strings.CutPrefix(path, module+"/"); ok {
				checkPackage(pass, module, here)
			}
			return nil, nil
		},
	}
}

func checkPackage(pass *analysis.Pass, module, here string) {
	layer := layerOf(here)
	if layer == nil {
		pass.Reportf(pass.Files[0].Package, "%s is in no layer: add it to archcheck.Layers", here)
		return
	}
	for _, name := range slices.Concat(pass.OtherFiles, pass.IgnoredFiles) {
		if layer.Pure && !isTest(name) {
			pass.Reportf(pass.Files[0].Package, "%s is not portable Go", filepath.Base(name))
		}
	}
	for _, file := range pass.Files {
		if isTest(pass.Fset.File(file.Pos()).Name()) {
			continue
		}
		checkImports(pass, module, layer, file)
		checkGoroutines(pass, layer, file)
		if layer.Pure {
			checkPure(pass, layer, file)
		}
	}
}

// isTest reports a test file, which may import anything.
func isTest(name string) bool { return strings.HasSuffix(name, "_test.go") }

func layerOf(path string) *Layer {
	for i := range Layers {
		if within(path, Layers[i].Path) {
			return &Layers[i]
		}
	}
	return nil
}

// within reports whether path is one of the trees or inside one.
func within(path string, trees ...string) bool {
	return slices.ContainsFunc(trees, func(tree string) bool {
		return path == tree || strings.HasPrefix(path, tree+"/")
	})
}

func checkImports(pass *analysis.Pass, module string, layer *Layer, file *ast.File) {
	for _, spec := range file.Imports {
		path, _ := strconv.Unquote(spec.Path.Value)
		ours, isOurs := strings.CutPrefix(path, module+"/")
		host, _, _ := strings.Cut(path, "/")
		switch {
		case isOurs && layerOf(ours) == nil:
			pass.Reportf(spec.Pos(), "%s is in no layer", ours)
		case isOurs && !within(ours, layer.Imports...):
			pass.Reportf(spec.Pos(), "layer %s may not import %s", layer.Path, ours)
		case isOurs:
		case strings.Contains(host, "."):
			if !within(path, layer.Modules...) {
				pass.Reportf(spec.Pos(), "layer %s may not import module %s", layer.Path, path)
			}
		case layer.Pure && !allowsStd(layer, path):
			pass.Reportf(spec.Pos(), "pure layer %s may not import %s", layer.Path, path)
		}
	}
}

// allowsStd reports whether a pure layer may import a standard package.
func allowsStd(layer *Layer, path string) bool {
	return slices.Contains(pureStd, path) || slices.ContainsFunc(layer.Std, func(name string) bool {
		return name == path || strings.HasPrefix(name, path+".")
	})
}

// checkGoroutines checks each go statement against the goroutine rule of the layer.
func checkGoroutines(pass *analysis.Pass, layer *Layer, file *ast.File) {
	for _, decl := range file.Decls {
		ast.Inspect(decl, func(n ast.Node) bool {
			start, ok := n.(*ast.GoStmt)
			switch {
			case !ok || layer.Goroutines == AnyFunc:
			case layer.Goroutines == NoFunc:
				pass.Reportf(start.Pos(), "no goroutine here: only adapters and cmd may start one")
			case !isRunner(pass, decl):
				pass.Reportf(start.Pos(), "no goroutine here: only a type with Run(ctx) error may start one")
			}
			return true
		})
	}
}

// checkPure checks a file of a pure layer.
func checkPure(pass *analysis.Pass, layer *Layer, file *ast.File) {
	for _, decl := range file.Decls {
		checkPackageState(pass, decl)
	}
	sorted := sortedCalls(pass, file)
	ast.Inspect(file, func(n ast.Node) bool {
		if why := impure(pass, layer, n, sorted); why != "" {
			pass.Reportf(n.Pos(), "%s", why)
			_, expr := n.(ast.Expr)
			return !expr // one report an expression
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
