package config

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/knadh/koanf/parsers/yaml"
)

// FuzzLoad: any file and flag is either rejected with an error, or loaded; then Effective loads
// to the same values, and the schema accepts both.
func FuzzLoad(f *testing.F) {
	for _, file := range []string{front, "log:\nnode: {drain: +1.5s, lame_duck: '0'}", "quotas: [{scope: peer, bytes_per_second: 1KiB, burst: 2KiB}]",
		"http: {trusted_proxies: ['FD00::/8']}", "upstreams: {1: {urls: ['http://a', 'https://b/c']}}\nroutes: [{upstream: '1', deadline: .5m}]\nquotas: [{scope: peer, requests_per_second: .5}]"} {
		f.Add(file, "[]")
		f.Add(file, `[{"scope":"key","requests_per_second":0.5,"classes":["anon","authed"],"shadow":true}]`)
	}
	path := filepath.Join(f.TempDir(), "node.yaml")
	f.Fuzz(func(t *testing.T, file, quotas string) {
		load := func(text string, flags ...Flag) (*Config, error) {
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			return Load(Sources{File: path, Flags: flags})
		}
		if c, err := load(file); err == nil && !dotted(file) {
			if err := accepts(t, file); err != nil {
				t.Fatalf("%v\n%s", err, c.Effective())
			}
		}
		first, err := load(file, Flag{"--set", "quotas", quotas})
		if err != nil {
			if err.Error() == "" {
				t.Fatal("refused without a word")
			}
			return
		}
		second, err := load(first.Effective())
		if err != nil {
			t.Fatalf("%v\n%s", err, first.Effective())
		}
		second.from = first.from
		if !reflect.DeepEqual(first, second) {
			t.Fatalf("%+v\n%+v", Diff(first, second), first.Effective())
		}
		if err := accepts(t, first.Effective()); err != nil {
			t.Fatalf("%v\n%s", err, first.Effective())
		}
	})
}

// dotted reports whether a file has keys with their section in the name, which a schema cannot
// express.
func dotted(file string) bool {
	values, err := yaml.Parser().Unmarshal([]byte(file))
	return err != nil || strings.Contains(strings.Join(names(values), " "), ".")
}

func names(values map[string]any) (all []string) {
	for name, v := range values {
		all = append(all, name)
		if m, ok := v.(map[string]any); ok {
			all = append(all, names(m)...)
		}
	}
	return all
}
