package config

import (
	"cmp"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"macronode/core/types"
)

// drawn sets every part of the tree to a valid value, or none.
func drawn(t *rapid.T, k key) {
	if isList(k.value.Type()) {
		n := rapid.IntRange(0, min(3, k.most())).Draw(t, k.path)
		if n == 0 {
			return
		}
		k.value.Set(reflect.MakeSlice(k.value.Type(), n, n))
		for i, e := range k.entries() {
			if k.named() {
				e.value.FieldByName("Name").SetString(string(rune('a'+i)) + rapid.StringMatching(`[A-Za-z0-9_-]{0,5}`).Draw(t, "name"))
			}
			if !isSection(e.value.Type()) {
				drawnLeaf(t, e)
				continue
			}
			for _, in := range e.inside() {
				in.reset()
				if in.tag.Get("need") != "" || in.tag.Get("either") == "" && rapid.Bool().Draw(t, "set") {
					drawn(t, in)
				}
			}
			for _, g := range groups(e.value.Type()) {
				of := e.path + "." + rapid.SampledFrom(g[1:]).Draw(t, "either")
				for _, in := range e.inside() {
					for in.path == of && in.value.IsZero() {
						drawn(t, in)
					}
				}
			}
		}
		return
	}
	drawnLeaf(t, k)
}

func drawnLeaf(t *rapid.T, k key) {
	number := func(low, high string) string {
		return rapid.OneOf(rapid.Just(k.tag.Get("min")), rapid.Just(k.tag.Get("max")), rapid.StringMatching(low+`|`+high)).Filter(func(text string) bool {
			v := reflect.New(k.value.Type()).Elem()
			return parse(v, text) == nil && key{tag: k.tag, value: v}.within()
		}).Draw(t, k.path)
	}
	text := ""
	one := strings.Fields(k.tag.Get("one"))
	switch v := k.value.Interface().(type) {
	case bool:
		text = strconv.FormatBool(rapid.Bool().Draw(t, k.path))
	case time.Duration:
		text = number(`[1-9][0-9]{0,2}(ms|s)`, `[0-9]{1,3}(ms|m)`)
	case Bytes:
		text = number(`[1-9][0-9]{0,3}(B|KiB|MiB)`, `[1-9][0-9]{0,3}GiB`)
	case Rate:
		text = number(`[0-9]{1,4}\.[0-9]{1,6}`, `[0-9]{1,9}`)
	case int, types.Amount, Burst:
		text = number(`[0-9]{1,4}`, `[1-9][0-9]{5,7}`)
	case netip.Prefix:
		bits := rapid.IntRange(0, 32).Draw(t, "bits")
		text = netip.PrefixFrom(netip.AddrFrom4([4]byte(rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(t, k.path))), bits).Masked().String()
	case string, types.QuotaScope, types.Class:
		switch f, ok := forms[k.tag.Get("form")]; {
		case len(one) > 0:
			text = rapid.SampledFrom(one).Draw(t, k.path)
		case ok:
			text = rapid.OneOf(rapid.SampledFrom(seeds), rapid.StringMatching(f.pattern.String())).Filter(f.has).Draw(t, k.path)
		default:
			text = rapid.StringN(1, 20, 60).Draw(t, k.path)
		}
	default:
		t.Fatalf("%s is a %T", k.path, v)
	}
	if err := parse(k.value, text); err != nil {
		t.Fatalf("%s: %q: %v", k.path, text, err)
	}
}

// seeds are texts that random drawing does not find.
var seeds = []string{`{"a": ["\\", "\u2028"]}`, "null", "GET", "POST", "http://127.0.0.1:9000", "https://[::1]:1/a/b", "https://example.com", "*.example.com", "/", "/a;b/c", "x-a", "*", "null", "https://a.example:8443", "default", "17"}

