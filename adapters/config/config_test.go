package config

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"macronode/core/types"
)

// sources returns the given YAML, variables and flags (key=text). The file is ./node.yaml in a
// temporary directory.
func sources(t *testing.T, yaml string, environ []string, flags ...string) Sources {
	t.Helper()
	s := Sources{Environ: environ, Elsewhere: []string{"MACRONODE_URL"}}
	if yaml != "" {
		t.Chdir(t.TempDir())
		if err := os.WriteFile("node.yaml", []byte(yaml), 0o600); err != nil {
			t.Fatal(err)
		}
		s.File = "node.yaml"
	}
	for _, f := range flags {
		key, text, _ := strings.Cut(f, "=")
		s.Flags = append(s.Flags, Flag{Name: "--set " + f, Key: key, Text: text})
	}
	return s
}

func TestLaterLayersOverride(t *testing.T) {
	yaml := "listen: {max_conns: 1}\nwallet:\n  idempotency:\n    ttl: 1h\nlog:\nnode: {lame_duck: 10s}\n"
	environ := []string{"HOME=/", "MACRONODE_WALLET__IDEMPOTENCY__TTL=2h", "MACRONODE_NODE__LAME_DUCK=20s", "MACRONODE_URL=x"}
	c, err := Load(sources(t, yaml, environ, "node.lame_duck=30s"))
	if err != nil {
		t.Fatal(err)
	}
	if c.Listen.MaxConns != 1 || c.Wallet.Idempotency.TTL != 2*time.Hour || c.Node.LameDuck != 30*time.Second ||
		c.Node.Drain != 3*time.Second {
		t.Fatalf("%+v", c)
	}
	from := map[string]string{}
	for _, s := range c.Settings() {
		from[s.Key] = s.From
	}
	for key, want := range map[string]string{
		"listen.max_conns":              "file node.yaml",
		"wallet.idempotency.ttl":        "environment MACRONODE_WALLET__IDEMPOTENCY__TTL",
		"node.lame_duck":                "flag --set node.lame_duck=30s",
		"node.drain":                    "default",
		"wallet.limits.max_daily_issue": "default: as wallet.limits.max_daily_debit",
	} {
		if from[key] != want {
			t.Errorf("%s comes from %q, not %q", key, from[key], want)
		}
	}
}

func TestKeyFollowsAnotherUntilSet(t *testing.T) {
	c, err := Load(sources(t, "", nil, "storage.objects=7", "storage.bucket_objects=3", "wallet.limits.max_daily_debit=200000000000000000000"))
	if err != nil {
		t.Fatal(err)
	}
	l, s := c.Wallet.Limits, c.Storage
	if s.Holdings != 7 || s.Parts.Parts != 7 || s.BucketObjects != 3 || l.IssueDay != l.Day {
		t.Fatalf("%+v, %+v", l, s)
	}
}

