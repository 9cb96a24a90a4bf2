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

// ceilings returns the configuration keys that are numbers or durations, and the constants of the
// formats.
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

// names returns everything that the matching files of a package declare: functions, types, variables
// and constants by name, methods and fields as Type.name.
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
	for name := range maps.Clone(found) { // the fields of an embedded type are also fields of the outer type
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

// there reports whether a place exists in the source: path.name, or a file of testdata.
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

// TestLimitsAreDeclaredOnce checks that each limit is declared exactly once, and that its code and its
// test exist.
func TestLimitsAreDeclaredOnce(t *testing.T) {
	declared := make(map[string]bool)
	for _, l := range registry.Limits {
		if declared[l.Key] {
			t.Errorf("%s is declared twice", l.Key)
		}
		declared[l.Key] = true
		if len(l.By) == 0 || l.What == "" {
			t.Errorf("%s: no description, or no code that enforces it", l.Key)
		}
		for _, place := range append(slices.Clone(l.By), l.Test) {
			if !there(t, place) {
				t.Errorf("%s: the source has no %q", l.Key, place)
			}
		}
	}
	keys := ceilings(t)
	if len(keys) < 50 {
		t.Fatalf("found only %d limits, want at least 50", len(keys))
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
		if (strings.HasPrefix(key, "adapters/") || strings.HasPrefix(key, "core/")) && there(t, key) {
			continue
		}
		t.Errorf("%s is declared but is no limit of the configuration, a format or an adapter", key)
	}
}

const settingsGolden = "cmd/macronode/internal/settings/testdata/golden.txt"

// settingsOfKeys reads which keys change a setting of the core or of an adapter. A key of an entry
// of a list counts for the list. TestSettingsOfEachKey of cmd/macronode/internal/settings compares the file with the code.
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

// TestPlacesAreThere checks that the places of all queues exist in the source.
func TestPlacesAreThere(t *testing.T) {
	for _, q := range registry.Queues {
		for _, place := range q.Where {
			if !there(t, place) {
				t.Errorf("queue %s: the source has no %s", q.Name, place)
			}
		}
	}
	for place, want := range map[string]bool{"core/wallet/ledger.Ledger.checkRoom": true, "core/wallet/ledger.Ledger.holds": true, "core/wallet/ledger.TestIssueTransferBurn": true,
		"core/wallet/ledger.Ledger.rooms": false, "core/wallet/ledger.TestMoneys": false, "core/wallet/ledger/testdata/no": false, "core/ledgers.Ledger": false, "core/wallet/ledger": false} {
		if there(t, place) != want {
			t.Errorf("%s: exists is %v, want %v", place, !want, want)
		}
	}
}

// TestNamesAreOnce checks that names are unique, and that each name that an entry refers to exists.
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
		for _, outer := range l.Inside { // outer locks are declared first, which defines an order
			if !seen["lock "+outer] {
				t.Errorf("lock %s is taken inside %s, which is not declared before it", l.Name, outer)
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
			t.Errorf("queue %s: description, unit, policy or limit is missing", q.Name)
		}
		if q.Tells != "" && !seen["metric "+q.Tells] {
			t.Errorf("queue %s is counted by %s, which is no metric", q.Name, q.Tells)
		}
		if q.Policy == registry.Lose && q.Tells == "" {
			t.Errorf("queue %s drops items and no metric counts them", q.Name)
		}
	}
}

// check requires that each series of a metric is unique and uses declared label values.
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
				t.Errorf("metric %s: %s is no value of label %s", m.Name, v, m.Labels[i].Name)
			}
		}
	}
	if len(seen) == 0 || (m.Type == registry.Histogram) != (m.Buckets != nil) || m.Type == registry.Gauge && !m.Sampled {
		t.Errorf("metric %s: a %s has %d series and buckets %v", m.Name, m.Type, len(seen), m.Buckets)
	}
}
