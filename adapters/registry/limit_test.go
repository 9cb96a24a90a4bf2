package registry_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"macronode/adapters/config"
	"macronode/adapters/registry"
)

// ceilings are the keys of the configuration that are numbers or times, and the constants
// of the formats.
func ceilings(t *testing.T) (keys []string) {
	t.Helper()
	leaves(reflect.TypeFor[config.Config](), "", &keys)
	f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, "core/types/limits.go"), nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range f.Decls {
		if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.CONST {
			for _, spec := range g.Specs {
				for _, name := range spec.(*ast.ValueSpec).Names {
					if name.Name != "_" {
						keys = append(keys, "types."+name.Name)
					}
				}
			}
		}
	}
	return keys
}

func leaves(section reflect.Type, prefix string, to *[]string) {
	for i := range section.NumField() {
		f := section.Field(i)
		name := f.Tag.Get("key")
		switch {
		case name == "":
		case f.Tag.Get("change") == "":
			leaves(f.Type, prefix+name+".", to)
		case f.Type.Kind() != reflect.String && f.Type.Kind() != reflect.Bool:
			*to = append(*to, prefix+name)
		}
	}
}

// names are all that the files of a package declare: functions, methods and fields as
// Type.name, types, variables and constants.
func names(t *testing.T, dir, like string) map[string]bool {
	t.Helper()
	found, within := make(map[string]bool), make(map[string][]string)
	files, err := filepath.Glob(filepath.Join(root, dir, like))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				name := d.Name.Name
				if d.Recv != nil {
					name = last(d.Recv.List[0].Type) + "." + name
				}
				found[name] = true
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					declares(spec, found, within)
				}
			}
		}
	}
	for name := range maps.Clone(found) { // what is embedded has its fields where it stands
		inner, field, _ := strings.Cut(name, ".")
		for _, outer := range within[inner] {
			found[outer+"."+field] = true
		}
	}
	return found
}

func declares(spec ast.Spec, found map[string]bool, within map[string][]string) {
	switch s := spec.(type) {
	case *ast.ValueSpec:
		for _, n := range s.Names {
			found[n.Name] = true
		}
	case *ast.TypeSpec:
		found[s.Name.Name] = true
		if is, ok := s.Type.(*ast.StructType); ok {
			for _, f := range is.Fields.List {
				if inner, ok := f.Type.(*ast.Ident); ok && len(f.Names) == 0 {
					within[inner.Name] = append(within[inner.Name], s.Name.Name)
				}
				for _, n := range fieldNames(f) {
					found[s.Name.Name+"."+n] = true
				}
			}
		}
	}
}

// there reports that the source has a place: path.name, or a file of testdata that a
// test reads.
func there(t *testing.T, place string) bool {
	t.Helper()
	if strings.Contains(place, "/testdata/") {
		_, err := os.Stat(filepath.Join(root, place))
		return err == nil
	}
	slash := strings.LastIndex(place, "/")
	dir, name, ok := strings.Cut(place[slash+1:], ".")
	like := "*.go"
	if strings.HasPrefix(name, "Test") {
		like = "*_test.go"
	}
	return ok && names(t, place[:slash+1]+dir, like)[name]
}

// TestEveryLimitIsHeld: no ceiling can be set that nothing holds: each is declared, once,
// with code that is there and a test that is.
func TestEveryLimitIsHeld(t *testing.T) {
	declared := make(map[string]bool)
	for _, l := range registry.Limits {
		if declared[l.Key] {
			t.Errorf("%s is declared twice", l.Key)
		}
		declared[l.Key] = true
		if len(l.By) == 0 || l.What == "" {
			t.Errorf("%s: who holds it?", l.Key)
		}
		for _, place := range append(slices.Clone(l.By), l.Test) {
			if !there(t, place) {
				t.Errorf("%s: there is no %q", l.Key, place)
			}
		}
	}
	keys := ceilings(t)
	if len(keys) < 50 {
		t.Fatalf("only %d ceilings were seen", len(keys))
	}
	changes := settingsOfKeys(t)
	for _, key := range keys {
		if !declared[key] {
			t.Errorf("%s is not declared", key)
		}
		if !strings.HasPrefix(key, "types.") && !changes(key) {
			t.Errorf("%s changes no setting in %s", key, settingsGolden)
		}
		delete(declared, key)
	}
	for key := range declared {
		t.Errorf("%s is no ceiling", key)
	}
}

