package mutants

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// An OperatorMutant is a mutant that a mutation operator makes at one place of the code.
type OperatorMutant struct {
	Number      int // its number in its overlay, from 1
	Package     string
	Name        string // file, function, and the line with the replaced part; without a line number, which would change
	mutatedFunc mutatedFunc
	in          *schemed
}

// OperatorMutants returns all mutants of the operators for a package that compile, and writes their overlay
// to dir.
func OperatorMutants(root, dir, pkg string) (all []OperatorMutant, overlay string, err error) {
	if all, err = mutantsOf(root, pkg); err != nil {
		return nil, "", err
	}
	return compiled(root, dir, pkg, all)
}

// numbered numbers mutants, and writes their overlay.
func numbered(root, dir string, all []OperatorMutant) (overlay string, err error) {
	files := map[string]*schemed{}
	for i := range all {
		s := &all[i]
		s.Number = i + 1
		s.in.add(s.Number, []mutatedFunc{s.mutatedFunc})
		files[s.in.path] = s.in
	}
	defer func() {
		for _, f := range files { //nolint:maporder // each file is emptied
			clear(f.broken)
		}
	}()
	return laid(root, dir, files)
}

// mutantsOf returns all mutants of a package, including those that do not compile.
func mutantsOf(root, pkg string) (all []OperatorMutant, err error) {
	names, err := filepath.Glob(filepath.Join(root, pkg, "*.go"))
	if err != nil {
		return nil, err
	}
	again := map[string]int{}
	for _, name := range names {
		path, err := filepath.Rel(root, name)
		if err != nil {
			return nil, err
		}
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := load(root, path)
		if err != nil {
			return nil, err
		}
		for _, d := range f.tree.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Body == nil || fn.Name.Name == "init" || fn.Name.Name == "main" {
				continue
			}
			start := f.offset(fn.Body.Lbrace)
			body := f.raw[start : f.offset(fn.Body.Rbrace)+1]
			ast.Walk(collector{f, func(from, to token.Pos, now string) {
				a, b := f.offset(from), f.offset(to)
				name := fmt.Sprintf("%s %s: %s", path, f.named(fn), f.marked(a, b, now))
				if again[name]++; again[name] > 1 {
					name += fmt.Sprintf(" (%d)", again[name])
				}
				all = append(all, OperatorMutant{Package: pkg, Name: name, in: f,
					mutatedFunc: mutatedFunc{of: fn, body: string(body[:a-start]) + now + string(body[b-start:])}})
			}}, fn.Body)
		}
	}
	return all, nil
}

// swaps are operators that are replaced by each other.
var swaps = map[token.Token]string{
	token.LSS: "<=", token.LEQ: "<", token.GTR: ">=", token.GEQ: ">", token.EQL: "!=", token.NEQ: "==",
	token.ADD: "-", token.SUB: "+", token.MUL: "/", token.QUO: "*", token.REM: "*",
	token.SHL: ">>", token.SHR: "<<", token.AND: "|", token.OR: "&", token.XOR: "&", token.AND_NOT: "&",
	token.ADD_ASSIGN: "-=", token.SUB_ASSIGN: "+=", token.MUL_ASSIGN: "/=", token.OR_ASSIGN: "&=", token.AND_ASSIGN: "|=", token.XOR_ASSIGN: "|=",
	token.INC: "--", token.DEC: "++",
}

// twisted are names that are replaced by each other.
var twisted = map[string]string{"min": "max", "max": "min", "true": "false", "false": "true"}

// A collector collects the mutants of a function.
type collector struct {
	f    *schemed
	made func(from, to token.Pos, now string)
}

// Visit applies the mutation operators to a node.
func (s collector) Visit(n ast.Node) ast.Visitor {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		if now, ok := swaps[n.Op]; ok {
			s.made(n.OpPos, n.OpPos+token.Pos(len(n.Op.String())), now)
		}
		if n.Op == token.LAND || n.Op == token.LOR { // one operand dropped
			s.made(n.Pos(), n.Y.Pos(), "")
			s.made(n.X.End(), n.End(), "")
		}
	case *ast.IfStmt: // a rule dropped
		s.made(n.Cond.Pos(), n.Cond.End(), "false && ("+s.f.slice(n.Cond.Pos(), n.Cond.End())+")")
	case *ast.UnaryExpr:
		if n.Op == token.NOT {
			s.made(n.Pos(), n.X.Pos(), "")
		}
	case *ast.AssignStmt:
		if now, ok := swaps[n.Tok]; ok {
			s.made(n.TokPos, n.TokPos+token.Pos(len(n.Tok.String())), now)
		}
	case *ast.IncDecStmt:
		s.made(n.TokPos, n.End(), swaps[n.Tok])
	case *ast.CallExpr:
		if s.asserts(n) {
			return nil
		}
		if name, ok := n.Fun.(*ast.Ident); ok && twisted[name.Name] != "" {
			s.made(name.Pos(), name.End(), twisted[name.Name])
		}
	case *ast.ReturnStmt:
		for _, r := range n.Results {
			if name, ok := r.(*ast.Ident); ok && twisted[name.Name] != "" {
				s.made(name.Pos(), name.End(), twisted[name.Name])
			}
		}
	case *ast.BlockStmt:
		s.without(n.List)
	case *ast.CaseClause:
		s.without(n.Body)
	}
	return s
}

