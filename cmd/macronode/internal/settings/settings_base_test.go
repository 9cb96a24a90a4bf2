package settings

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/knadh/koanf/parsers/yaml"

	"macronode/adapters/config"
)

func jsonText(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func baseValues(t *testing.T) map[string]any {
	t.Helper()
	text, err := os.ReadFile(settingsBase)
	if err != nil {
		t.Fatal(err)
	}
	values, err := yaml.Parser().Unmarshal(text)
	if err != nil {
		t.Fatal(err)
	}
	return values
}

// baseConfig loads the base with one change; the zero keyChange is none.
func baseConfig(t *testing.T, k keyChange) *config.Config {
	t.Helper()
	values := baseValues(t)
	if k.key != "" {
		setAt(t, values, k.path(), k.value)
	}
	file := filepath.Join(t.TempDir(), "macronode.yaml") // JSON is YAML
	if err := os.WriteFile(file, []byte(jsonText(t, values)), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(config.Sources{File: file})
	if err != nil {
		t.Fatalf("%s: %v", k.key, err)
	}
	return c
}

var pathStep = regexp.MustCompile(`^\.?([a-z_][a-z_0-9]*)|^\[(\d+)\]`)

// steps splits a path such as routes[1].cors.origins.
func steps(path string) (all []any) {
	for path != "" {
		m := pathStep.FindStringSubmatch(path)
		if m == nil {
			panic("no path: " + path)
		}
		if path = path[len(m[0]):]; m[1] != "" {
			all = append(all, m[1])
		} else {
			all = append(all, number(m[2]))
		}
	}
	return all
}

// valueAt returns the value at a path, or nil.
func valueAt(in any, path string) any {
	for _, step := range steps(path) {
		switch x := in.(type) {
		case map[string]any:
			name, _ := step.(string)
			in = x[name]
		case []any:
			if at, ok := step.(int); ok && at < len(x) {
				in = x[at]
			} else {
				return nil
			}
		default:
			return nil
		}
	}
	return in
}

func setAt(t *testing.T, in map[string]any, path string, value any) {
	t.Helper()
	parent, name := path[:strings.LastIndexByte(path, '.')+1], path[strings.LastIndexByte(path, '.')+1:]
	section, ok := in, true
	if parent = strings.TrimSuffix(parent, "."); parent != "" {
		section, ok = valueAt(in, parent).(map[string]any)
	}
	if !ok {
		t.Fatalf("%s sets nothing at %s", settingsBase, parent)
	}
	section[name] = value
}

func number(text string) int { n, _ := strconv.Atoi(text); return n }
