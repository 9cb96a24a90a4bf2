package settings

import (
	"testing"

	"macronode/adapters/index"
	"macronode/adapters/proxy"
	"macronode/cmd/macronode/internal/testkit"
	"macronode/core/state"
)

func (m Memory) part(t *testing.T, name string) int64 {
	t.Helper()
	for _, s := range m {
		if s.Name == name {
			return s.Bytes()
		}
	}
	t.Fatalf("no part is called %s", name)
	return 0
}

// TestGarbage: the garbage is bounded, whatever the size of the tables.
func TestGarbage(t *testing.T) {
	for bytes, want := range map[int64]int{garbage / 2: 100, garbage: 100, 4 * garbage: 25, 1000 * garbage: 1} {
		if got := (Memory{{tables, []MemoryTerm{{"one", 1, bytes}}}}).GCPercent(); got != want {
			t.Errorf("beside %d: %d percent, not %d", bytes, got, want)
		}
	}
	m := MemoryBound(testkit.Config(t))
	if lies := m.part(t, tables) * int64(m.GCPercent()) / 100; lies > garbage || lies < garbage/2 {
		t.Errorf("as it comes %d may lie about", lies)
	}
}

// TestMemoryBoundGrowsWithItsKeys: each key changes its part by the size of one more item, and no other part.
func TestMemoryBoundGrowsWithItsKeys(t *testing.T) {
	base := MemoryBound(testkit.Config(t))
	if base.part(t, "snapshot") != state.Bytes(StateLimits(testkit.Config(t))) || base.part(t, "state") != 2*base.part(t, "snapshot") {
		t.Fatalf("%+v", base)
	}
	for set, grows := range map[string]map[string]int64{
		"wallet.limits.accounts=1000001":    {"state": 64, "snapshot": 32}, // a row of its table; the slots have room for both
		"wallet.limits.holds=100001":        {"state": 64, "snapshot": 32},
		"wallet.idempotency.keys=1000001":   {"state": 64, "snapshot": 32},
		"api_keys=1025":                     {"state": 64, "snapshot": 32},
		"node.in_flight=513":                {"requests": smallOne + ticket, "admission": 64},
		"permits.query=33":                  {"admission": 64},
		"quota_limits.max_peers=1048576":    {"admission": 0},
		"http.header_bytes=17KiB":           {"connections": 8192 << 10},
		"journal.max_unsynced_bytes=9MiB":   {"batches": copies << 20},
		"listen.max_conns=8193":             {"connections": conn},
		"accounting.meter_requests=true":    {"metering": 2 << 10 << 14},
		"index.cache_bytes=65MiB":           {"index": 1 << 20},
		"storage.uploads=65":                {},
		"wallet.limits.tenant_accounts=999": {},
		"listen.max_conns=8192":             {},
		"http.request_deadline=6s":          {},
	} {
		is := MemoryBound(testkit.Config(t, set))
		for _, s := range is {
			was, least := base.part(t, s.Name), grows[s.Name]
			if got := s.Bytes() - was; got < least || least == 0 && got != 0 {
				t.Errorf("%s: %s grows by %d, not %d", set, s.Name, got, least)
			}
		}
	}
	if few := MemoryBound(testkit.Config(t, "listen.max_conns=1")); few.part(t, "connections") != 2*(conn+16<<10) {
		t.Errorf("one connection of each listener takes %d", few.part(t, "connections"))
	}
	proven := []string{"listen.max_conns=1", "listen.tls.cert=c", "listen.tls.key=k"}
	const each = 2*(conn+16<<10) + veiled + framed
	for more, want := range map[string]int64{
		"listen.tls.admin=false":    each + 64<<10 + 100*untold,
		"http.window_bytes=1MiB":    each + 1<<20 + 100*untold,
		"http.streams=7":            each + 64<<10 + 7*untold,
		"listen.tls.admin=true":     each + veiled + framed + 2*(64<<10+100*untold),
		"listen.tls.key=elsewhere":  each + 64<<10 + 100*untold,
		"listen.admin=127.0.0.1:80": each + 64<<10 + 100*untold,
	} {
		if few := MemoryBound(testkit.Config(t, append(proven, more)...)); few.part(t, "connections") != want {
			t.Errorf("with TLS and %s one connection of each takes %d, not %d", more, few.part(t, "connections"), want)
		}
	}
}

// TestMemoryOfAbandonedEngines: engines of the index that may stop in one process are counted.
func TestMemoryOfAbandonedEngines(t *testing.T) {
	c := testkit.Config(t)
	want := index.Bytes(indexLimits(c)) + index.MaxEngineFailures*index.AbandonedBytes(indexLimits(c))
	if is := MemoryBound(c).part(t, "index"); is != want {
		t.Errorf("the index takes %d, want %d", is, want)
	}
}

// TestMemoryOfUpstreams: upstreams that may be called over HTTP/2 take a window for each request.
func TestMemoryOfUpstreams(t *testing.T) {
	with := func(upstream string) int64 {
		return MemoryBound(testkit.Config(t, `upstreams={"app":{`+upstream+`}}`, `routes=[{"upstream":"app"}]`)).part(t, "connections")
	}
	first := with(`"url":"http://a"`)
	second := first + 4*256*proxy.StreamBytes + (4*256+proxy.MaxIdleConns)*(proxy.H2ConnBytes-proxy.H1ConnBytes)
	for upstream, want := range map[string]int64{
		`"url":"http://a","protocol":"http1"`:  first,
		`"url":"https://a","protocol":"http1"`: first,
		`"url":"http://a","protocol":"http2"`:  second,
		`"urls":["http://a","https://a"]`:      second,
		`"url":"https://a","protocol":"http2"`: second,
	} {
		if got := with(upstream); got != want {
			t.Errorf("%s takes %d, not %d", upstream, got, want)
		}
	}
	if none := MemoryBound(testkit.Config(t, `upstreams={"app":{"url":"https://a"}}`)).part(t, "connections"); none >= first {
		t.Errorf("without a route it takes %d", none)
	}
}