// asserts reports a call without an effect in correct code.
func (s collector) asserts(call *ast.CallExpr) bool {
	switch s.f.slice(call.Fun.Pos(), call.Fun.End()) {
	case "panic", "types.Assert", "Assert":
		return true
	}
	return false
}

// without drops each statement.
func (s collector) without(list []ast.Stmt) {
	for _, n := range list {
		switch n := n.(type) {
		case *ast.AssignStmt:
			if n.Tok == token.DEFINE {
				continue
			}
		case *ast.ExprStmt:
			if call, ok := n.X.(*ast.CallExpr); ok && s.asserts(call) {
				continue
			}
		case *ast.BranchStmt:
			if n.Tok == token.FALLTHROUGH || n.Tok == token.GOTO {
				continue
			}
		case *ast.IncDecStmt, *ast.DeferStmt:
		default:
			continue
		}
		s.made(n.Pos(), n.End(), "{}")
	}
}

// marked returns the lines of some bytes, with their replacement.
func (f *schemed) marked(from, to int, now string) string {
	first := bytes.LastIndexByte(f.raw[:from], '\n') + 1
	last := to + bytes.IndexByte(f.raw[to:], '\n')
	old := string(f.raw[from:to])
	if now == "false && ("+old+")" {
		now = "false"
	}
	line := fmt.Sprintf("%s[%s -> %s]%s", f.raw[first:from], old, now, f.raw[to:last])
	return strings.Join(strings.Fields(line), " ")
}

// named returns a function's name with its receiver's type.
func (f *schemed) named(fn *ast.FuncDecl) string {
	if fn.Recv == nil {
		return fn.Name.Name
	}
	kind, _, _ := strings.Cut(strings.TrimPrefix(f.slice(fn.Recv.List[0].Type.Pos(), fn.Recv.List[0].Type.End()), "*"), "[")
	return kind + "." + fn.Name.Name
}

// compiled returns the mutants of a package that compile, and their overlay.
func compiled(root, dir, pkg string, all []OperatorMutant) ([]OperatorMutant, string, error) {
	for {
		overlay, err := numbered(root, dir, all)
		if err != nil {
			return nil, "", err
		}
		cmd := exec.Command("go", "build", "-gcflags=-e", "-overlay", overlay, pkg)
		cmd.Dir = root
		out, err := cmd.CombinedOutput()
		if err == nil {
			return all, overlay, nil
		}
		bad, e := refused(root, string(out))
		if e != nil || len(bad) == 0 {
			return nil, "", fmt.Errorf("compile %s: %w\n%s", pkg, errors.Join(err, e), out)
		}
		all = slices.DeleteFunc(all, func(s OperatorMutant) bool { return bad[s.Number] })
	}
}

var (
	output = regexp.MustCompile(`(?m)^(\S+\.go):(\d+):\d+: `)
	begun  = regexp.MustCompile(`^func .*Mutant(\d+)[\[(]`)
)

// refused returns the numbers of the mutants with compiler errors. The compiler may name files relative to root.
func refused(root, out string) (map[int]bool, error) {
	bad := map[int]bool{}
	for _, m := range output.FindAllStringSubmatch(out, -1) {
		path := m[1]
		if !filepath.IsAbs(path) {
			path = filepath.Join(root, path)
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		lines := strings.Split(string(raw), "\n")
		line, _ := strconv.Atoi(m[2])
		for _, text := range slices.Backward(lines[:line]) { // from the error up to the start of its copy
			if b := begun.FindStringSubmatch(text); b != nil {
				n, _ := strconv.Atoi(b[1])
				bad[n] = true
				break
			}
		}
	}
	return bad, nil
}
