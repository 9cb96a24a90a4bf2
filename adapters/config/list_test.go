package config

import (
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"macronode/core/types"
)

// TestGatewayExample loads the complete file of a gateway in front of a service.
func TestGatewayExample(t *testing.T) {
	c, err := Load(Sources{File: "testdata/front.yaml"})
	if err != nil {
		t.Fatal(err)
	}
	everybody := []types.Class{types.ClassInternal, types.ClassAuthed, types.ClassAnon}
	quota := Quota{Scope: types.ScopeInstance, Requests: Rate{5000, time.Second}, Burst: Burst{Units: 100}, Classes: everybody}
	upstream := Upstream{Name: "app", URLs: []string{"http://127.0.0.1:9000"}, Protocol: "auto", Tries: 3,
		Health: Health{Interval: 5 * time.Second, Timeout: time.Second, Fall: 3, Rise: 2}}
	route := Route{Path: "/", Upstream: "app", Auth: "none", Deadline: 5 * time.Second, PathNormalization: AnyPaths, CORS: CORS{MaxAge: 10 * time.Minute}}
	if !reflect.DeepEqual(c.Quotas, []Quota{quota}) || !reflect.DeepEqual(c.Upstreams, []Upstream{upstream}) || !reflect.DeepEqual(c.Routes, []Route{route}) {
		t.Fatalf("%+v\n%+v\n%+v", c.Quotas, c.Upstreams, c.Routes)
	}
}

// TestEntriesFromEveryLayer: every key of an entry can be set in every layer.
func TestEntriesFromEveryLayer(t *testing.T) {
	const (
		quotas = `[{"name": "few", "scope": "key", "bytes_per_second": "1MiB", "burst": "3MiB", "classes": ["authed", "internal"], "shadow": true},` +
			` {"scope": "peer", "requests_per_second": 0.25}, {"scope": "tenant", "bytes_per_second": "1B"}, {"scope": "peer", "requests_per_second": 1.5}` +
			`, {"scope": "route", "route": "x", "requests_per_second": 50}, {"scope": "route", "route": "both", "requests_per_second": 5}]`
		upstreams = `{"b": {"urls": ["https://b.example:8443/base", "http://[::1]:80"], "host": "b.example:8443", "protocol": "http2", "max_attempts": 1,` +
			` "health": {"path": "/healthz", "interval": "2s", "timeout": "500ms", "fall": 1, "rise": 4}}, "a": {"url": "http://a"}}`
		routes = `[{"name": "x", "host": "*.example.com", "path": "/v1/x", "methods": ["GET", "POST"], "header": {"name": "X-Version", "value": "2"}, "upstream": "b",` +
			` "rewrite": "/", "deadline": "1m30s", "max_inflight": 7, "required_for_readiness": true, "decompress_request": true,` +
			` "cors": {"origins": ["https://a:8443", "null", "app://x"], "methods": ["GET"], "headers": ["X-A"], "expose": ["X-B"], "credentials": true, "max_age": "1h"}},` +
			` {"name": "both", "auth": "none", "hydrate": [{"name": "one", "upstream": "a", "path": "/one"}, {"name": "two", "upstream": "b", "path": "/two", "fallback": "{\"a\": []}", "required": true}]}]`
		trusted = `["10.0.0.0/8", "fd00::/8", "192.0.2.7/32"]`
	)
	want := &Config{
		Quotas: []Quota{
			{Name: "few", Scope: types.ScopeKey, Bytes: 1 << 20, Burst: Burst{3 << 20, true}, Classes: []types.Class{types.ClassAuthed, types.ClassInternal}, Shadow: true},
			{Scope: types.ScopePeer, Requests: Rate{25, 100 * time.Second}, Burst: Burst{Units: 1}, Classes: []types.Class{types.ClassInternal, types.ClassAuthed, types.ClassAnon}},
			{Scope: types.ScopeTenant, Bytes: 1, Burst: Burst{1, true}, Classes: []types.Class{types.ClassInternal, types.ClassAuthed}},
			{Scope: types.ScopePeer, Requests: Rate{15, 10 * time.Second}, Burst: Burst{Units: 2}, Classes: []types.Class{types.ClassInternal, types.ClassAuthed, types.ClassAnon}},
			{Scope: types.ScopeRoute, Route: "x", Requests: Rate{50, time.Second}, Burst: Burst{Units: 50}, Classes: []types.Class{types.ClassInternal, types.ClassAuthed}},
			{Scope: types.ScopeRoute, Route: "both", Requests: Rate{5, time.Second}, Burst: Burst{Units: 5}, Classes: []types.Class{types.ClassInternal, types.ClassAuthed, types.ClassAnon}},
		},
		Upstreams: []Upstream{
			{Name: "a", URLs: []string{"http://a"}, Protocol: "auto", Tries: 3, Health: Health{"", 5 * time.Second, time.Second, 3, 2}},
			{Name: "b", URLs: []string{"https://b.example:8443/base", "http://[::1]:80"}, Host: "b.example:8443", Protocol: "http2", Tries: 1,
				Health: Health{"/healthz", 2 * time.Second, 500 * time.Millisecond, 1, 4}},
		},
		Routes: []Route{
			{Name: "x", Host: "*.example.com", Path: "/v1/x", Methods: []string{"GET", "POST"}, Header: Header{"X-Version", "2"}, Upstream: "b", Auth: "key", Rewrite: "/",
				Deadline: 90 * time.Second, MaxInflight: 7, Required: true, Inflate: true,
				PathNormalization: StrictPaths, CORS: CORS{[]string{"https://a:8443", "null", "app://x"}, []string{"GET"}, []string{"X-A"}, []string{"X-B"}, true, time.Hour}},
			{Name: "both", Path: "/", Hydrate: []Part{{"one", "a", "/one", "null", false}, {"two", "b", "/two", `{"a": []}`, true}}, Auth: "none", Deadline: 5 * time.Second, PathNormalization: StrictPaths, CORS: CORS{MaxAge: 10 * time.Minute}},
		},
	}
	want.HTTP.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8"), netip.MustParsePrefix("192.0.2.7/32")}
	for name, s := range map[string]Sources{
		"file": sources(t, "quotas: "+quotas+"\nupstreams: "+upstreams+"\nroutes: "+routes+"\nhttp: {trusted_proxies: "+trusted+"}", nil),
		"environment": {Environ: []string{"MACRONODE_QUOTAS=" + quotas, "MACRONODE_UPSTREAMS=" + upstreams, "MACRONODE_ROUTES=" + routes,
			"MACRONODE_HTTP__TRUSTED_PROXIES=" + trusted}},
		"flags": {Flags: []Flag{{Key: "quotas", Text: quotas}, {Key: "upstreams", Text: upstreams}, {Key: "routes", Text: routes}, {Key: "http.trusted_proxies", Text: trusted}}},
	} {
		c, err := Load(s)
		if err != nil {
			t.Fatal(name, err)
		}
		for _, of := range [][2]any{{c.Quotas, want.Quotas}, {c.Upstreams, want.Upstreams}, {c.Routes, want.Routes}, {c.HTTP.TrustedProxies, want.HTTP.TrustedProxies}} {
			if !reflect.DeepEqual(of[0], of[1]) {
				t.Errorf("%s:\n got %+v\nwant %+v", name, of[0], of[1])
			}
		}
	}
}

