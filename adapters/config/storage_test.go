package config

import (
	"strings"
	"testing"
)

// TestProvidersOfObjects: which providers and copies a node has, and which configurations it refuses.
func TestProvidersOfObjects(t *testing.T) {
	const pair = `storage.providers=[{"name":"a","path":"/srv/a"},{"name":"b","path":"b","weight":3,"failure_domain":"rack"}]`
	const bucket = `{"name":"s","endpoint":"https://s3.example","bucket":"copies","credentials_file":"/s"}`
	both := []Provider{{Name: "a", Path: "/srv/a", Weight: 1, Domain: "a"}, {Name: "b", Path: "/data/b", Weight: 3, Domain: "rack"}}
	load := func(text ...string) (*Config, error) {
		s := Sources{Flags: []Flag{{Key: "data", Text: "/data"}}}
		for _, t := range text {
			key, value, _ := strings.Cut(t, "=")
			s.Flags = append(s.Flags, Flag{Key: key, Text: value})
		}
		return Load(s)
	}
	five, list := `storage.providers=[`, []Provider(nil)
	for i := range 5 {
		name := string(rune('a' + i))
		five += `{"name":"` + name + `","path":"` + name + `"},`
		list = append(list, Provider{Name: name, Path: "/data/" + name, Weight: 1, Domain: name})
	}
	five = strings.TrimSuffix(five, ",") + "]"
	for _, c := range []struct {
		text   []string
		copies int
		all    []Provider
	}{
		{nil, 1, []Provider{{Name: "local", Path: "/data/objects", Weight: 1, Domain: "local"}}},
		{[]string{pair}, 2, both},
		{[]string{pair, "storage.copies=1"}, 1, both},
		{[]string{five, "storage.coding=3+2"}, 3, list},
		{[]string{five, "storage.coding=2+2", "storage.copies_required=2"}, 3, list},
		{[]string{five, "storage.coding=3+1", "storage.copies=4"}, 4, list},
		{[]string{`storage.providers=[{"name":"a","path":"a","failure_domain":"x"},{"name":"b","path":"b","failure_domain":"x"}]`}, 1,
			[]Provider{{Name: "a", Path: "/data/a", Weight: 1, Domain: "x"}, {Name: "b", Path: "/data/b", Weight: 1, Domain: "x"}}},
		{[]string{`storage.providers=[{"name":"a","path":"a"},` + bucket + `]`}, 2, []Provider{{Name: "a", Path: "/data/a", Weight: 1, Domain: "a"},
			{Name: "s", Endpoint: "https://s3.example", Region: "us-east-1", Bucket: "copies", Secret: "/s", Weight: 1, Domain: "s"}}},
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
		"storage.copies (flag) is 3: must be at most the number of failure domains of storage.providers (flag), which is 2":                                          {pair, "storage.copies=3"},
		"storage.copies (flag) is 2: must be at most the number of failure domains of storage.providers (default), which is 1":                                       {"storage.copies=2"},
		"storage.copies_required (flag) is 3: must be at most storage.copies, which is 2":                                                                            {pair, "storage.copies_required=3"},
		`storage.coding (flag) is "3": must be the numbers of data and parity shards, such as 6+3`:                                                                   {five, "storage.coding=3"},
		`storage.coding (flag) is "5+0": must be the numbers of data and parity shards, such as 6+3`:                                                                 {five, "storage.coding=5+0"},
		"storage.coding (flag) is 4+2: must have at most as many shards as there are failure domains of storage.providers (flag): it has 6, and there are 5 domains": {five, "storage.coding=4+2"},
		"storage.copies (flag) is 1: must be at least 2 with storage.coding":                                                                                         {five, "storage.coding=3+2", "storage.copies=1"},
		"storage.copies_required (flag) is 3: must be at most the number of parity shards of storage.coding (flag), which is 2":                                      {five, "storage.coding=3+2", "storage.copies_required=3"},
		"storage.providers[1].path (flag) is /srv/./a, which is the directory of provider a: two copies in one directory are one":                                    {`storage.providers=[{"name":"a","path":"/srv/a"},{"name":"b","path":"/srv/./a"}]`},
		"storage.providers[1].path (flag) is x, which is the directory of provider a":                                                                                {`storage.providers=[{"name":"a","path":"/data/x"},{"name":"b","path":"x"}]`},
		"storage.providers[0] (flag) has 0 of path, endpoint: set exactly one":                                                                                       {`storage.providers=[{"name":"a"}]`},
		"storage.providers[0] (flag) has 2 of path, endpoint: set exactly one":                                                                                       {`storage.providers=[{"name":"a","path":"a","endpoint":"http://s3.example"}]`},
		"storage.providers[0] (flag) has an endpoint and no bucket: set both":                                                                                        {`storage.providers=[{"name":"a","endpoint":"http://s3.example","credentials_file":"/s"}]`},
		"storage.providers[0] (flag) has an endpoint and no credentials_file: set both":                                                                              {`storage.providers=[{"name":"a","endpoint":"http://s3.example","bucket":"copies"}]`},
		"storage.providers[0].bucket (flag) is set, but the provider is a directory":                                                                                 {`storage.providers=[{"name":"a","path":"a","bucket":"copies"}]`},
		"storage.providers[0].ca_file (flag) is set, but the endpoint is http://s3.example, which has no certificate":                                                {`storage.providers=[{"name":"a","endpoint":"http://s3.example","bucket":"copies","credentials_file":"/s","ca_file":"/c"}]`},
		"storage.providers[0].prefix (flag) is \"a/..\"":                                                                                                             {`storage.providers=[{"name":"a","endpoint":"http://s3.example","bucket":"copies","credentials_file":"/s","prefix":"a/.."}]`},
		"storage.providers[1].bucket (flag) is that of provider s, with the same prefix: two copies in one bucket are one":                                           {`storage.providers=[` + bucket + `,` + strings.Replace(bucket, `"s"`, `"t"`, 1) + `]`},
		"storage.providers[1].name (flag) is a again: storage.providers[0] has it":                                                                                   {`storage.providers=[{"name":"a","path":"a"},{"name":"a","path":"b"}]`},
	} {
		if _, err := load(text...); err == nil || !strings.Contains(strings.ReplaceAll(err.Error(), "(flag )", "(flag)"), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}
