package config

import (
	"fmt"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	keyed "github.com/knadh/koanf/maps"
	"github.com/knadh/koanf/parsers/yaml"
)

// node is a part of a JSON Schema, with the keywords that are used.
type node struct {
	Comment     string          `json:"$comment"`
	Schema      string          `json:"$schema"`
	Title       string          `json:"title"`
	Description string          `json:"description"`
	Default     any             `json:"default"`
	Type        any             `json:"type"`
	Properties  map[string]node `json:"properties"`
	Additional  any             `json:"additionalProperties"`
	Names       *node           `json:"propertyNames"`
	MostNames   *int            `json:"maxProperties"`
	Required    []string        `json:"required"`
	Items       *node           `json:"items"`
	MostItems   *int            `json:"maxItems"`
	OneOf       []node          `json:"oneOf"`
	AnyOf       []node          `json:"anyOf"`
	Enum        []string        `json:"enum"`
	Pattern     string          `json:"pattern"`
	MostLength  *int            `json:"maxLength"`
	Minimum     *float64        `json:"minimum"`
	Maximum     *float64        `json:"maximum"`
}

// failer is a *testing.T, or one of rapid's.
type failer interface {
	Helper()
	Fatal(...any)
}

func root(t failer) (n node) {
	t.Helper()
	if err := json.Unmarshal(Schema(), &n, json.RejectUnknownMembers(true)); err != nil {
		t.Fatal(err)
	}
	return n
}

// takes returns why n rejects a value.
func (n node) takes(at string, v any) error {
	for _, of := range [...]struct {
		nodes []node
		fits  func(int) bool
	}{{n.OneOf, func(k int) bool { return k == 1 }}, {n.AnyOf, func(k int) bool { return k > 0 }}} {
		fitting := 0
		for _, one := range of.nodes {
			if one.takes(at, v) == nil {
				fitting++
			}
		}
		if len(of.nodes) > 0 && !of.fits(fitting) {
			return fmt.Errorf("%s: fits %d of %d", at, fitting, len(of.nodes))
		}
	}
	switch x := v.(type) {
	case map[string]any:
		return n.takesObject(at, x)
	case []any:
		if !n.is("array") || n.MostItems != nil && len(x) > *n.MostItems {
			return fmt.Errorf("%s: a list of %d", at, len(x))
		}
		for i, one := range x {
			if err := n.Items.takes(fmt.Sprintf("%s[%d]", at, i), one); err != nil {
				return err
			}
		}
		return nil
	case string:
		ok := n.is("string") && (n.Enum == nil || slices.Contains(n.Enum, x)) && regexp.MustCompile(n.Pattern).MatchString(x) &&
			(n.MostLength == nil || utf8.RuneCountInString(x) <= *n.MostLength)
		if !ok && n.AnyOf == nil {
			return fmt.Errorf("%s: %q", at, x)
		}
		return nil
	case bool:
		if !n.is("boolean") {
			return fmt.Errorf("%s: %v", at, x)
		}
		return nil
	case nil:
		if !n.is("null") {
			return fmt.Errorf("%s: empty", at)
		}
		return nil
	}
	return n.takesNumber(at, reflect.ValueOf(v))
}

// is reports whether n has a type, or any.
func (n node) is(kind string) bool {
	kinds, several := n.Type.([]any)
	return n.Type == nil || n.Type == kind || several && slices.Contains(kinds, any(kind))
}

func (n node) takesNumber(at string, v reflect.Value) error {
	if n.AnyOf != nil {
		return nil
	}
	if !v.IsValid() || !v.CanConvert(reflect.TypeFor[float64]()) || v.CanFloat() && !n.is("number") || !n.is("integer") && !n.is("number") {
		return fmt.Errorf("%s: %v", at, v)
	}
	f := v.Convert(reflect.TypeFor[float64]()).Float()
	if n.Minimum != nil && f < *n.Minimum || n.Maximum != nil && f > *n.Maximum {
		return fmt.Errorf("%s: %v", at, v)
	}
	return nil
}

