package registry_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"macronode/adapters/registry"
)

// A kind is a kind of object that must be declared.
type kind string

const (
	channel kind = "a buffered channel"
	lock    kind = "a lock"
	pool    kind = "a pool"
	timer   kind = "a timer"
)

// A sight is one such object and its place.
type sight struct {
	kind  kind
	where string
	pos   token.Position
}

// A source is one parsed package. It is not type-checked, so it does not have to compile.
type source struct {
	path   string
	set    *token.FileSet
	fields map[string][]string // the structs that have a field of this name
	chans  map[string]bool     // named types that are channels
	seen   []sight
}

// read parses the given files of a package.
func read(path string, files map[string]any) (*source, error) {
	s := &source{path: path, set: token.NewFileSet(), fields: make(map[string][]string), chans: make(map[string]bool)}
	var all []*ast.File
	for _, name := range sorted(files) {
		f, err := parser.ParseFile(s.set, name, files[name], parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		all = append(all, f)
	}
	for _, f := range all {
		s.types(f)
	}
	for _, f := range all {
		s.file(f)
	}
	return s, nil
}

func sorted[V any](m map[string]V) []string {
	var names []string
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (s *source) saw(k kind, at ast.Node, name ...string) {
	s.seen = append(s.seen, sight{k, strings.Join(append([]string{s.path}, name...), "."), s.set.Position(at.Pos())})
}

// types records the structs with their fields, and the named channel types.
func (s *source) types(f *ast.File) {
	ast.Inspect(f, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok {
			return true
		}
		if _, ok := spec.Type.(*ast.ChanType); ok {
			s.chans[spec.Name.Name] = true
		}
		if is, ok := spec.Type.(*ast.StructType); ok {
			for _, field := range is.Fields.List {
				for _, name := range fieldNames(field) {
					s.fields[name] = append(s.fields[name], spec.Name.Name)
				}
			}
		}
		return true
	})
}

func fieldNames(f *ast.Field) (names []string) {
	for _, n := range f.Names {
		names = append(names, n.Name)
	}
	if len(names) == 0 { // an embedded field has the name of its type
		names = append(names, last(f.Type))
	}
	return names
}

// last returns the last name of a type or an expression.
func last(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	case *ast.StarExpr:
		return last(e.X)
	case *ast.IndexExpr:
		return last(e.X)
	case *ast.ArrayType:
		return last(e.Elt)
	}
	return ""
}

// file records the objects of one file.
func (s *source) file(f *ast.File) {
	used := imports(f)
	for _, decl := range f.Decls {
		var owner []string
		if d, ok := decl.(*ast.FuncDecl); ok {
			if owner = []string{d.Name.Name}; d.Recv != nil {
				owner = []string{last(d.Recv.List[0].Type), d.Name.Name}
			}
		}
		w := walk{source: s, imports: used, owner: owner, to: make(map[ast.Expr]string), vars: make(map[string]string)}
		if d, ok := decl.(*ast.FuncDecl); ok {
			w.params(d)
		}
		ast.Inspect(decl, w.visit)
	}
}

func imports(f *ast.File) map[string]string {
	used := make(map[string]string)
	for _, i := range f.Imports {
		path, _ := strconv.Unquote(i.Path.Value)
		name := path[strings.LastIndex(path, "/")+1:]
		if i.Name != nil {
			name = i.Name.Name
		}
		used[name] = path
	}
	return used
}

// A walk visits one declaration. to maps an expression to the variable or field that it is assigned
// to. vars maps a variable to its struct type, if the syntax shows it.
type walk struct {
	*source
	imports map[string]string
	owner   []string
	of      string // the struct whose fields are visited
	to      map[ast.Expr]string
	vars    map[string]string
}

func (w *walk) params(d *ast.FuncDecl) {
	lists := []*ast.FieldList{d.Type.Params}
	if d.Recv != nil {
		lists = append(lists, d.Recv)
	}
	for _, l := range lists {
		for _, f := range l.List {
			for _, n := range f.Names {
				w.vars[n.Name] = last(f.Type)
			}
		}
	}
}

// made returns the struct type of a composite literal.
func made(e ast.Expr) string {
	if u, ok := e.(*ast.UnaryExpr); ok {
		e = u.X
	}
	if lit, ok := e.(*ast.CompositeLit); ok {
		return last(lit.Type)
	}
	return ""
}

// The standard library: calls that create an object, and types that are one.
var (
	calls = map[string]kind{"time.NewTimer": timer, "time.NewTicker": timer, "time.AfterFunc": timer, "time.After": timer,
		"time.Tick": timer, "context.WithTimeout": timer, "context.WithDeadline": timer, "context.WithTimeoutCause": timer, "context.WithDeadlineCause": timer}
	named = map[string]kind{"sync.Mutex": lock, "sync.RWMutex": lock, "sync.Cond": lock, "sync.Map": lock, "sync.Pool": pool}
)