const settingsGolden = "cmd/macronode/testdata/settings/golden.txt"

// settingsOfKeys reads which keys change a setting of the core or of an adapter. A key of a list
// counts for the list. TestSettingsOfEachKey of cmd/macronode compares the file with the code.
func settingsOfKeys(t *testing.T) (changes func(key string) bool) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, settingsGolden))
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Split(string(text), "\n")
	return func(key string) bool {
		return key == "node.in_flight" || // it is only the default of permits.wallet
			slices.ContainsFunc(all, func(line string) bool {
				name, _, _ := strings.Cut(line, " ")
				list, _, _ := strings.Cut(name, "[]")
				list, _, _ = strings.Cut(list, ".*")
				return (name == key || list == key) && !strings.Contains(line, "-> no setting")
			})
	}
}

// TestPlacesAreThere: what the registry says of the source is so.
func TestPlacesAreThere(t *testing.T) {
	for _, q := range registry.Queues {
		for _, place := range q.Where {
			if !there(t, place) {
				t.Errorf("queue %s: there is no %s", q.Name, place)
			}
		}
	}
	for place, want := range map[string]bool{"core/wallet/ledger.Ledger.checkRoom": true, "core/wallet/ledger.Ledger.holds": true, "core/wallet/ledger.TestMoney": true,
		"core/wallet/ledger.Ledger.rooms": false, "core/wallet/ledger.TestMoneys": false, "core/wallet/ledger/testdata/no": false, "core/ledgers.Ledger": false, "core/wallet/ledger": false} {
		if there(t, place) != want {
			t.Errorf("%s: there is %v", place, !want)
		}
	}
}

// TestNamesAreOnce, and those that one entry uses of another are there.
func TestNamesAreOnce(t *testing.T) {
	seen := make(map[string]bool)
	once := func(kind, name string) {
		if id := kind + " " + name; name == "" || seen[id] {
			t.Errorf("%s is declared twice, or has no name", id)
		} else {
			seen[id] = true
		}
	}
	for _, l := range registry.Locks {
		for _, outer := range l.Inside { // those that it is taken in stand before it: so there is an order
			if !seen["lock "+outer] {
				t.Errorf("lock %s is taken inside %s, which does not stand before it", l.Name, outer)
			}
		}
		once("lock", l.Name)
	}
	for _, m := range registry.Metrics {
		once("metric", m.Name)
		check(t, &m)
	}
	for _, q := range registry.Queues {
		once("queue", q.Name)
		if q.What == "" || q.Unit == "" || q.Policy == "" || q.Limit == "" {
			t.Errorf("queue %s: something is not said", q.Name)
		}
		if q.Tells != "" && !seen["metric "+q.Tells] {
			t.Errorf("queue %s tells %s, which is no metric", q.Name, q.Tells)
		}
		if q.Policy == registry.Lose && q.Tells == "" {
			t.Errorf("queue %s loses, and tells nobody", q.Name)
		}
	}
}

// check wants the series of a metric to be of its labels, each once.
func check(t *testing.T, m *registry.Metric) {
	t.Helper()
	seen := make(map[string]bool)
	for _, values := range m.All("app") {
		if len(values) != len(m.Labels) || seen[fmt.Sprint(values)] {
			t.Errorf("metric %s: series %q", m.Name, values)
			continue
		}
		seen[fmt.Sprint(values)] = true
		for i, v := range values {
			if l := m.Labels[i]; !slices.Contains(l.Values, v) && (l.Values != nil || v != "app") {
				t.Errorf("metric %s: %s is no %s", m.Name, v, m.Labels[i].Name)
			}
		}
	}
	if len(seen) == 0 || (m.Type == registry.Histogram) != (m.Buckets != nil) || m.Type == registry.Gauge && !m.Sampled {
		t.Errorf("metric %s: is a %s with %d series and buckets %v", m.Name, m.Type, len(seen), m.Buckets)
	}
}
