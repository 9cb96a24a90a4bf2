package main

import (
	"fmt"
	"log/slog"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"macronode/adapters/audit"
	"macronode/adapters/config"
	"macronode/adapters/httpserver"
	"macronode/adapters/indexer"
	"macronode/adapters/loop"
	"macronode/adapters/proxy"
	"macronode/adapters/registry"
	"macronode/core/node"
)

// carried is all that the configuration becomes.
type carried struct {
	node          node.Config
	door, gate    loop.Door
	public, admin httpserver.Config
	index         indexer.Limits
	audit         audit.Limits
	snapshot      int64
	trusted       []netip.Prefix
	proxy         proxy.Config
	adminAPI      adminSettings
}

func carry(t *testing.T, c *config.Config) carried {
	t.Helper()
	l := &life{config: c, log: slog.New(slog.DiscardHandler)}
	first := firstGate(c)
	return carried{nodeConfig(c).With(&first), door(c), passes(c), l.publicServer(), l.adminServer(), indexLimits(c), auditLimits(c), int64(c.Journal.Snapshot), c.HTTP.TrustedProxies, proxyOf(c), newAdminSettings(c)}
}

// TestEveryKeyArrives: a number or a time that the operator sets reaches whoever holds it;
// none of them is read and forgotten.
func TestEveryKeyArrives(t *testing.T) {
	base := configured(t)
	was, keys := carry(t, base), 0
	for _, l := range registry.Limits {
		if strings.HasPrefix(l.Key, "words.") {
			continue
		}
		keys++
		if l.Key == "routes" { // each wants an upstream that is there
			const app = `upstreams={"app":{"url":"http://127.0.0.1:9"}}`
			if reflect.DeepEqual(carry(t, configured(t, app)), carry(t, configured(t, app, `routes=[{"upstream":"app","max_inflight":3}]`))) {
				t.Errorf("%s reaches nobody", l.Key)
			}
			continue
		}
		is := carry(t, configured(t, l.Key+"="+changed(t, base, l.Key)))
		if reflect.DeepEqual(was, is) {
			t.Errorf("%s reaches nobody", l.Key)
		}
	}
	if keys < 30 {
		t.Fatalf("only %d keys were set", keys)
	}
}

// changed is a value of a key that is not the one that it has, and that it may have
// alone.
func changed(t *testing.T, c *config.Config, key string) string {
	t.Helper()
	for _, s := range c.Settings() {
		if s.Key != key {
			continue
		}
		for _, try := range []string{"3", "7", "11", "30", "99999", "300", "90s", "70m", "7h", "900ms", "30ms", "2ms", "1s", "2s", "4s", `["10.0.0.0/8"]`, `["node.example"]`, `[{"scope":"instance","requests_per_second":5}]`, `{"app":{"url":"http://127.0.0.1:9"}}`, "65MiB", "128KiB", "32KiB", "9MiB", "700MiB", "1000000000000000000000"} {
			if try != s.Value && accepted(key, try) {
				return try
			}
		}
	}
	t.Fatalf("no other value of %s is known", key)
	return ""
}

func accepted(key, value string) bool {
	c := newDesk()
	c.tree = &tree{Set: []string{fmt.Sprintf("%s=%s", key, value)}}
	_, err := c.load()
	return err == nil
}
