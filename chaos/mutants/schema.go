package mutants

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A Schema is one overlay with many mutants. Every mutated function has a copy with the bug, and
// checks at its start which mutant is on. So each check is compiled once.
//
//	func (l *Ledger) f(a A) B { if on.Mutant == 17 { return l.f·17(a) }; … }
//	func (l *Ledger) f·17(a A) B { … broken … }
type Schema struct {
	Overlay string       // the file for -overlay
	Has     map[int]bool // the numbers of its mutants; the others change more than function bodies
}

// selector is a package, only in the overlay, with the number of the active mutant. Child
// processes inherit it.
const selector = `// Package on says which mutant is on.
package on

import (
	"flag"
	"os"
	"strconv"
)

const name = "MUTANT_OF_MACRONODE" // the node knows what begins with its name

// Mutant is its number; 0 is none.
var Mutant, _ = strconv.Atoi(os.Getenv(name))

func init() {
	flag.Func("mutant", "its number", func(n string) (err error) {
		Mutant, err = strconv.Atoi(n)
		return errors(err, os.Setenv(name, n))
	})
}

func errors(a, b error) error {
	if a != nil {
		return a
	}
	return b
}
`

const (
	selectorDir  = "chaos/on"
	selectorPath = "macronode/" + selectorDir
)

// Lay writes the overlay for all mutants, numbered from 1, over the tree at root, to dir.
func Lay(root, dir string, all []Mutant) (Schema, error) {
	s := Schema{Has: map[int]bool{}}
	files := map[string]*schemed{}
	for i, m := range all {
		number := i + 1
		mutatedFuncs, err := m.mutatedFuncs(root, files)
		if errors.Is(err, errAlone) {
			continue
		}
		if err != nil {
			return s, err
		}
		s.Has[number] = true
		for f, t := range mutatedFuncs {
			f.add(number, t)
		}
	}
	var err error
	s.Overlay, err = laid(root, dir, files)
	return s, err
}

// laid writes the overlay of files with mutated copies, over the tree at root, to dir.
func laid(root, dir string, files map[string]*schemed) (overlay string, err error) {
	text := map[string]string{filepath.Join(root, selectorDir, "on.go"): selector}
	for path, f := range files { //nolint:maporder // each file has its own path
		if len(f.broken) > 0 {
			text[filepath.Join(root, path)] = f.text()
		}
	}
	return lay(dir, text)
}

// errAlone reports a mutant that changes more than function bodies.
var errAlone = errors.New("mutants: not within a function's body")

// schemed is a file and the mutated copies of its functions.
type schemed struct {
	path   string
	raw    []byte
	set    *token.FileSet
	tree   *ast.File
	broken map[*ast.FuncDecl][]mutatedFunc
}

// A mutatedFunc is a mutated copy of a function.
type mutatedFunc struct {
	number int
	of     *ast.FuncDecl
	body   string
}

func (f *schemed) add(number int, mutatedFuncs []mutatedFunc) {
	for _, t := range mutatedFuncs {
		t.number = number
		f.broken[t.of] = append(f.broken[t.of], t)
	}
}

func load(root, path string) (*schemed, error) {
	raw, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		return nil, err
	}
	f := &schemed{path: path, raw: raw, set: token.NewFileSet(), broken: map[*ast.FuncDecl][]mutatedFunc{}}
	f.tree, err = parser.ParseFile(f.set, path, raw, parser.SkipObjectResolution)
	return f, err
}

func (f *schemed) offset(p token.Pos) int { return f.set.Position(p).Offset }

func (f *schemed) slice(from, to token.Pos) string { return string(f.raw[f.offset(from):f.offset(to)]) }

// within returns the function whose body, with its braces, has all of the bytes.
func (f *schemed) within(from, to int) *ast.FuncDecl {
	for _, d := range f.tree.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil && f.offset(fn.Body.Lbrace) < from && to <= f.offset(fn.Body.Rbrace)+1 {
			return fn
		}
	}
	return nil
}