// Every error is one sentence with the key, the layer and the allowed values.
func TestErrorsNameKeyAndLayer(t *testing.T) {
	for _, c := range []struct {
		yaml, environ, set, want string
	}{
		{yaml: "listen: {htp: x}", want: `listen.htp (file node.yaml) is not a configuration key: valid keys in listen: admin, http, insecure, max_conns, max_conns_per_peer, s3, tls`},
		{yaml: "listen.http: x", want: `listen.http (file node.yaml) is "x": must be host:port, with a port from 0 to 65535, or unix:PATH`},
		{yaml: "lissen: {http: x}", want: `lissen (file node.yaml) is not a configuration key: valid sections: accounting, admin, api_keys, audit, data, exports, http, index, journal, listen, log, node, permits, queue, quota_limits, quotas, routes, storage, upstreams, wallet`},
		{yaml: "wallet: {limits: {max_daily_debit: {a: 1}}}", want: `wallet.limits.max_daily_debit (file node.yaml) is a section: must be an amount, a text of digits without leading zeros, from 1 to 170141183460469231731687303715884105727`},
		{yaml: "wallet: {limits: {max_daily_debit: 5}}", want: `wallet.limits.max_daily_debit (file node.yaml) is 5: must be an amount, a text of digits without leading zeros, from 1 to 170141183460469231731687303715884105727`},
		{yaml: "api_keys: '5'", want: `api_keys (file node.yaml) is "5": must be a whole number from 1 to 100000`},
		{yaml: "api_keys: 5.5", want: `api_keys (file node.yaml) is 5.5: must be a whole number from 1 to 100000`},
		{yaml: "api_keys: [5]", want: `api_keys (file node.yaml) is a list: must be a whole number from 1 to 100000`},
		{yaml: "api_keys:", want: `api_keys (file node.yaml) is empty: must be a whole number from 1 to 100000`},
		{yaml: "listen: {insecure: yes please}", want: `listen.insecure (file node.yaml) is "yes please": must be true or false`},
		{yaml: "listen: {insecure: 'true'}", want: `listen.insecure (file node.yaml) is "true": must be true or false`},
		{yaml: "data: 5", want: `data (file node.yaml) is 5: must be the path of a directory`},
		{yaml: "listen: 5", want: `listen (file node.yaml) is 5: must be a section, valid keys in listen: admin, http, insecure, max_conns, max_conns_per_peer, s3, tls`},
		{yaml: "listen:\n  http: a\n  http: b", want: `file node.yaml has the key http twice, in lines 2 and 3: once is allowed`},
		{yaml: "\n", want: `file node.yaml is empty: a file with no keys, for the defaults, has {} or a comment`},
		{yaml: "a: 1\n---\nb: 1", want: `file node.yaml has more than one document: one is allowed`},
		{yaml: "---\n---\nb: 1", want: `file node.yaml has more than one document: one is allowed`},
		{yaml: "a: 1\n...\nb: 1", want: `file node.yaml has more than one document: one is allowed`},
		{yaml: "--- {api_keys: 5}\n--- {api_keys: 6}", want: `file node.yaml has more than one document: one is allowed`},
		{yaml: "- 1", want: `file node.yaml has no keys: must be one YAML mapping of sections`},
		{yaml: "\tx: 1", want: `file node.yaml is not YAML: found character that cannot start any token`},
		{environ: "MACRONODE_DATA=a\xff", want: `data (environment MACRONODE_DATA) is "a\xff": must be the path of a directory`},
		{environ: "MACRONODE_LISTEN__HTP=x", want: `MACRONODE_LISTEN__HTP (environment) is not a configuration key: MACRONODE_LISTEN__HTTP is one`},
		{environ: "MACRONODE_listen__http=x", want: `MACRONODE_listen__http (environment) is not a configuration key: did you mean MACRONODE_LISTEN__HTTP? Two underscores separate section and key`},
		{environ: "MACRONODE_LISTEN_HTTP=x", want: `MACRONODE_LISTEN_HTTP (environment) is not a configuration key: did you mean MACRONODE_LISTEN__HTTP? Two underscores separate section and key`},
		{environ: "MACRONODE_JOURNAL_RESERVE__BYTES=x", want: `MACRONODE_JOURNAL_RESERVE__BYTES (environment) is not a configuration key: valid sections: accounting, admin, api_keys, audit, data, exports, http, index, journal, listen, log, node, permits, queue, quota_limits, quotas, routes, storage, upstreams, wallet`},
		{environ: "MACRONODE_LISTEN__HTTP_PORT=x", want: `MACRONODE_LISTEN__HTTP_PORT (environment) is not a configuration key: valid keys in listen: admin, http, insecure, max_conns, max_conns_per_peer, s3, tls`},
		{environ: "MACRONODE_PORT=8080", want: `MACRONODE_PORT (environment) is not a configuration key: valid sections: accounting, admin, api_keys, audit, data, exports, http, index, journal, listen, log, node, permits, queue, quota_limits, quotas, routes, storage, upstreams, wallet`},
		{environ: "MACRONODE_NODE__DRAIN=3", want: `node.drain (environment MACRONODE_NODE__DRAIN) is "3": must be a duration such as 200ms, 5s or 24h, from 0s to 30m`},
		{environ: "MACRONODE_LISTEN__INSECURE=1", want: `listen.insecure (environment MACRONODE_LISTEN__INSECURE) is "1": must be true or false`},
		{set: "node.drain=31m", want: `node.drain (flag --set node.drain=31m) is 31m: must be a duration such as 200ms, 5s or 24h, from 0s to 30m`},
		{set: "node.drain=-1s", want: `node.drain (flag --set node.drain=-1s) is -1s: must be a duration such as 200ms, 5s or 24h, from 0s to 30m`},
		{set: "nod.drain=1s", want: `nod.drain (flag --set nod.drain=1s) is not a configuration key: valid sections: accounting, admin, api_keys, audit, data, exports, http, index, journal, listen, log, node, permits, queue, quota_limits, quotas, routes, storage, upstreams, wallet`},
		{set: "node.drain.x=1s", want: `node.drain.x (flag --set node.drain.x=1s) is not a configuration key: valid keys in node: abort, commit_timeout, drain, in_flight, lame_duck, start_deadline, trust_clock`},
		{set: "node=1s", want: `node (flag --set node=1s) is not a configuration key: valid sections: accounting, admin, api_keys, audit, data, exports, http, index, journal, listen, log, node, permits, queue, quota_limits, quotas, routes, storage, upstreams, wallet`},
		{set: "journal.max_unsynced_bytes=8MB", want: `journal.max_unsynced_bytes (flag --set journal.max_unsynced_bytes=8MB) is "8MB": must be a size such as 512KiB, 256MiB or 1GiB, from 4MiB to 1GiB`},
		{set: "journal.min_free_bytes=9000000000GiB", want: `journal.min_free_bytes (flag --set journal.min_free_bytes=9000000000GiB) is "9000000000GiB": must be a size such as 512KiB, 256MiB or 1GiB, from 64MiB to 1024GiB`},
		{set: "wallet.limits.max_amount=007", want: `wallet.limits.max_amount (flag --set wallet.limits.max_amount=007) is "007": must be an amount, a text of digits without leading zeros, from 1 to 170141183460469231731687303715884105727`},
		{set: "log.level=loud", want: `log.level (flag --set log.level=loud) is loud: must be one of debug, info, warn, error`},
	} {
		var environ, flags []string
		if c.environ != "" {
			environ = []string{c.environ}
		}
		if c.set != "" {
			flags = []string{c.set}
		}
		t.Run(c.want, func(t *testing.T) {
			got, err := Load(sources(t, c.yaml, environ, flags...))
			if err == nil {
				t.Fatalf("taken: %s", got.Effective())
			}
			if err.Error() != c.want {
				t.Fatalf("\n got %s\nwant %s", err, c.want)
			}
		})
	}
}

