package archcheck

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
)

// impure returns why a pure layer may not contain n, or "". It resolves types, so an alias
// does not hide a package.
func impure(pass *analysis.Pass, layer *Layer, n ast.Node, sorted map[*ast.Ident]bool) string {
	const channel = "no channel here: return an effect instead"
	switch n := n.(type) {
	case *ast.SelectStmt, *ast.SendStmt, *ast.ChanType:
		return channel
	case *ast.RangeStmt:
		switch pass.TypesInfo.TypeOf(n.X).Underlying().(type) {
		case *types.Map:
			return "map order is random: range over slices.Sorted(maps.Keys(m))"
		case *types.Chan:
			return channel
		}
	case *ast.UnaryExpr:
		if n.Op == token.ARROW {
			return channel
		}
	case *ast.Ident:
		if !sorted[n] {
			return impureName(layer, pass.TypesInfo.Uses[n])
		}
	}
	if expr, ok := n.(ast.Expr); ok && isFloat(pass.TypesInfo.Types[expr]) {
		return "no float here: machines round differently"
	}
	return ""
}

// impureName says why a pure layer may not name obj, or "".
func impureName(layer *Layer, obj types.Object) string {
	if obj == nil {
		return ""
	}
	name := fullName(obj)
	switch path := pathOf(obj); {
	case slices.Contains(layer.Std, name):
	case name == "print", name == "println", path == "fmt" && strings.HasPrefix(obj.Name(), "Print"):
		return "no output here: return the value"
	case path == "fmt" && strings.HasPrefix(obj.Name(), "Scan"):
		return "no input here: pass it as an argument"
	case path == "maps" && slices.Contains([]string{"All", "Keys", "Values"}, obj.Name()):
		return "map order is random: sort it at once, by slices.Sorted"
	case path == "time" && !isDuration(obj):
		return fmt.Sprintf("no clock here: use the argument now instead of %s", name)
	case path == "unsafe" && !isPackage(obj):
		return fmt.Sprintf("layer %s may not use %s", layer.Path, name)
	case name == "float32", name == "float64", name == "complex64", name == "complex128":
		return "no float here: machines round differently"
	}
	return ""
}

func pathOf(obj types.Object) string {
	if obj.Pkg() == nil {
		return ""
	}
	return obj.Pkg().Path()
}

// fullName returns the qualified name: "time.UnixMilli", "(time.Time).UTC", or "print".
func fullName(obj types.Object) string {
	if f, ok := obj.(*types.Func); ok {
		return f.FullName()
	}
	if path := pathOf(obj); path != "" {
		return path + "." + obj.Name()
	}
	return obj.Name()
}

func isPackage(obj types.Object) bool { _, ok := obj.(*types.PkgName); return ok }

// isDuration reports whether obj, of package time, is Duration, one of its methods, or a unit.
func isDuration(obj types.Object) bool {
	switch obj := obj.(type) {
	case *types.PkgName, *types.Const:
		return true
	case *types.TypeName:
		return obj.Name() == "Duration"
	case *types.Func:
		return strings.HasPrefix(obj.FullName(), "(time.Duration).")
	}
	return false
}

// isFloat reports whether a value is a float computed at run time, which may round differently per machine.
func isFloat(tv types.TypeAndValue) bool {
	if !tv.IsValue() || tv.Value != nil {
		return false
	}
	basic, ok := tv.Type.Underlying().(*types.Basic)
	return ok && basic.Info()&(types.IsFloat|types.IsComplex) != 0
}

// isSentinel reports whether name is an error variable named Err….
func isSentinel(pass *analysis.Pass, name *ast.Ident) bool {
	errors := types.Universe.Lookup("error").Type()
	return strings.HasPrefix(name.Name, "Err") && types.Identical(pass.TypesInfo.Defs[name].Type(), errors)
}

// sortedCalls returns the functions f called in slices.Sorted(f(…)) and its variants.
func sortedCalls(pass *analysis.Pass, file *ast.File) map[*ast.Ident]bool {
	found := map[*ast.Ident]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) == 0 {
			return true
		}
		by := named(call.Fun)
		if by == nil || pass.TypesInfo.Uses[by] == nil || !strings.HasPrefix(fullName(pass.TypesInfo.Uses[by]), "slices.Sorted") {
			return true
		}
		if what, ok := call.Args[0].(*ast.CallExpr); ok {
			found[named(what.Fun)] = true
		}
		return true
	})
	return found
}

// named returns the last identifier of a called expression.
func named(fun ast.Expr) *ast.Ident {
	switch fun := fun.(type) {
	case *ast.Ident:
		return fun
	case *ast.SelectorExpr:
		return fun.Sel
	}
	return nil
}

// isRunner reports whether decl is a method of a type with Run(context.Context) error.
func isRunner(pass *analysis.Pass, decl ast.Decl) bool {
	fun, ok := decl.(*ast.FuncDecl)
	if !ok || fun.Recv == nil {
		return false
	}
	owner := pass.TypesInfo.Defs[fun.Name].(*types.Func).Signature().Recv().Type()
	run, _, _ := types.LookupFieldOrMethod(owner, true, pass.Pkg, "Run")
	method, ok := run.(*types.Func)
	return ok && listed(method.Signature().Params()) == "context.Context" && listed(method.Signature().Results()) == "error"
}

// listed returns the types of a parameter list, without names.
func listed(vars *types.Tuple) string {
	var list []string
	for v := range vars.Variables() {
		list = append(list, types.TypeString(v.Type(), nil))
	}
	return strings.Join(list, ", ")
}