// mended corrects c where tags do not state the rules; false if that is not possible.
func mended(c *Config) bool {
	for i := range c.Quotas {
		q := &c.Quotas[i]
		q.Burst.Sized = q.Bytes > 0
		if q.Scope == types.ScopeInstance {
			q.Classes = nil
		}
		if q.Route = ""; q.Scope == types.ScopeRoute && len(c.Routes) > 0 && c.Routes[0].Name != "" {
			q.Route = c.Routes[0].Name
		}
	}
	for i := range c.Storage.Providers {
		p := &c.Storage.Providers[i]
		if p.Name = "disk" + strconv.Itoa(i); p.Endpoint == "" {
			*p = Provider{Name: p.Name, Path: "/disks/" + strconv.Itoa(i) + p.Path, Weight: p.Weight, Domain: p.Domain}
			continue
		}
		p.Bucket, p.Secret = "copies-"+strconv.Itoa(i), "/secret"
		if strings.HasPrefix(p.Endpoint, "http:") {
			p.CA = ""
		}
	}
	for i := range c.Usage.Prices {
		mendPrice(&c.Usage.Prices[i], i)
		if len(c.Usage.Prepaid) > 0 {
			c.Usage.Prices[i].Each = "invoice"
		}
	}
	if len(c.Usage.Prices) == 0 {
		c.Usage.Prepaid = nil
	}
	for i := range c.Usage.Prepaid {
		p := &c.Usage.Prepaid[i]
		p.Tenant, p.Payer, p.Beneficiary = strconv.Itoa(i+2), "payer:"+p.Payer[:min(len(p.Payer), 200)], "revenue"
	}
	for i := range c.Exports.Sinks {
		k := &c.Exports.Sinks[i]
		k.Name, k.Tenants, k.Streams = "sink"+strconv.Itoa(i), nil, nil
		k.Stream, k.Subject, k.CAFile, k.Topic = "", "", "", ""
		if k.Dir != "" {
			k.Kind, k.Dir, k.SecretFile = "file", "/out/"+strconv.Itoa(i), ""
		} else if k.Database != "" {
			k.Kind = "postgres"
		} else if len(k.Servers) > 0 && i%2 == 0 {
			k.Kind, k.Stream, k.Subject, k.CAFile = "nats", "usage", "s"+strconv.Itoa(i), "/ca"
			mendServers(k)
		} else if len(k.Servers) > 0 {
			k.Kind, k.Topic, k.CAFile = "kafka", "topic"+strconv.Itoa(i), "/ca"
			mendServers(k)
		} else if k.Kind, k.SecretFile = "webhook", "/secret"; i == 0 {
			k.Kind, k.Streams = "http", []string{"wallet", "usage"}
		}
		for j := range k.Weights {
			k.Weights[j].Tenant = strconv.Itoa(j + 2)
			k.Tenants = append(k.Tenants, k.Weights[j].Tenant)
		}
	}
	for i := range c.Routes {
		r := &c.Routes[i]
		if r.Upstream != "" && len(c.Upstreams) > 0 {
			r.Upstream = c.Upstreams[i%len(c.Upstreams)].Name
		}
		for j := range r.Hydrate {
			r.Rewrite, r.Methods, r.Inflate = "", nil, false
			if len(c.Upstreams) > 0 {
				r.Hydrate[j].Upstream = c.Upstreams[j%len(c.Upstreams)].Name
			}
		}
		if r.Required {
			for _, name := range r.Needs() {
				if at, ok := c.Upstream(name); ok {
					c.Upstreams[at].Health.Path = "/"
				}
			}
			r.Required = len(r.Needs()) > 0
		}
		if o := &r.CORS; len(o.Origins) == 0 {
			r.CORS = CORS{MaxAge: o.MaxAge}
		} else if len(r.Methods) > 0 {
			o.Methods = nil
		}
		r.CORS.MaxAge = r.CORS.MaxAge.Truncate(time.Second)
		if r.Header.Name == "" {
			r.Header.Value = ""
		}
	}
	if len(c.Upstreams) == 0 {
		c.Routes = nil
	}
	c.complete()
	return len(c.lists()) == 0 && once(c)
}

// mendPrice gives a price what its model needs.
func mendPrice(p *UsagePrice, at int) {
	p.Name += strconv.Itoa(at)
	p.Name = p.Name[max(0, len(p.Name)-64):]
	p.Per.Sized = p.Per.Sized && strings.HasPrefix(p.Dimension, "bytes")
	if p.Labels.Service != "" { // all of them together are too long
		p.Labels = UsageLabels{Service: p.Labels.Service, Route: p.Labels.Route}
	} else {
		p.Labels = UsageLabels{Region: p.Labels.Region, Method: p.Labels.Method}
	}
	if p.Model == "flat" {
		p.Per = Burst{Units: 1}
	} else {
		p.Each = "invoice"
	}
	if p.Model == "flat" || p.Model == "per_unit" {
		p.Price, p.Tiers = cmp.Or(p.Price, "0.25"), nil
		return
	}
	if p.Price = ""; len(p.Tiers) == 0 {
		p.Tiers = []PriceTier{{Price: "2", Flat: "0"}}
	}
	for i := range p.Tiers {
		p.Tiers[i].UpTo = Burst{uint64(i) + 1, p.Tiers[i].UpTo.Sized && strings.HasPrefix(p.Dimension, "bytes")}
	}
	p.Tiers[len(p.Tiers)-1].UpTo = Burst{}
}