func (n node) takesObject(at string, values map[string]any) error {
	if !n.is("object") || n.MostNames != nil && len(values) > *n.MostNames {
		return fmt.Errorf("%s: an object of %d", at, len(values))
	}
	for _, name := range n.Required {
		if _, ok := values[name]; !ok {
			return fmt.Errorf("%s: no %s", at, name)
		}
	}
	if n.Type == nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		in, ok := n.Properties[name]
		if !ok {
			if n.Names == nil || n.Names.takes(at, name) != nil {
				return fmt.Errorf("%s: takes no %q", at, name)
			}
			text, err := json.Marshal(n.Additional)
			if err == nil {
				err = json.Unmarshal(text, &in)
			}
			if err != nil {
				return err
			}
		}
		if err := in.takes(at+"."+name, values[name]); err != nil {
			return err
		}
	}
	return nil
}

// accepts returns why the schema rejects a file.
func accepts(t failer, file string) error {
	t.Helper()
	values, err := yaml.Parser().Unmarshal([]byte(file))
	if err != nil {
		t.Fatal(err)
	}
	keyed.IntfaceKeysToStrings(values) // as Load does
	return root(t).takes("", values)
}

// TestSchemaRejects lists files that the schema rejects.
func TestSchemaRejects(t *testing.T) {
	good, err := os.ReadFile("testdata/front.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := accepts(t, string(good)); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{
		"lissen: {}",
		"listen: {htp: a}",
		"listen: {max_conns: 0}",
		"listen: {max_conns: 1.5}",
		"listen: {max_conns: '1'}",
		"listen: {insecure: 1}",
		"log: {level: loud}",
		"quotas: {}",
		"quotas:",
		"upstreams: {a: {url: 'http://a', health: }}",
		"quotas: [{scope: instance}]",
		"quotas: [{requests_per_second: 1}]",
		"quotas: [{scope: moon, requests_per_second: 1}]",
		"quotas: [{scope: peer, requests_per_second: 1, bytes_per_second: 1B}]",
		"quotas: [{scope: peer, requests_per_second: 0}]",
		"quotas: [{scope: peer, requests_per_second: 1, burst: 0}]",
		"quotas: [{scope: peer, requests_per_second: 1, burst: 1MB}]",
		"quotas: [{scope: peer, requests_per_second: 1, classes: [all]}]",
		"quotas: [" + strings.Repeat("{scope: peer, requests_per_second: 1},", 17) + "]",
		"upstreams: {a b: {url: 'http://a'}}",
		"upstreams: {a: {}}",
		"upstreams: {a: {url: 'ftp://a'}}",
		"upstreams: {a: {url: 'http://a', health: {pat: /}}}",
		"upstreams: []",
		"routes: [{path: v1, upstream: a}]",
		"routes: [{path: /}]",
		"routes: [{upstream: a, methods: [get]}]",
		"routes: [{upstream: a, path: /" + strings.Repeat("a", 512) + "}]",
		"http: {trusted_proxies: [10]}",
	} {
		if accepts(t, bad) == nil {
			t.Errorf("taken: %s", bad)
		}
	}
}

// TestSchemaHasEveryKey, and no other.
func TestSchemaHasEveryKey(t *testing.T) {
	var leaves []string
	var walk func(string, node)
	walk = func(path string, n node) {
		if n.Properties == nil {
			leaves = append(leaves, strings.TrimPrefix(path, "."))
			return
		}
		if n.Additional != false {
			t.Errorf("%s: takes unknown keys", path)
		}
		for _, name := range slices.Sorted(maps.Keys(n.Properties)) {
			walk(path+"."+name, n.Properties[name])
		}
	}
	walk("", root(t))
	var want []string
	for _, k := range keys(new(Config)) {
		want = append(want, k.path)
	}
	slices.Sort(want)
	slices.Sort(leaves)
	if !slices.Equal(leaves, want) {
		t.Fatalf("schema has %v, the tree %v", leaves, want)
	}
}