func TestEveryErrorIsReported(t *testing.T) {
	_, err := Load(sources(t, "a: 1\nb: 2", []string{"MACRONODE_C=3"}, "d=4"))
	if err == nil || len(strings.Split(err.Error(), "\n")) != 4 {
		t.Fatal(err)
	}
}

func TestMissingFileIsAnError(t *testing.T) {
	_, err := Load(Sources{File: "nowhere.yaml"})
	if err == nil || err.Error() != "file nowhere.yaml cannot be read: no such file or directory" {
		t.Fatal(err)
	}
}

// A second document is rejected; a marker before or after the only one is allowed.
func TestDocumentMarkers(t *testing.T) {
	for _, yaml := range []string{"---\napi_keys: 5", "# x\n\n---\napi_keys: 5\n", "--- {api_keys: 5}"} {
		t.Run(yaml, func(t *testing.T) {
			c, err := Load(sources(t, yaml, nil))
			if err != nil || c.APIKeys != 5 {
				t.Fatal(c, err)
			}
		})
	}
}

// Effective prints a file with the same values.
func TestEffectiveRoundTrips(t *testing.T) {
	first, err := Load(Sources{Flags: []Flag{
		{Key: "data", Text: "o'dd \"dir\"\n#: é\u2028\x7f\ufeff\u0085"}, {Key: "listen.http", Text: "[::1]:0"}, {Key: "listen.insecure", Text: "true"},
		{Key: "node.lame_duck", Text: "1m30.5s"}, {Key: "journal.min_free_bytes", Text: "67108865B"},
		{Key: "wallet.limits.tenant_accounts", Text: "9"}, {Key: "wallet.limits.max_amount", Text: "1"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	second, err := Load(sources(t, first.Effective(), nil))
	if err != nil {
		t.Fatalf("%v\n%s", err, first.Effective())
	}
	a, b := *first, *second
	a.from, b.from = nil, nil
	if !slices.EqualFunc(keys(&a), keys(&b), func(x, y key) bool { return x.path == y.path && format(x.value) == format(y.value) }) {
		t.Fatalf("\n%s\n%s", first.Effective(), second.Effective())
	}
}

func TestTextsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		unit := rapid.SampledFrom([]time.Duration{1, time.Millisecond, time.Second, time.Minute, time.Hour}).Draw(t, "unit")
		d := unit * time.Duration(rapid.IntRange(0, 500).Draw(t, "units"))
		if back, err := time.ParseDuration(duration(d)); err != nil || back != d {
			t.Fatalf("%v as %q is %v, %v", d, duration(d), back, err)
		}
		b := Bytes(rapid.Int64Min(0).Draw(t, "bytes")) >> rapid.IntRange(0, 63).Draw(t, "shift")
		b <<= rapid.SampledFrom([]int{0, 10, 20, 30}).Draw(t, "unit of bytes")
		if back, err := parseBytes(b.String()); b >= 0 && (err != nil || back != b) {
			t.Fatalf("%d as %q is %d, %v", b, b, back, err)
		}
	})
}

// Each key of the tree has all tags, and no two keys are equal.
func TestEveryKeyHasAllTags(t *testing.T) {
	seen := map[string]bool{}
	all := keys(new(Config))
	for _, k := range all {
		complete(t, k)
		switch {
		case k.change() != "restart" && k.change() != "hot":
			t.Errorf("%s: changes by %q", k.path, k.change())
		case seen[k.variable()]:
			t.Errorf("%s: its variable is another key's", k.path)
		}
		seen[k.variable()] = true
		if leader, ok := k.follows(); ok && !slices.ContainsFunc(all, func(l key) bool {
			_, chained := l.follows()
			return l.path == leader && !chained && l.value.Type() == k.value.Type()
		}) {
			t.Errorf("%s: follows %s, which does not exist", k.path, leader)
		}
	}
	if in, ok := (&layers{keys: all}).find("node.in_flight"); !ok || in.tag.Get("max") != strconv.Itoa(types.MaxTickets) {
		t.Errorf("node.in_flight may be more than there are tickets")
	}
	const reads = 3 // of one route, each with its own ticket
	if k, ok := (&layers{keys: all}).find("permits.proxy"); !ok || k.tag.Get("max") != strconv.Itoa(types.MaxTickets/reads) {
		t.Errorf("permits.proxy may be more than there are tickets for their reads")
	}
	if f, ok := reflect.TypeFor[Route]().FieldByName("Hydrate"); !ok || f.Tag.Get("most") != strconv.Itoa(reads) {
		t.Errorf("a route may have other than %d reads", reads)
	}
}

// complete checks the tags of a key and, for a list, of each key of its entries.
func complete(t *testing.T, k key) {
	t.Helper()
	_, ranged := k.tag.Lookup("min")
	_, topped := k.tag.Lookup("max")
	form, formed := k.tag.Lookup("form")
	_, isForm := forms[form]
	number := slices.ContainsFunc([]any{0, Bytes(0), time.Second, types.Amount{}, Rate{}, Burst{}}, func(like any) bool {
		return reflect.TypeOf(like) == k.value.Type()
	})
	switch {
	case !strings.HasSuffix(k.doc(), "."), strings.Contains(k.doc(), "|"):
		t.Errorf("%s: its doc is not a sentence for a table: %q", k.path, k.doc())
	case number != (ranged && topped), ranged != topped:
		t.Errorf("%s: a number has a range, and nothing else has", k.path)
	case formed != isForm:
		t.Errorf("%s: there is no form %q", k.path, form)
	case k.wants() == "":
		t.Errorf("%s: takes anything", k.path)
	case k.value.Kind() == reflect.String && secret(k.path) && !strings.HasSuffix(k.path, "_file"):
		t.Errorf("%s: a secret is given by the name of its file", k.path)
	case !isList(k.value.Type()):
	case k.most() <= 0 || k.tag.Get("takes") == "":
		t.Errorf("%s: a list needs its largest length and its elements", k.path)
	case isSection(k.value.Type().Elem()):
		for _, in := range (key{path: k.path + "[]", value: reflect.New(k.value.Type().Elem()).Elem()}).inside() {
			if complete(t, in); in.change() != "" {
				t.Errorf("%s: changes by itself", in.path)
			}
		}
	}
}

func secret(path string) bool {
	return slices.ContainsFunc([]string{"secret", "password", "token", "credential"}, func(w string) bool { return strings.Contains(path, w) })
}

// TestServiceLinksAreIgnored: variables that Kubernetes sets for Services named macronode or
// macronode-admin, as Docker does for links, are not configuration.
func TestServiceLinksAreIgnored(t *testing.T) {
	for _, variable := range []string{
		"MACRONODE_SERVICE_HOST=10.0.0.7", "MACRONODE_SERVICE_PORT=8080", "MACRONODE_SERVICE_PORT_HTTP=8080", "MACRONODE_SERVICE_PORT_HTTP_ADMIN=8081",
		"MACRONODE_PORT=tcp://10.0.0.7:8080", "MACRONODE_PORT_8080_TCP=tcp://10.0.0.7:8080", "MACRONODE_PORT_8080_TCP_PROTO=tcp",
		"MACRONODE_PORT_8080_TCP_PORT=8080", "MACRONODE_PORT_8080_TCP_ADDR=10.0.0.7", "MACRONODE_PORT_53_UDP_ADDR=10.0.0.7", "MACRONODE_PORT_53_SCTP=sctp://10.0.0.7:53",
		"MACRONODE_ADMIN_SERVICE_HOST=10.0.0.8", "MACRONODE_ADMIN_PORT=tcp://[fd00::8]:8081", "MACRONODE_ADMIN_PORT_8081_TCP_ADDR=fd00::8",
	} {
		if _, err := Load(sources(t, "", []string{variable})); err != nil {
			t.Errorf("%s: %v", variable, err)
		}
	}
	for _, variable := range []string{
		"MACRONODE_SERVICE=x", "MACRONODE_SERVICE_HOSTS=x", "MACRONODE_XSERVICE_HOST=x", "MACRONODE_PORT_TCP=x", "MACRONODE_PORT_8080_TCP_HOST=x", "MACRONODE_PORT_8080_HTTP=x",
		"MACRONODE_ADMIN_PORT=8081", "MACRONODE_service_host=x",
	} {
		if _, err := Load(sources(t, "", []string{variable})); err == nil {
			t.Errorf("%s is taken", variable)
		}
	}
}

// TestDataDirOfInvalidConfiguration: the data directory is found by the order of the layers although other keys are
// invalid. It is not guessed if the file hides it.
func TestDataDirOfInvalidConfiguration(t *testing.T) {
	for _, c := range []struct {
		file, environ, flag string
		want                string
		ok                  bool
	}{
		{"data: here\nnode: 7\n", "", "", "here", true},
		{"data: here\nnode: 7\n", "there", "", "there", true},
		{"data: here\n", "there", "flag", "flag", true},
		{"node: 7\n", "", "", "./macronode-data", true},
		{"data: {\n", "", "flag", "flag", true},
		{"data: {\n", "", "", "", false},
		{"data: [a, b]\n", "", "", "", false},
		{"data:\n", "", "", "", false},
	} {
		s := Sources{File: filepath.Join(t.TempDir(), "config.yaml")}
		if err := os.WriteFile(s.File, []byte(c.file), 0o600); err != nil {
			t.Fatal(err)
		}
		if c.environ != "" {
			s.Environ = []string{"MACRONODE_DATA=" + c.environ}
		}
		if c.flag != "" {
			s.Flags = []Flag{{Name: "--data", Key: "data", Text: c.flag}}
		}
		if dir, ok := DataDir(s); dir != c.want || ok != c.ok {
			t.Errorf("%+v: %q, %v", c, dir, ok)
		}
	}
	if dir, ok := DataDir(Sources{File: filepath.Join(t.TempDir(), "missing")}); ok {
		t.Errorf("a file that is not there: %q", dir)
	}
}