// mutatedFuncs returns the mutated functions of m, by file.
func (m Mutant) mutatedFuncs(root string, files map[string]*schemed) (map[*schemed][]mutatedFunc, error) {
	if _, err := m.texts(root); err != nil {
		return nil, err
	}
	edits := map[*schemed]map[*ast.FuncDecl][]Edit{}
	for _, e := range m.Edits {
		f := files[e.File]
		if f == nil {
			var err error
			if f, err = load(root, e.File); err != nil {
				return nil, err
			}
			files[e.File] = f
		}
		at := bytes.Index(f.raw, []byte(e.Old))
		fn := f.within(at, at+len(e.Old))
		if fn == nil || fn.Name.Name == "init" || fn.Name.Name == "main" {
			return nil, errAlone
		}
		if edits[f] == nil {
			edits[f] = map[*ast.FuncDecl][]Edit{}
		}
		edits[f][fn] = append(edits[f][fn], e)
	}
	all := map[*schemed][]mutatedFunc{}
	for f, by := range edits {
		for fn, es := range by {
			body := f.slice(fn.Body.Lbrace, fn.Body.Rbrace+1)
			for _, e := range es {
				body = strings.Replace(body, e.Old, e.New, 1)
			}
			all[f] = append(all[f], mutatedFunc{of: fn, body: body})
		}
	}
	return all, nil
}

// text returns the file with all copies.
func (f *schemed) text() string {
	name := f.offset(f.tree.Name.End())
	changes := []change{{name, name, "; import mutantOn " + strconv.Quote(selectorPath)}}
	var tail strings.Builder
	for fn, mutatedFuncs := range f.broken {
		h := f.header(fn)
		head := h.declare(fn.Name.Name) + " {"
		for _, t := range mutatedFuncs {
			name := fmt.Sprintf("%sMutant%d", fn.Name.Name, t.number)
			head += fmt.Sprintf(" if mutantOn.Mutant == %d { %s };", t.number, h.call(name))
			fmt.Fprintf(&tail, "\n%s %s\n", h.declare(name), t.body)
		}
		changes = append(changes, change{f.offset(fn.Pos()), f.offset(fn.Body.Lbrace) + 1, head})
	}
	slices.SortFunc(changes, func(a, b change) int { return a.from - b.from })
	var out strings.Builder
	last := 0
	for _, c := range changes {
		out.Write(f.raw[last:c.from])
		out.WriteString(c.text)
		last = c.to
	}
	out.Write(f.raw[last:])
	return out.String() + tail.String()
}

// A change replaces a range of bytes.
type change struct {
	from, to int
	text     string
}

// A header is a function's header, with a name for every parameter.
type header struct {
	recv, recvName string
	types, typed   string // its type parameters, with and without constraints
	params, args   string
	out            string
	results        bool
}

func (h header) declare(name string) string {
	return strings.TrimRight(fmt.Sprintf("func %s%s%s(%s) %s", h.recv, name, h.types, h.params, h.out), " ")
}

func (h header) call(name string) string {
	if h.recvName != "" {
		name = h.recvName + "." + name
	}
	call := fmt.Sprintf("%s%s(%s)", name, h.typed, h.args)
	if h.results {
		return "return " + call
	}
	return call + "; return"
}

func (f *schemed) header(fn *ast.FuncDecl) header {
	var h header
	if fn.Recv != nil {
		r := fn.Recv.List[0]
		h.recvName = "mutantOf"
		if len(r.Names) > 0 && r.Names[0].Name != "_" {
			h.recvName = r.Names[0].Name
		}
		h.recv = fmt.Sprintf("(%s %s) ", h.recvName, f.slice(r.Type.Pos(), r.Type.End()))
	}
	if tp := fn.Type.TypeParams; tp != nil {
		h.types = f.slice(tp.Pos(), tp.End())
		var names []string
		for _, p := range tp.List {
			for _, n := range p.Names {
				names = append(names, n.Name)
			}
		}
		h.typed = "[" + strings.Join(names, ", ") + "]"
	}
	var params, args []string
	for _, p := range fn.Type.Params.List {
		kind := f.slice(p.Type.Pos(), p.Type.End())
		for _, name := range named(p.Names) {
			if name == "_" {
				name = fmt.Sprintf("mutantArg%d", len(params))
			}
			params = append(params, name+" "+kind)
			if strings.HasPrefix(kind, "...") {
				name += "..."
			}
			args = append(args, name)
		}
	}
	h.params, h.args = strings.Join(params, ", "), strings.Join(args, ", ")
	if r := fn.Type.Results; r != nil {
		h.out, h.results = f.slice(r.Pos(), r.End()), true
	}
	return h
}

// named returns the names of a parameter, at least one.
func named(names []*ast.Ident) (all []string) {
	for _, n := range names {
		all = append(all, n.Name)
	}
	if len(all) == 0 {
		all = []string{"_"}
	}
	return all
}