// std returns the full name of an imported identifier, or the empty string.
func (w *walk) std(e ast.Expr) string {
	if s, ok := e.(*ast.SelectorExpr); ok {
		if x, ok := s.X.(*ast.Ident); ok && w.imports[x.Name] != "" {
			return w.imports[x.Name] + "." + s.Sel.Name
		}
	}
	return ""
}

func (w *walk) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.TypeSpec:
		w.of = n.Name.Name
	case *ast.StructType:
		for _, f := range n.Fields.List {
			if k, ok := named[w.std(bare(f.Type))]; ok {
				for _, name := range fieldNames(f) {
					w.saw(k, f, w.of, name)
				}
			}
		}
	case *ast.ValueSpec:
		w.values(n)
	case *ast.AssignStmt:
		for i, v := range n.Rhs {
			if len(n.Lhs) > i {
				w.to[v] = w.place(n.Lhs[i])
				if of := made(v); of != "" {
					w.vars[last(n.Lhs[i])] = of
				}
			}
		}
	case *ast.CompositeLit:
		for i, e := range n.Elts {
			if kv, ok := e.(*ast.KeyValueExpr); ok {
				w.to[kv.Value] = last(n.Type) + "." + last(kv.Key)
			} else if field := w.positional(last(n.Type), i); field != "" {
				w.to[e] = last(n.Type) + "." + field
			}
		}
	case *ast.CallExpr:
		w.call(n)
	}
	return true
}

// bare returns the element type of pointers and arrays.
func bare(e ast.Expr) ast.Expr {
	switch e := e.(type) {
	case *ast.StarExpr:
		return bare(e.X)
	case *ast.ArrayType:
		return bare(e.Elt)
	}
	return e
}

// positional returns the field that a positional value is assigned to. It supports only structs
// with one field.
func (w *walk) positional(name string, i int) string {
	for field, owners := range w.fields {
		if i == 0 && slices.Contains(owners, name) && w.alone(name) {
			return field
		}
	}
	return ""
}

func (w *walk) alone(name string) bool {
	n := 0
	for _, owners := range w.fields {
		if slices.Contains(owners, name) {
			n++
		}
	}
	return n == 1
}

// values records locks and pools that are variables, and the variables that other values are assigned to.
func (w *walk) values(n *ast.ValueSpec) {
	for i, v := range n.Values {
		w.to[v] = n.Names[min(i, len(n.Names)-1)].Name
		if lit, ok := v.(*ast.CompositeLit); ok && n.Type == nil {
			if k, ok := named[w.std(lit.Type)]; ok {
				w.saw(k, v, append(w.owner[:len(w.owner):len(w.owner)], w.to[v])...)
			}
		}
	}
	if k, ok := named[w.std(n.Type)]; ok && n.Type != nil {
		for _, name := range n.Names {
			w.saw(k, name, append(w.owner[:len(w.owner):len(w.owner)], name.Name)...)
		}
	}
}

// place returns the name that a value is assigned to. A field is returned as Type.field if its struct
// is known, or if only one struct has a field of this name.
func (w *walk) place(to ast.Expr) string {
	if i, ok := to.(*ast.IndexExpr); ok {
		to = i.X
	}
	name := last(to)
	if s, ok := to.(*ast.SelectorExpr); ok {
		owners := w.fields[name]
		if of := w.vars[last(s.X)]; slices.Contains(owners, of) {
			return of + "." + name
		}
		if len(owners) == 1 {
			return owners[0] + "." + name
		}
	}
	return name
}

func (w *walk) call(n *ast.CallExpr) {
	k, ok := calls[w.std(n.Fun)]
	if !ok {
		if fun, isIdent := n.Fun.(*ast.Ident); !isIdent || fun.Name != "make" || len(n.Args) < 2 || !w.isChan(n.Args[0]) {
			return
		}
		k = channel
	}
	to := w.to[n]
	if strings.Contains(to, ".") {
		w.saw(k, n, to)
		return
	}
	name := append(w.owner[:len(w.owner):len(w.owner)], to)
	if to == "" {
		name = w.owner
	}
	w.saw(k, n, name...)
}

func (w *walk) isChan(e ast.Expr) bool {
	if _, ok := e.(*ast.ChanType); ok {
		return true
	}
	i, ok := e.(*ast.Ident)
	return ok && w.chans[i.Name]
}

const root = "../.."

// seen returns all objects of adapters and cmd/macronode.
func seen(t *testing.T) (all []sight) {
	t.Helper()
	packages := make(map[string]map[string]any)
	for _, tree := range []string{"adapters", "cmd/macronode"} {
		err := filepath.WalkDir(filepath.Join(root, tree), func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && slices.Contains([]string{"testdata", "testkit", "natstest", "kafkatest"}, d.Name()): // the program links none of them
				return fs.SkipDir
			case d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go"):
				return nil
			}
			dir, err := filepath.Rel(root, filepath.Dir(path))
			if packages[filepath.ToSlash(dir)] == nil {
				packages[filepath.ToSlash(dir)] = make(map[string]any)
			}
			packages[filepath.ToSlash(dir)][path] = nil
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range sorted(packages) {
		s, err := read(path, packages[path])
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, s.seen...)
	}
	return all
}