// A layer that sets a list replaces all of it.
func TestLayerReplacesWholeList(t *testing.T) {
	s := sources(t, "quotas: [{scope: peer, requests_per_second: 1}, {scope: key, requests_per_second: 2}]", nil, `quotas=[{"scope":"tenant","requests_per_second":3}]`)
	c, err := Load(s)
	if err != nil || len(c.Quotas) != 1 || c.Quotas[0].Scope != types.ScopeTenant {
		t.Fatalf("%v %+v", err, c)
	}
	if c, err = Load(Sources{File: s.File, Flags: []Flag{{Key: "quotas", Text: "[]"}}}); err != nil || len(c.Quotas) != 0 {
		t.Fatalf("%v %+v", err, c)
	}
}

// Every error names the place in the list and the layer.
func TestListErrorsNameThePlace(t *testing.T) {
	const up = "upstreams: {app: {url: 'http://a'}, web: {url: 'http://b', health: {path: /}}}\n"
	for _, c := range []struct{ yaml, want string }{
		{"quotas:", `quotas (file node.yaml) is empty: must be a list of at most 16 quotas`},
		{"quotas: {scope: peer}", `quotas (file node.yaml) is a section: must be a list of at most 16 quotas`},
		{"quotas: [peer]", `quotas[0] (file node.yaml) is "peer": must be a section, valid keys: burst, bytes_per_second, classes, name, requests_per_second, route, scope, shadow`},
		{"quotas: [" + strings.Repeat("{},", 17) + "]", `quotas (file node.yaml) has 17: must be a list of at most 16 quotas`},
		{"quotas: [{scope: peer, requests_per_second: 1, brust: 1}]", `quotas[0].brust (file node.yaml) is not a configuration key: the nearest is burst, valid keys: burst, bytes_per_second, classes, name, requests_per_second, route, scope, shadow`},
		{"quotas: [{scope: peer, requests_per_second: 1}, {requests_per_second: 1}]", `quotas[1] (file node.yaml) has no scope: set one of instance, peer, key, tenant, route`},
		{"quotas: [{scope: moon, requests_per_second: 1}]", `quotas[0].scope (file node.yaml) is "moon": must be one of instance, peer, key, tenant, route`},
		{"quotas: [{scope: peer}]", `quotas[0] (file node.yaml) has 0 of requests_per_second, bytes_per_second: set exactly one`},
		{"quotas: [{scope: peer, requests_per_second: 1, bytes_per_second: 1B}]", `quotas[0] (file node.yaml) has 2 of requests_per_second, bytes_per_second: set exactly one`},
		{"quotas: [{scope: peer, requests_per_second: 0}]", `quotas[0].requests_per_second (file node.yaml) is 0: must be a number such as 0.5 or 5000, with at most 6 decimals, from 0.000001 to 1000000000`},
		{"quotas: [{scope: peer, requests_per_second: 0.0000005}]", `quotas[0].requests_per_second (file node.yaml) is 0.0000005: must be a number such as 0.5 or 5000, with at most 6 decimals, from 0.000001 to 1000000000`},
		{"quotas: [{scope: peer, requests_per_second: 1.0000001}]", `quotas[0].requests_per_second (file node.yaml) is 1.0000001: must be a number such as 0.5 or 5000, with at most 6 decimals, from 0.000001 to 1000000000`},
		{"quotas: [{scope: peer, requests_per_second: -1}]", `quotas[0].requests_per_second (file node.yaml) is -1: must be a number such as 0.5 or 5000, with at most 6 decimals, from 0.000001 to 1000000000`},
		{"quotas: [{scope: peer, requests_per_second: .nan}]", `quotas[0].requests_per_second (file node.yaml) is NaN: must be a number such as 0.5 or 5000, with at most 6 decimals, from 0.000001 to 1000000000`},
		{"quotas: [{scope: peer, requests_per_second: 1000000000.5}]", `quotas[0].requests_per_second (file node.yaml) is 1000000000.5: must be a number such as 0.5 or 5000, with at most 6 decimals, from 0.000001 to 1000000000`},
		{"quotas: [{scope: peer, requests_per_second: '5'}]", `quotas[0].requests_per_second (file node.yaml) is "5": must be a number such as 0.5 or 5000, with at most 6 decimals, from 0.000001 to 1000000000`},
		{"quotas: [{scope: peer, bytes_per_second: 5}]", `quotas[0].bytes_per_second (file node.yaml) is 5: must be a size such as 512KiB, 256MiB or 1GiB, from 1B to 1024GiB`},
		{"quotas: [{scope: peer, requests_per_second: 1}, {scope: peer, requests_per_second: 1}, {scope: peer, requests_per_second: 1, burst: 0}]", `quotas[2].burst (file node.yaml) is 0: must be a whole number or, of bytes, a size such as 512KiB, 256MiB or 1GiB, from 1 to 1099511627776`},
		{"quotas: [{scope: peer, requests_per_second: 1, burst: 1.5}]", `quotas[0].burst (file node.yaml) is 1.5: must be a whole number or, of bytes, a size such as 512KiB, 256MiB or 1GiB, from 1 to 1099511627776`},
		{"quotas: [{scope: peer, requests_per_second: 1, burst: '1'}]", `quotas[0].burst (file node.yaml) is "1": must be a whole number or, of bytes, a size such as 512KiB, 256MiB or 1GiB, from 1 to 1099511627776`},
		{"quotas: [{scope: peer, requests_per_second: 1, burst: 1KiB}]", `quotas[0].burst (file node.yaml) is 1KiB: must be a whole number, because the quota counts requests`},
		{"quotas: [{scope: peer, bytes_per_second: 1KiB, burst: 1}]", `quotas[0].burst (file node.yaml) is 1: must be a size such as 512KiB, 256MiB or 1GiB, because the quota counts bytes`},
		{"quotas: [{scope: peer, requests_per_second: 0.000001, burst: 32}]", `quotas[0].burst (file node.yaml) is 32, which takes more than 366 days to refill: set a lower burst or a higher rate`},
		{"quotas: [{scope: peer, requests_per_second: 1, burst: 31622401}]", `quotas[0].burst (file node.yaml) is 31622401, which takes more than 366 days to refill: set a lower burst or a higher rate`},
		{"quotas: [{scope: peer, requests_per_second: 1, classes: authed}]", `quotas[0].classes (file node.yaml) is "authed": must be a list of at most 3 classes`},
		{"quotas: [{scope: peer, requests_per_second: 1, classes: [authed, all]}]", `quotas[0].classes[1] (file node.yaml) is "all": must be one of internal, authed, anon`},
		{"quotas: [{scope: peer, requests_per_second: 1, classes: [anon, anon]}]", `quotas[0].classes[1] (file node.yaml) is "anon" again: once is allowed`},
		{"quotas: [{scope: instance, requests_per_second: 1, classes: [anon]}]", `quotas[0].classes (file node.yaml) leaves out some: a quota of the instance is for all classes`},
		{"quotas: [{scope: tenant, requests_per_second: 1, classes: [anon]}]", `quotas[0].classes (file node.yaml) has anon alone, which has neither key nor tenant: such a quota needs internal or authed`},
		{"quotas: [{scope: peer, requests_per_second: 1, shadow: 1}]", `quotas[0].shadow (file node.yaml) is 1: must be true or false`},
		{"quotas: [{scope: peer, requests_per_second: 1, name: a}, {scope: peer, requests_per_second: 1, name: a}]", `quotas[1].name (file node.yaml) is "a", as that of another quota: each needs a name of its own`},
		{"quotas: [{scope: peer, requests_per_second: 1, name: a b}]", `quotas[0].name (file node.yaml) is "a b": must be a name of at most 64 letters, digits, dashes and underscores`},
		{"quotas: [{scope: peer, requests_per_second: 1, name: ''}]", `quotas[0].name (file node.yaml) is "": must be a name of at most 64 letters, digits, dashes and underscores`},
		{up + "quotas: [{scope: route, requests_per_second: 1}]", `quotas[0] (file node.yaml) has no route: scope route needs the name of one`},
		{up + "quotas: [{scope: key, route: a, requests_per_second: 1}]", `quotas[0].route (file node.yaml) is "a": a quota of scope key is for all routes`},
		{up + "quotas: [{scope: route, route: a, requests_per_second: 1}]", `quotas[0].route (file node.yaml) is "a": no route has a name`},
		{up + "quotas: [{scope: route, route: shp, requests_per_second: 1}]\nroutes: [{name: shop, upstream: app}, {name: blog, upstream: app, path: /b}]", `quotas[0].route (file node.yaml) is "shp", which is no route: the nearest is shop, there are shop, blog`},
		{up + "quotas: [{scope: route, route: shop, requests_per_second: 1, classes: [anon]}]\nroutes: [{name: shop, upstream: app}]", `quotas[0].classes (file node.yaml) has only anon, which routes[0] does not accept: must be internal or authed`},
		{up + "routes: [{name: a, upstream: app}, {name: a, upstream: app, path: /b}]", `routes[1].name (file node.yaml) is "a", as that of routes[0]: each needs a name of its own`},

		{"accounting: {prices: [{name: a, dimension: requests, asset: EUR/2, model: per_unit, price: 0.25}]}", `accounting.prices[0].price (file node.yaml) is 0.25: must be ` + forms["decimal"].wants},
		{"accounting: {prices: [{name: a, dimension: requests, asset: EUR/2, model: per_unit, price: '0.250'}]}", `accounting.prices[0].price (file node.yaml) is "0.250": must be ` + forms["decimal"].wants},
		{"accounting: {prices: [{name: a, dimension: requests, asset: EUR/2, model: per_unit, price: '0.0000001'}]}", `accounting.prices[0].price (file node.yaml) is "0.0000001": must be ` + forms["decimal"].wants},
		{"accounting: {prices: [{name: a, dimension: errors, asset: EUR/2, model: per_unit, price: '1'}]}", `accounting.prices[0].dimension (file node.yaml) is "errors": must be a dimension such as requests, bytes_out or custom:tokens`},
		{"accounting: {prices: [{name: a, dimension: requests, asset: EUR/2, model: per_unit}]}", `accounting.prices[0] (file node.yaml) has no price: the model per_unit needs one`},
		{"accounting: {prices: [{name: a, dimension: requests, asset: EUR/2, model: volume}]}", `accounting.prices[0] (file node.yaml) has no tiers: the model volume needs them`},
		{"accounting: {prices: [{name: a, dimension: requests, asset: EUR/2, model: volume, price: '1', tiers: [{price: '1'}]}]}", `accounting.prices[0].price (file node.yaml) is 1: the model volume has its prices in tiers`},
		{"accounting: {prices: [{name: a, dimension: requests, asset: EUR/2, model: flat, price: '1', tiers: [{price: '1'}]}]}", `accounting.prices[0].tiers (file node.yaml) are set: the model flat has a price and no tiers`},
		{"accounting: {prices: [{name: a, dimension: requests, asset: EUR/2, model: graduated, tiers: [{up_to: 5, price: '1'}, {up_to: 5, price: '1'}, {price: '1'}]}]}", `accounting.prices[0].tiers[1].up_to (file node.yaml) must be more than that of the tier before, 5`},
		{"accounting: {prices: [{name: a, dimension: requests, asset: EUR/2, model: graduated, tiers: [{up_to: 5, price: '1'}]}]}", `accounting.prices[0].tiers[0].up_to (file node.yaml) must not be set: the last tier has no end`},
		{"accounting: {prices: [{name: a, dimension: requests, asset: EUR/2, model: per_unit, price: '1', per: 1GiB}]}", `accounting.prices[0].per (file node.yaml) is 1GiB: must be a whole number, because requests are no bytes`},
		{"accounting: {prices: [{name: a, dimension: requests, asset: EUR/2, model: volume, tiers: [{up_to: 1GiB, price: '1'}, {price: '2'}]}]}", `accounting.prices[0].tiers[0].up_to (file node.yaml) is 1GiB: must be a whole number, because requests are no bytes`},
		{"accounting: {prices: [{name: a, dimension: requests, asset: EUR/2, model: per_unit, price: '1', each: window}]}", `accounting.prices[0].each (file node.yaml) is for flat prices only`},
		{"accounting: {prices: [{name: a, dimension: requests, asset: EUR/2, model: flat, price: '1'}, {name: a, dimension: requests, asset: EUR/2, model: flat, price: '1'}]}", `accounting.prices[1].name (file node.yaml) is a again: accounting.prices[0] has it`},
		{"accounting: {prepaid: [{tenant: default, payer: a, beneficiary: b}]}", `accounting.prepaid[0] (file node.yaml) needs prices: set accounting.prices (default)`},
		{"accounting: {prices: [{name: a, dimension: requests, asset: EUR/2, model: flat, price: '1'}], prepaid: [{tenant: default, payer: a, beneficiary: a}]}", `accounting.prepaid[0].beneficiary (file node.yaml) is a, which is the payer: the price moves from one account to another`},
		{"accounting: {prices: [{name: a, dimension: requests, asset: EUR/2, model: flat, price: '1'}], prepaid: [{tenant: '2', payer: a, beneficiary: b}, {tenant: '2', payer: a, beneficiary: c}]}", `accounting.prepaid[1].tenant (file node.yaml) is 2 again: accounting.prepaid[0] has it`},
		{"accounting: {prices: [{name: a, dimension: requests, asset: EUR/2, model: flat, price: '1', each: window}], prepaid: [{tenant: default, payer: a, beneficiary: b}]}", `accounting.prepaid[0] (file node.yaml) cannot pay for accounting.prices[0] (file node.yaml), which is for each window: set each to invoice`},
		{"accounting: {max_prepaid_lines: 7, prices: [{name: a, dimension: requests, asset: EUR/2, model: flat, price: '1'}], prepaid: [{tenant: default, payer: a, beneficiary: b}, {tenant: '2', payer: a, beneficiary: b}]}", `accounting.prepaid[0] (file node.yaml) with 2 tenants and 1 prices in 4 months needs 8 lines: must be at most accounting.max_prepaid_lines (file node.yaml), which is 7`},
		{"accounting: {prices: [{name: a, dimension: requests, asset: EUR/2, model: flat, price: '1'}], prepaid: [{tenant: default, payer: 'issuance:EUR/2', beneficiary: b}]}", `accounting.prepaid[0].payer (file node.yaml) is "issuance:EUR/2": must be ` + forms["account"].wants},
		{"accounting: {prices: [{name: a, dimension: requests, asset: EUR/2, model: flat, price: '1'}], prepaid: [{tenant: default, payer: a}]}", `accounting.prepaid[0] (file node.yaml) has no beneficiary: set ` + forms["account"].wants},
		{"accounting: {prices: [{name: a, dimension: requests, labels: {host: a}, asset: EUR/2, model: flat, price: '1'}]}", `accounting.prices[0].labels.host (file node.yaml) is not a configuration key: the nearest is route, valid keys: method, region, route, service, subject`},

		{"upstreams: []", `upstreams (file node.yaml) is a list: must be a mapping of names to at most 64 upstreams`},
		{"upstreams: {a.b: {url: 'http://a'}}", `upstreams (file node.yaml) has "a.b": must be a name of at most 64 letters, digits, dashes and underscores`},
		{"upstreams: {a: }", `upstreams.a (file node.yaml) is empty: must be a section, valid keys: health, host, max_attempts, protocol, url, urls`},
		{"upstreams: {a: {}}", `upstreams.a (file node.yaml) has 0 of url, urls: set exactly one`},
		{"upstreams: {a: {url: 'http://a', urls: ['http://b']}}", `upstreams.a (file node.yaml) has 2 of url, urls: set exactly one`},
		{"upstreams: {a: {urls: []}}", `upstreams.a.urls (file node.yaml) is empty: must be a list of at most 16 endpoints`},
		{"upstreams: {a: {urls: ['http://a', 'http://a']}}", `upstreams.a.urls[1] (file node.yaml) is "http://a" again: once is allowed`},
		{"upstreams: {a: {url: 'http://u:p@a'}}", `upstreams.a.url (file node.yaml) is "http://u:***@a": must be a URL such as http://127.0.0.1:9000, of http or https, without user, query, or slash at its end`},
		{"upstreams: {a: {url: 'http://a:0'}}", `upstreams.a.url (file node.yaml) is "http://a:0": must be a URL such as http://127.0.0.1:9000, of http or https, without user, query, or slash at its end`},
		{"upstreams: {a: {url: 'http://a:'}}", `upstreams.a.url (file node.yaml) is "http://a:": must be a URL such as http://127.0.0.1:9000, of http or https, without user, query, or slash at its end`},
		{"upstreams: {a: {url: 'http://a/b/'}}", `upstreams.a.url (file node.yaml) is "http://a/b/": must be a URL such as http://127.0.0.1:9000, of http or https, without user, query, or slash at its end`},
		{"upstreams: {a: {url: 'http://a/../b'}}", `upstreams.a.url (file node.yaml) is "http://a/../b": must be a URL such as http://127.0.0.1:9000, of http or https, without user, query, or slash at its end`},
		{"upstreams: {a: {url: 'http://a', host: 'a:99999'}}", `upstreams.a.host (file node.yaml) is "a:99999": must be a host in small letters, with or without a port, such as example.com or example.com:8080`},
		{"upstreams: {a: {url: 'http://a', health: {pth: /}}}", `upstreams.a.health.pth (file node.yaml) is not a configuration key: the nearest is path, valid keys: fall, interval, path, rise, timeout`},
		{"upstreams: {a: {url: 'http://a', health: 5}}", `upstreams.a.health (file node.yaml) is 5: must be a section, valid keys: fall, interval, path, rise, timeout`},
		{"upstreams: {a: {url: 'http://a', health: {timeout: 6s}}}", `upstreams.a.health.timeout (file node.yaml) is 6s: must be at most its interval, which is 5s`},
		{"upstreams: {a: {url: 'http://a', health: {interval: 99ms}}}", `upstreams.a.health.interval (file node.yaml) is "99ms": must be a duration such as 200ms, 5s or 24h, from 100ms to 10m`},
		{"upstreams: {a: {url: 'http://a', health: {path: 'a/'}}}", `upstreams.a.health.path (file node.yaml) is "a/": must be a path such as /v1, without query, percent signs, empty segments or dots as a segment`},
		{"upstreams: {a: {url: 'http://a', protocol: h2c}}", `upstreams.a.protocol (file node.yaml) is "h2c": must be one of auto, http1, http2`},
		{"upstreams: {a: {url: 'http://a', max_attempts: 11}}", `upstreams.a.max_attempts (file node.yaml) is 11: must be a whole number from 1 to 10`},

		{up + "routes: [{upstream: ap}]", `routes[0].upstream (file node.yaml) is "ap", which is no upstream: the nearest is app, there are app, web`},
		{up + "routes: [{upstream: app, max_inflight: 3, max_inflight_per_flow: 4}]", `routes[0].max_inflight_per_flow (file node.yaml) is 4: must be at most max_inflight of the route, which is 3`},
		{"routes: [{upstream: app}]", `routes[0].upstream (file node.yaml) is "app": there are no upstreams`},
		{up + "routes: [{path: /}]", `routes[0] (file node.yaml) has 0 of upstream, hydrate: set exactly one`},
		{up + "routes: [{hydrate: []}]", `routes[0].hydrate (file node.yaml) is empty: must be a list of at most 3 reads`},
		{up + "routes: [{upstream: app, path: v1}]", `routes[0].path (file node.yaml) is "v1": must be a path such as /users, which stands for /users and all below it: without wildcards, query, percent signs, empty segments or dots as a segment`},
		{up + "routes: [{upstream: app, path: /" + strings.Repeat("a", longest) + "}]", `routes[0].path (file node.yaml) is "/` + strings.Repeat("a", longest) + `": must be a path such as /users, which stands for /users and all below it: without wildcards, query, percent signs, empty segments or dots as a segment`},
		{up + "routes: [{upstream: app, path: '/users/*'}]", `routes[0].path (file node.yaml) is "/users/*": must be ` + forms["prefix"].wants},
		{up + "routes: [{upstream: app, path: /a//b}]", `routes[0].path (file node.yaml) is "/a//b": must be a path such as /users, which stands for /users and all below it: without wildcards, query, percent signs, empty segments or dots as a segment`},
		{up + "routes: [{upstream: app, path: /a/..}]", `routes[0].path (file node.yaml) is "/a/..": must be a path such as /users, which stands for /users and all below it: without wildcards, query, percent signs, empty segments or dots as a segment`},
		{up + "routes: [{upstream: app, path: '/a/..;x/b'}]", `routes[0].path (file node.yaml) is "/a/..;x/b": must be a path such as /users, which stands for /users and all below it: without wildcards, query, percent signs, empty segments or dots as a segment`},
		{up + "routes: [{upstream: app, host: 'a:80'}]", `routes[0].host (file node.yaml) is "a:80": must be a host in small letters, without a port, such as example.com or *.example.com`},
		{up + "routes: [{upstream: app, methods: [TRACE]}]", `routes[0].methods[0] (file node.yaml) is "TRACE": must be a method in capitals, and neither CONNECT nor TRACE`},
		{up + "routes: [{upstream: app, header: {value: a}}]", `routes[0].header (file node.yaml) has a value but no name: set both, or the name only`},
		{up + "routes: [{upstream: app, header: {name: 'a:'}}]", `routes[0].header.name (file node.yaml) is "a:": must be the name of a header`},
		{up + "routes: [{upstream: app, header: {name: a, value: 2}}]", `routes[0].header.value (file node.yaml) is 2: must be at most 256 printable ASCII characters, with no space at either end`},
		{up + "routes: [{upstream: app, auth: jwt}]", `routes[0].auth (file node.yaml) is "jwt": must be one of none, key`},
		{up + "routes: [{upstream: app, deadline: 5}]", `routes[0].deadline (file node.yaml) is 5: must be a duration such as 200ms, 5s or 24h, from 10ms to 5m`},
		{up + "routes: [{upstream: app, max_inflight: -1}]", `routes[0].max_inflight (file node.yaml) is -1: must be a whole number from 0 to 65536`},
		{up + "routes: [{decompress_request: true, hydrate: [{name: a, upstream: app, path: /}]}]", `routes[0].decompress_request (file node.yaml) is true, but a route with hydrate forwards no body`},
		{up + "routes: [{upstream: app, required_for_readiness: true}]", `routes[0].required_for_readiness (file node.yaml) is true, but upstreams.app.health has no path: set a path, so that the health of the upstream is known`},
		{up + "routes: [{required_for_readiness: true, hydrate: [{name: a, upstream: app, path: /, required: true}]}]", `routes[0].required_for_readiness (file node.yaml) is true, but upstreams.app.health has no path: set a path, so that the health of the upstream is known`},
		{up + "routes: [{required_for_readiness: true, hydrate: [{name: a, upstream: web, path: /}]}]", `routes[0].required_for_readiness (file node.yaml) is true, but no read of the route is required: set required on one read, or set this to false`},
		{up + "routes: [{upstream: app, cors: {methods: [GET]}}]", `routes[0].cors (file node.yaml) has no origins: list the origins that may call the route`},
		{up + "routes: [{upstream: app, cors: {credentials: true}}]", `routes[0].cors (file node.yaml) has no origins: list the origins that may call the route`},
		{up + "routes: [{upstream: app, cors: {origins: ['*'], credentials: true}}]", `routes[0].cors.origins (file node.yaml) has *: with credentials each is named`},
		{up + "routes: [{upstream: app, cors: {origins: ['https://a'], methods: ['*'], credentials: true}}]", `routes[0].cors.methods (file node.yaml) has *: with credentials each is named`},
		{up + "routes: [{upstream: app, cors: {origins: ['https://a'], headers: [a, '*'], credentials: true}}]", `routes[0].cors.headers (file node.yaml) has *: with credentials each is named`},
		{up + "routes: [{upstream: app, cors: {origins: ['https://a'], expose: ['*'], credentials: true}}]", `routes[0].cors.expose (file node.yaml) has *: with credentials each is named`},
		{up + "routes: [{upstream: app, methods: [GET], cors: {origins: ['https://a'], methods: [GET, PUT]}}]", `routes[0].cors.methods (file node.yaml) has PUT, which the route does not take: it takes GET`},
		{up + "routes: [{upstream: app, cors: {origins: ['https://a'], max_age: 1500ms}}]", `routes[0].cors.max_age (file node.yaml) is 1.5s: must be whole seconds`},
		{up + "routes: [{upstream: app, cors: {origins: ['https://a/']}}]", `routes[0].cors.origins[0] (file node.yaml) is "https://a/": must be ` + forms["origin"].wants},
		{up + "routes: [{upstream: app, cors: {origins: ['https://a:443']}}]", `routes[0].cors.origins[0] (file node.yaml) is "https://a:443": must be ` + forms["origin"].wants},
		{up + "routes: [{upstream: app, cors: {origins: ['a.example']}}]", `routes[0].cors.origins[0] (file node.yaml) is "a.example": must be ` + forms["origin"].wants},
		{up + "routes: [{upstream: app, cors: {origins: ['https://A']}}]", `routes[0].cors.origins[0] (file node.yaml) is "https://A": must be ` + forms["origin"].wants},
		{up + "routes: [{upstream: app, cors: {origins: ['https://a'], methods: [TRACE]}}]", `routes[0].cors.methods[0] (file node.yaml) is "TRACE": must be a method in capitals, and neither CONNECT nor TRACE, or *`},
		{up + "routes: [{upstream: app, max_rps: 1}]", `routes[0].max_rps (file node.yaml) is not a configuration key: the nearest is cors, valid keys: auth, cors, deadline, decompress_request, header, host, hydrate, max_inflight, max_inflight_per_flow, methods, name, path, path_normalization, required_for_readiness, rewrite, upstream`},
		{up + "routes: [{upstream: web}, {upstream: web}]", `routes[1] (file node.yaml) is for requests that routes[0] is for: one route is allowed`},
		{up + "routes: [{upstream: web, path: /a}, {upstream: app, path: /a/}]", `routes[1] (file node.yaml) is for requests that routes[0] is for: one route is allowed`},
		{up + "routes: [{upstream: web, methods: [GET, PUT], header: {name: x-a}}, {upstream: app, methods: [PUT], header: {name: X-A}}]", `routes[1] (file node.yaml) is for requests that routes[0] is for: one route is allowed`},
		{up + "routes: [{hydrate: [{name: a, upstream: app, path: /, mising: a}]}]", `routes[0].hydrate[0].mising (file node.yaml) is not a configuration key: the nearest is name, valid keys: fallback, name, path, required, upstream`},
		{up + "routes: [{hydrate: [{name: a, upstream: no, path: /}]}]", `routes[0].hydrate[0].upstream (file node.yaml) is "no", which is no upstream: the nearest is app, there are app, web`},
		{up + "routes: [{hydrate: [{name: a, upstream: app, path: /}, {name: a, upstream: app, path: /b}]}]", `routes[0].hydrate[1].name (file node.yaml) is "a", as that of another read: each needs a name of its own`},
		{up + "routes: [{hydrate: [{name: a, upstream: app, path: /, required: 1}]}]", `routes[0].hydrate[0].required (file node.yaml) is 1: must be true or false`},
		{up + "routes: [{hydrate: [{name: _missing, upstream: app, path: /}]}]", `routes[0].hydrate[0].name (file node.yaml) is "_missing": must be a name of at most 64 small letters, digits and underscores, which is not _missing`},
		{up + "routes: [{hydrate: [{name: a, upstream: app, path: /, fallback: '{'}]}]", `routes[0].hydrate[0].fallback (file node.yaml) is "{": must be JSON of at most 512 printable ASCII characters`},
		{up + "routes: [{rewrite: /b, hydrate: [{name: a, upstream: app, path: /}]}]", `routes[0].rewrite (file node.yaml) is "/b": a route that hydrates sends no path on`},
		{up + "routes: [{methods: [GET, POST], hydrate: [{name: a, upstream: app, path: /}]}]", `routes[0].methods (file node.yaml) are GET, POST: a route that hydrates takes GET and HEAD alone`},

		{"http: {trusted_proxies: [10.0.0.1/8]}", `http.trusted_proxies[0] (file node.yaml) is "10.0.0.1/8": must be a network such as 10.0.0.0/8 or fd00::/8`},
		{"http: {trusted_proxies: [10.0.0.1]}", `http.trusted_proxies[0] (file node.yaml) is "10.0.0.1": must be a network such as 10.0.0.0/8 or fd00::/8`},
		{"http: {trusted_proxies: ['::ffff:10.0.0.0/104']}", `http.trusted_proxies[0] (file node.yaml) is "::ffff:10.0.0.0/104": must be a network such as 10.0.0.0/8 or fd00::/8`},
		{"http: {trusted_proxies: [10.0.0.0/8, 10.0.0.0/8]}", `http.trusted_proxies[1] (file node.yaml) is "10.0.0.0/8" again: once is allowed`},
	} {
		t.Run(c.yaml, func(t *testing.T) {
			got, err := Load(sources(t, c.yaml, nil))
			if err == nil {
				t.Fatalf("taken: %s", got.Effective())
			}
			if err.Error() != c.want {
				t.Fatalf("\n got %s\nwant %s", err, c.want)
			}
		})
	}
}

