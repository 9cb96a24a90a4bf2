package config

import (
	"fmt"
	"testing"
	"time"

	"macronode/core/types"
)

// TestCheck tests Check on values without layers.
func TestCheck(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Config)
		want   string // empty: valid
	}{
		{"defaults", func(*Config) {}, ""},
		{"no directory", func(c *Config) { c.Data = "" }, `data (default) is "": must be the path of a directory`},
		{"no port", func(c *Config) { c.Listen.Admin = "127.0.0.1" }, `listen.admin (default) is "127.0.0.1": must be host:port, with a port from 0 to 65535, or unix:PATH`},
		{"port too high", func(c *Config) { c.Listen.HTTP = "127.0.0.1:65536" }, `listen.http (default) is "127.0.0.1:65536": must be host:port, with a port from 0 to 65535, or unix:PATH`},
		{"port by name", func(c *Config) { c.Listen.HTTP = "127.0.0.1:http" }, `listen.http (default) is "127.0.0.1:http": must be host:port, with a port from 0 to 65535, or unix:PATH`},
		{"port with zeros", func(c *Config) { c.Listen.HTTP = "127.0.0.1:080" }, `listen.http (default) is "127.0.0.1:080": must be host:port, with a port from 0 to 65535, or unix:PATH`},
		{"loopback by name", func(c *Config) { c.Listen.HTTP = "localhost:0" }, ""},
		{"loopback of six", func(c *Config) { c.Listen.HTTP = "[::1]:0" }, ""},
		{"a socket of the file system", func(c *Config) { c.Listen.HTTP = "unix:/run/macronode.sock" }, ""},
		{"a socket without a name", func(c *Config) { c.Listen.HTTP = "unix:" }, `listen.http (default) is "unix:": must be host:port, with a port from 0 to 65535, or unix:PATH`},
		{"the whole of 127", func(c *Config) { c.Listen.HTTP = "127.9.9.9:0" }, ""},
		{"everywhere", func(c *Config) { c.Listen.HTTP = ":8080" }, `listen.http (default) is ":8080", which is beyond loopback: requires listen.tls, or listen.insecure: true, for it has no TLS`},
		{"a neighbour's network", func(c *Config) { c.Listen.HTTP = "192.168.0.7:80" }, `listen.http (default) is "192.168.0.7:80", which is beyond loopback: requires listen.tls, or listen.insecure: true, for it has no TLS`},
		{"admin everywhere", func(c *Config) { c.Listen.Admin = "0.0.0.0:1" }, `listen.admin (default) is "0.0.0.0:1", which is beyond loopback: requires listen.tls, or listen.insecure: true, for it has no TLS`},
		{"a name that only looks local", func(c *Config) { c.Listen.HTTP = "localhost.example:1" }, `listen.http (default) is "localhost.example:1", which is beyond loopback: requires listen.tls, or listen.insecure: true, for it has no TLS`},
		{"insecure is set", func(c *Config) { c.Listen.HTTP, c.Listen.Insecure = ":8080", true }, ""},
		{"everywhere, with TLS", func(c *Config) { c.Listen.HTTP, c.Listen.TLS.Cert, c.Listen.TLS.Key = ":8080", "c", "k" }, ""},
		{"admin everywhere, with TLS", func(c *Config) { c.Listen.Admin, c.Listen.TLS = ":8081", TLS{"c", "k", "required", true} }, ""},
		{"admin everywhere, with TLS of the other listener only", func(c *Config) { c.Listen.Admin, c.Listen.TLS.Cert, c.Listen.TLS.Key = ":8081", "c", "k" }, `listen.admin (default) is ":8081", which is beyond loopback: requires listen.tls, or listen.insecure: true, for it has no TLS`},
		{"a certificate without key", func(c *Config) { c.Listen.TLS.Cert = "c" }, `listen.tls.cert (default) is "c": requires listen.tls.key too`},
		{"a key without certificate", func(c *Config) { c.Listen.TLS.Key = "k" }, `listen.tls.key (default) is "k": requires listen.tls.cert too`},
		{"a certificate with a zero byte", func(c *Config) { c.Listen.TLS.Cert, c.Listen.TLS.Key = "c\x00", "k" }, `listen.tls.cert (default) or listen.tls.key (default) has a zero byte: each needs the path of a file`},
		{"admin without certificate", func(c *Config) { c.Listen.TLS.Admin = true }, `listen.tls.admin (default) is true: requires listen.tls.cert too`},
		{"post-quantum without certificate", func(c *Config) { c.Listen.TLS.Quantum = "required" }, `listen.tls.post_quantum (default) is required: requires listen.tls.cert too`},
		{"post-quantum of another kind", func(c *Config) { c.Listen.TLS.Quantum = "off" }, `listen.tls.post_quantum (default) is off: must be one of preferred, required`},
		{"one address for both", func(c *Config) { c.Listen.Admin = c.Listen.HTTP }, `listen.admin (default) is listen.http (default): each listener needs an address of its own`},
		{"any port for both", func(c *Config) { c.Listen.Admin, c.Listen.HTTP = "127.0.0.1:0", "127.0.0.1:0" }, ""},
		{"header later than the request", func(c *Config) { c.HTTP.HeaderTimeout = 6 * time.Second }, `http.header_timeout (default) is 6s: must be at most http.read_timeout (default), which is 5s`},
		{"tenant over the node", func(c *Config) { c.Wallet.Limits.Accounts, c.Wallet.Limits.TenantAccounts = 9, 10 }, `wallet.limits.tenant_accounts (default) is 10: must be at most wallet.limits.accounts (default), which is 9`},
		{"tenant at the node", func(c *Config) { c.Wallet.Limits.Accounts, c.Wallet.Limits.TenantAccounts = 9, 9 }, ""},
		{"tenant holdings", func(c *Config) { c.Wallet.Limits.TenantHoldings = 2000001 }, `wallet.limits.tenant_holdings (default) is 2000001: must be at most wallet.limits.holdings (default), which is 2000000`},
		{"tenant assets", func(c *Config) { c.Wallet.Limits.TenantAssets = 10001 }, `wallet.limits.tenant_assets (default) is 10001: must be at most wallet.limits.assets (default), which is 10000`},
		{"share over all", func(c *Config) { c.Wallet.Idempotency.Share++ }, `wallet.idempotency.max_keys_per_tenant (default) is 1000001: must be at most wallet.idempotency.keys (default), which is 1000000`},
		{"ttl too short", func(c *Config) { c.Wallet.Idempotency.TTL = 59 * time.Second }, `wallet.idempotency.ttl (default) is 59s: must be a duration such as 200ms, 5s or 24h, from 1m to 72h`},
		{"ttl longest", func(c *Config) { c.Wallet.Idempotency.TTL = 72 * time.Hour }, ""},
		{"ttl too long", func(c *Config) { c.Wallet.Idempotency.TTL = 72*time.Hour + 1 }, `wallet.idempotency.ttl (default) is 72h0m0.000000001s: must be a duration such as 200ms, 5s or 24h, from 1m to 72h`},
		{"more at once than a day", func(c *Config) { c.Wallet.Limits.Day = types.MinorUnits(5) }, `wallet.limits.max_amount (default) is 100000000000000000000: must be at most wallet.limits.max_daily_debit (default), which is 5`},
		{"more at once than is issued", func(c *Config) { c.Wallet.Limits.IssueDay = types.MinorUnits(5) }, `wallet.limits.max_amount (default) is 100000000000000000000: must be at most wallet.limits.max_daily_issue (default), which is 5`},
		{"the most there may be", func(c *Config) { c.Wallet.Limits.Day, c.Wallet.Limits.IssueDay = types.MaxSupply(), types.MaxSupply() }, ""},
		{"amount limit 0", func(c *Config) { c.Wallet.Limits.Amount = types.Amount{} }, `wallet.limits.max_amount (default) is 0: must be an amount, a text of digits without leading zeros, from 1 to 170141183460469231731687303715884105727`},
		{"more than there may be", func(c *Config) { c.Wallet.Limits.Day = types.Amount{Hi: 1 << 63} }, `wallet.limits.max_daily_debit (default) is 170141183460469231731687303715884105728: must be an amount, a text of digits without leading zeros, from 1 to 170141183460469231731687303715884105727`},
		{"stalled once failed", func(c *Config) { c.Journal.Stall, c.Journal.Fail = time.Second, time.Second }, `journal.stall_threshold (default) is 1s: must be less than journal.sync_timeout (default), which is 1s`},
		{"a tenant waits more than its class", func(c *Config) { c.Queue.Class = 24 }, `queue.flow_share (default) is 25: must be at most queue.class_share (default), which is 24`},
		{"a tenant waits as much as its class", func(c *Config) { c.Queue.Flow = 33 }, ""},
		{"two classes keep the third out", func(c *Config) { c.Queue.Class = 34 }, `queue.class_share (default) is 34: must be a whole number from 1 to 33`},
		{"more permits than are taken in", func(c *Config) { c.Node.InFlight = 511 }, `permits.wallet (default) is 512: must be at most node.in_flight (default), which is 511`},
		{"pacing longer than max_wait", func(c *Config) { c.Queue.MaxWait = time.Millisecond - 1 }, `queue.max_pacing_delay (default) is 1ms: must be at most queue.max_wait (default), which is 999.999µs`},
		{"max_wait 0", func(c *Config) { c.Queue.MaxWait, c.Queue.Pace = 0, 0 }, ""},
		{"all weights 0", func(c *Config) { c.Queue.Weights = Weights{} }, `queue.weights.internal (default), queue.weights.authed (default) and queue.weights.anon (default) are 0: one of them must be higher, otherwise no request is served`},
		{"only one class is served", func(c *Config) { c.Queue.Weights = Weights{Authed: 1} }, ""},
		{"as many as there are tickets", func(c *Config) { c.Queue.Proxy = types.MaxTickets/3 - 256 - 64 - 64 - 512 - 32 - 256 - 256 - 64 - 128 }, ""},
		{"one more than there are tickets", func(c *Config) {
			c.Queue.Proxy = types.MaxTickets/3 - 256 - 64 - 64 - 512 - 32 - 256 - 256 - 64 - 128 + 1
		}, `permits.wallet (default) is 512, which with all other permits and queues, three times, is 65538: the limit of all together is 65536`},
		{"no permits", func(c *Config) { c.Permits.Proxy = 0 }, `permits.proxy (default) is 0: must be a whole number from 1 to 21845`},
		{"no queue", func(c *Config) { c.Queue.Query = 0 }, `queue.query (default) is 0: must be a whole number from 3 to 65536`},
		{"no queue for each class", func(c *Config) { c.Queue.Wallet = 2 }, `queue.wallet (default) is 2: must be a whole number from 3 to 65536`},
		{"header larger than any", func(c *Config) { c.HTTP.HeaderBytes = 64<<10 + 1 }, `http.header_bytes (default) is 65537B: must be a size such as 512KiB, 256MiB or 1GiB, from 4KiB to 64KiB`},
		{"an entry out of range", func(c *Config) {
			c.Quotas = []Quota{{Scope: types.ScopePeer, Requests: Rate{1, time.Second}, Burst: Burst{Units: 1<<40 + 1}}}
		}, "2 wrong"},
		{"an entry of a list in an entry", func(c *Config) {
			c.Upstreams = []Upstream{{Name: "a", URLs: []string{"http://a", "b"}, Protocol: "auto", Tries: 3, Health: Health{Interval: time.Second, Timeout: time.Second, Fall: 1, Rise: 1}}}
		}, `upstreams.a.urls[1] (default) is b: must be a URL such as http://127.0.0.1:9000, of http or https, without user, query, or slash at its end`},
		{"more reads than there may be", func(c *Config) {
			c.Upstreams = []Upstream{{Name: "a", URLs: []string{"http://a"}, Protocol: "auto", Tries: 3, Health: Health{Interval: time.Second, Timeout: time.Second, Fall: 1, Rise: 1}}}
			read := func(name string) Part { return Part{Name: name, Upstream: "a", Path: "/", Missing: "1"} }
			c.Routes = []Route{{Path: "/", Hydrate: []Part{read("a"), read("b"), read("c"), read("d")}, Auth: "key", Deadline: time.Second}}
		}, `routes[0].hydrate (default) is [{"name": "a", "upstream": "a", "path": "/", "fallback": "1", "required": false}, {"name": "b", "upstream": "a", "path": "/", "fallback": "1", "required": false}, {"name": "c", "upstream": "a", "path": "/", "fallback": "1", "required": false}, {"name": "d", "upstream": "a", "path": "/", "fallback": "1", "required": false}]: must be a list of at most 3 reads`},
		{"no accounts", func(c *Config) { c.Wallet.Limits.Accounts, c.Wallet.Limits.TenantAccounts = 0, 1 }, "2 wrong"},
		{"a backlog too small for a frame", func(c *Config) { c.Journal.Backlog = 4<<20 - 1 }, `journal.max_unsynced_bytes (default) is 4194303B: must be a size such as 512KiB, 256MiB or 1GiB, from 4MiB to 1GiB`},
		{"drain longest", func(c *Config) { c.Node.Drain = 5 * time.Second }, ""},
		{"format unknown", func(c *Config) { c.Log.Format = "xml" }, `log.format (default) is xml: must be one of text, json`},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg, err := Load(Sources{})
			if err != nil {
				t.Fatal(err)
			}
			c.change(cfg)
			wrong := cfg.Check()
			got := ""
			switch len(wrong) {
			case 0:
			case 1:
				got = wrong[0].Error()
			default:
				got = fmt.Sprintf("%d wrong", len(wrong))
			}
			if got != c.want {
				t.Fatalf("\n got %q\nwant %q", wrong, c.want)
			}
		})
	}
}
