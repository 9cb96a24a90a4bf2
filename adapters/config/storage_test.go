package config

import (
	"strings"
	"testing"
)

// TestProvidersOfObjects: which providers and copies a node has, and which configurations it refuses.
func TestProvidersOfObjects(t *testing.T) {
	const pair = `storage.providers=[{"name":"a","path":"/srv/a"},{"name":"b","path":"b","weight":3,"failure_domain":"rack"}]`
	load := func(text ...string) (*Config, error) {
		s := Sources{Flags: []Flag{{Key: "data", Text: "/data"}}}
		for _, t := range text {
			key, value, _ := strings.Cut(t, "=")
			s.Flags = append(s.Flags, Flag{Key: key, Text: value})
		}
		return Load(s)
	}
	for _, c := range []struct {
		text   []string
		copies int
		all    []Provider
	}{
		{nil, 1, []Provider{{"local", "/data/objects", 1, "local"}}},
		{[]string{pair}, 2, []Provider{{"a", "/srv/a", 1, "a"}, {"b", "/data/b", 3, "rack"}}},
		{[]string{pair, "storage.copies=1"}, 1, []Provider{{"a", "/srv/a", 1, "a"}, {"b", "/data/b", 3, "rack"}}},
		{[]string{`storage.providers=[{"name":"a","path":"a","failure_domain":"x"},{"name":"b","path":"b","failure_domain":"x"}]`}, 1,
			[]Provider{{"a", "/data/a", 1, "x"}, {"b", "/data/b", 1, "x"}}},
	} {
		is, err := load(c.text...)
		if err != nil {
			t.Errorf("%q: %v", c.text, err)
			continue
		}
		if got := is.ObjectProviders(); len(got) != len(c.all) || got[0] != c.all[0] || got[len(got)-1] != c.all[len(got)-1] || is.ObjectCopies() != c.copies {
			t.Errorf("%q: %d copies in %+v", c.text, is.ObjectCopies(), got)
		}
	}
	for want, text := range map[string][]string{
		"storage.copies (flag) is 3: must be at most the number of failure domains of storage.providers (flag), which is 2":       {pair, "storage.copies=3"},
		"storage.copies (flag) is 2: must be at most the number of failure domains of storage.providers (default), which is 1":    {"storage.copies=2"},
		"storage.copies_required (flag) is 3: must be at most storage.copies, which is 2":                                         {pair, "storage.copies_required=3"},
		"storage.providers[1].path (flag) is /srv/./a, which is the directory of provider a: two copies in one directory are one": {`storage.providers=[{"name":"a","path":"/srv/a"},{"name":"b","path":"/srv/./a"}]`},
		"storage.providers[1].path (flag) is x, which is the directory of provider a":                                             {`storage.providers=[{"name":"a","path":"/data/x"},{"name":"b","path":"x"}]`},
		"storage.providers[1].name (flag) is a again: storage.providers[0] has it":                                                {`storage.providers=[{"name":"a","path":"a"},{"name":"a","path":"b"}]`},
	} {
		if _, err := load(text...); err == nil || !strings.Contains(strings.ReplaceAll(err.Error(), "(flag )", "(flag)"), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}