// The largest and smallest valid values are accepted.
func TestListLimitsAreInclusive(t *testing.T) {
	const up = "upstreams: {app: {url: 'http://a'}, 1: {url: 'http://b', health: {path: /}}}\n"
	for _, yaml := range []string{
		"quotas: []", "upstreams: {}", "routes: []", "http: {trusted_proxies: [0.0.0.0/0, '::/0']}",
		"quotas: [" + strings.Repeat("{scope: peer, requests_per_second: 1},", 16) + "]",
		"quotas: [{scope: peer, requests_per_second: 1, burst: 31622400}]",
		"quotas: [{scope: peer, requests_per_second: 0.000001, burst: 31}]",
		"quotas: [{scope: peer, requests_per_second: 1000000000, burst: 1099511627776}]",
		"quotas: [{scope: peer, bytes_per_second: 1024GiB, burst: 1024GiB}]",
		"quotas: [{scope: key, requests_per_second: 1, classes: [anon, authed]}]",
		"quotas: [{scope: instance, requests_per_second: 1, classes: [anon, authed, internal]}]",
		up + "routes: [{upstream: '1'}, {upstream: app, path: /a}]",
		up + "quotas: [{scope: route, route: a, requests_per_second: 1, classes: [anon]}]\nroutes: [{name: a, auth: none, upstream: app}]",
		up + "routes: [{upstream: app}, {upstream: app, methods: [GET]}, {upstream: app, methods: [PUT]}, {upstream: app, header: {name: a}}, {upstream: app, header: {name: a, value: b}}, {upstream: app, host: a}]",
		up + "routes: [{upstream: '1', required_for_readiness: true}]",
		up + "routes: [{required_for_readiness: true, hydrate: [{name: a, upstream: '1', path: /, required: true}, {name: b, upstream: app, path: /}]}]",
		up + "routes: [{upstream: app, methods: [GET], cors: {origins: ['*'], methods: ['*'], headers: ['*'], expose: ['*']}}]",
		up + "routes: [{methods: [GET, HEAD], hydrate: [{name: a, upstream: app, path: /}]}]",
	} {
		if _, err := Load(sources(t, yaml, nil)); err != nil {
			t.Errorf("%s: %v", yaml, err)
		}
	}
}