// claims counts the declarations of the registry by kind and place.
func claims() map[kind]map[string]int {
	c := map[kind]map[string]int{channel: {}, lock: {}, pool: {}, timer: {}}
	queues := make(map[string]bool) // one channel can be several queues
	for _, q := range registry.Queues {
		queues[q.Where[0]] = true
	}
	for where := range queues {
		c[channel][where]++
	}
	for _, w := range registry.Wires {
		c[channel][w.Where]++
	}
	for _, p := range registry.Pools {
		c[pool][p.Where]++
	}
	for _, l := range registry.Locks {
		c[lock][l.Where]++
	}
	for _, i := range registry.Timers {
		c[timer][i.Where]++
	}
	return c
}

// differences returns one message for each difference between the source and the declarations. A
// declared queue may be missing from the source, because a queue can be a slice instead of a channel.
func differences(all []sight, declared map[kind]map[string]int) (wrong []string) {
	there := make(map[kind]map[string]bool)
	for _, s := range all {
		if there[s.kind] == nil {
			there[s.kind] = make(map[string]bool)
		}
		there[s.kind][s.where] = true
		if declared[s.kind][s.where] == 0 {
			wrong = append(wrong, fmt.Sprintf("%s: %s, %s, is not declared", s.pos, s.kind, s.where))
		}
	}
	for _, k := range []kind{channel, lock, pool, timer} {
		for _, where := range sorted(declared[k]) {
			if declared[k][where] > 1 {
				wrong = append(wrong, fmt.Sprintf("%s: %s is declared twice", where, k))
			}
			if !there[k][where] && !(k == channel && isQueue(where)) {
				wrong = append(wrong, fmt.Sprintf("%s: %s is declared but does not exist", where, k))
			}
		}
	}
	return wrong
}

func isQueue(where string) bool {
	return slices.ContainsFunc(registry.Queues, func(q registry.Queue) bool { return q.Where[0] == where })
}

// TestSourceIsDeclared checks that each channel, lock, pool and timer of the source is declared,
// and that each declared one exists.
func TestSourceIsDeclared(t *testing.T) {
	all := seen(t)
	if len(all) < 40 {
		t.Fatalf("found only %d places, want at least 40: is the root directory wrong?", len(all))
	}
	for _, why := range differences(all, claims()) {
		t.Error(why)
	}
}

// TestScanFindsDeclarations checks that the scan finds every supported form of declaration.
func TestScanFindsDeclarations(t *testing.T) {
	s, err := read("p", map[string]any{"p.go": `package p
import ("context"; "sync"; tm "time")
var loose sync.Mutex
var kept = sync.Pool{}
type door chan int
type one struct { only chan int }
type room struct {
	mu sync.Mutex
	sync.RWMutex
	many []sync.Mutex
	rings [2]chan int
	late chan int
	inner struct{ deep sync.Mutex }
}
type other struct { late chan int }
func New() *room {
	r := &room{late: make(chan int, 3)}
	r.rings[0], r.late = make(chan int, 4), make(chan int, 4)
	r.what().late = make(chan int, 4)
	a, b := make(chan int), make(chan int, 5)
	_ = one{make(chan int, 6)}
	use(make(door, 7), a, b)
	return r
}
func (r *room) Run(ctx context.Context) {
	t := tm.NewTimer(1)
	ctx, stop := context.WithTimeout(ctx, 1)
	<-tm.After(1)
	var mine sync.Mutex
}
`})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range s.seen {
		got = append(got, string(s.kind)+" "+s.where)
	}
	slices.Sort(got)
	want := []string{
		"a buffered channel p.New", "a buffered channel p.New.b", "a buffered channel p.New.late", "a buffered channel p.one.only",
		"a buffered channel p.room.late", "a buffered channel p.room.late", "a buffered channel p.room.rings",
		"a lock p.loose", "a lock p.room.Run.mine", "a lock p.room.RWMutex", "a lock p.room.deep", "a lock p.room.many", "a lock p.room.mu",
		"a pool p.kept",
		"a timer p.room.Run", "a timer p.room.Run.ctx", "a timer p.room.Run.t",
	}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Fatalf("the scan found\n%s", strings.Join(got, "\n"))
	}
}

// TestScanReportsDifferences checks that differences are reported in both directions.
func TestScanReportsDifferences(t *testing.T) {
	wrong := differences([]sight{{lock, "p.new.mu", token.Position{}}},
		map[kind]map[string]int{lock: {"p.old.mu": 1}, timer: {"p.twice.t": 2}})
	if len(wrong) != 4 {
		t.Fatalf("%q", wrong)
	}
}