// once reports whether no list of texts has duplicates, and no name is used twice.
func once(c *Config) bool {
	seen := map[string]bool{}
	for _, leaf := range keys(c) {
		for _, k := range leaf.parts() {
			at, _, entry := strings.Cut(k.path[strings.LastIndex(k.path, ".")+1:], "[")
			if id := k.path[:strings.LastIndex(k.path, ".")+1] + at + "=" + format(k.value); k.entry && entry && seen[id] {
				return false
			} else {
				seen[id] = true
			}
		}
	}
	return true
}

// TestListsRoundTrip: Effective is a file and Settings are variables with the same values, and
// the schema accepts what Load accepts.
func TestListsRoundTrip(t *testing.T) {
	file, full := filepath.Join(t.TempDir(), "node.yaml"), 0
	rapid.Check(t, func(t *rapid.T) {
		first, err := Load(Sources{})
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range keys(first) {
			if isList(k.value.Type()) {
				drawn(t, k)
			}
		}
		if !mended(first) {
			t.Skip("the drawn keys contradict each other: others are drawn")
		}
		if len(first.Quotas) > 0 && len(first.Routes) > 0 {
			full++
		}
		same := func(how string, s Sources) *Config {
			c, err := Load(s)
			if err != nil {
				t.Fatalf("%s: %v\n%s", how, err, first.Effective())
			}
			if d := Diff(first, c); len(d) > 0 {
				t.Fatalf("%s: %+v", how, d)
			}
			return c
		}
		if err := os.WriteFile(file, []byte(first.Effective()), 0o600); err != nil {
			t.Fatal(err)
		}
		second := same("file", Sources{File: file})
		second.from = first.from
		if !reflect.DeepEqual(first, second) {
			t.Fatalf("\n%+v\n%+v", first, second)
		}
		var environ []string
		var flags []Flag
		for _, s := range first.Settings() {
			environ = append(environ, prefix+strings.ToUpper(strings.ReplaceAll(s.Key, ".", "__"))+"="+s.Value)
			flags = append(flags, Flag{"--set", s.Key, s.Value})
		}
		same("environment", Sources{Environ: environ})
		same("flags", Sources{Flags: flags})
		if err := accepts(t, first.Effective()); err != nil {
			t.Fatalf("the schema: %v\n%s", err, first.Effective())
		}
	})
	t.Logf("%d had quotas and routes", full)
}

// A rate is exact, and its text is the shortest.
func TestRates(t *testing.T) {
	for text, want := range map[string]Rate{
		"0.5": {5, 10 * time.Second}, "5000": {5000, time.Second}, "5000.0": {5000, time.Second}, "0.000001": {1, 1e6 * time.Second},
		"12.340": {1234, 100 * time.Second}, "1000000000": {1e9, time.Second}, "0": {0, time.Second},
		"1.0000001": {}, ".5": {}, "": {}, "-1": {}, "+1": {}, "1e3": {}, "1.-1": {}, "1.2.3": {}, "999999999999.5": {9999999999995, 10 * time.Second}, "1000000000000": {},
	} {
		got, err := parseRate(text)
		if got != want || (err == nil) != (want.Every > 0) {
			t.Errorf("%q is %+v, %v", text, got, err)
			continue
		}
		if again, back := parseRate(got.String()); err == nil && (back != nil || again != got) {
			t.Errorf("%q reads back as %q, %+v", text, got, again)
		}
	}
}

// mendServers gives all servers of a sink the scheme tls, which each kind may have.
func mendServers(k *Sink) {
	for i, server := range k.Servers {
		_, host, _ := strings.Cut(server, "://")
		k.Servers[i] = "tls://" + host
	}
}