// By default, a preflight allows the methods of the route.
func TestDefaultCORSMethods(t *testing.T) {
	const up = "upstreams: {app: {url: 'http://a'}}\n"
	for yaml, want := range map[string]string{
		"{upstream: app, cors: {origins: ['*']}}":                        "GET HEAD POST",
		"{upstream: app, methods: [PUT, PATCH], cors: {origins: ['*']}}": "PUT PATCH",
		"{upstream: app, cors: {origins: ['*'], methods: [DELETE]}}":     "DELETE",
		"{upstream: app, methods: [PUT, PATCH]}":                         "",
	} {
		c, err := Load(sources(t, up+"routes: ["+yaml+"]", nil))
		if err != nil || strings.Join(c.Routes[0].CORS.Methods, " ") != want {
			t.Errorf("%s: %v, %v, want %s", yaml, c, err, want)
		}
	}
}

// In the environment and in flags, lists are strict JSON.
func TestListsAreJSON(t *testing.T) {
	for text, want := range map[string]string{
		``:                        `quotas (flag --set quotas=) is not JSON: unexpected EOF`,
		`[{]`:                     `quotas (flag --set quotas=[{]) is not JSON: invalid character ']' at start of value within "/0" after offset 2`,
		`[] []`:                   `quotas (flag --set quotas=[] []) is not JSON: invalid character '[' after top-level value after offset 3`,
		`[{"scope":1,"scope":2}]`: `quotas (flag --set quotas=[{"scope":1,"scope":2}]) is not JSON: duplicate object member name "scope" within "/0"`,
		`- scope: peer`:           `quotas (flag --set quotas=- scope: peer) is not JSON: invalid character ' ' in number (expecting digit) after offset 1`,
		`{}`:                      `quotas (flag --set quotas={}) is a section: must be a list of at most 16 quotas`,
		`null`:                    `quotas (flag --set quotas=null) is empty: must be a list of at most 16 quotas`,
		`[{"scope":"peer","requests_per_second":1,"burst":1e3}]`: `quotas[0].burst (flag --set quotas=[{"scope":"peer","requests_per_second":1,"burst":1e3}]) is 1000: must be a whole number or, of bytes, a size such as 512KiB, 256MiB or 1GiB, from 1 to 1099511627776`,
	} {
		_, err := Load(sources(t, "", nil, "quotas="+text))
		if err == nil || err.Error() != want {
			t.Errorf("\n got %v\nwant %s", err, want)
		}
	}
}

// Diff shows lists like other keys.
func TestDiff(t *testing.T) {
	old, err := Load(Sources{File: "testdata/front.yaml"})
	if err != nil {
		t.Fatal(err)
	}
	s := sources(t, strings.Replace(front, "5000", "0.5", 1), nil, "node.in_flight=600")
	is, err := Load(s)
	if err != nil {
		t.Fatal(err)
	}
	const quota = `[{"scope": "instance", "requests_per_second": %s, "burst": 100, "classes": ["internal", "authed", "anon"], "shadow": false}]`
	want := []Change{{"node.in_flight", "512", "600", false}, {"permits.wallet", "512", "600", false},
		{"quotas", strings.Replace(quota, "%s", "5000", 1), strings.Replace(quota, "%s", "0.5", 1), true}}
	if got := Diff(old, is); !slices.Equal(got, want) {
		t.Fatalf("\n got %+v\nwant %+v", got, want)
	}
	if got := Diff(is, is); len(got) > 0 {
		t.Fatalf("%+v", got)
	}
}
