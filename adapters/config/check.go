package config

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"macronode/core/types"
)

// Check says what is wrong with the values, each alone and together: one sentence
// each, in the order of the tree. It looks at nothing but c.
func (c *Config) Check() (wrong []error) {
	for _, leaf := range keys(c) {
		for _, k := range leaf.parts() {
			if !k.unset() && !k.within() {
				wrong = append(wrong, fmt.Errorf("%s (%s) is %s: must be %s", k.path, c.origin(leaf), k.text(), k.wants()))
			}
		}
	}
	for _, rule := range [...]func() error{c.places, c.addresses, c.tls, c.ceilings, c.rooms, c.times, c.turns, c.tickets} {
		if err := rule(); err != nil {
			wrong = append(wrong, err)
		}
	}
	return append(wrong, c.lists()...)
}

// within reports that k's value is in its range.
func (k key) within() bool {
	if isList(k.value.Type()) {
		return k.value.Len() <= k.most()
	}
	if one, ok := k.tag.Lookup("one"); ok {
		return slices.Contains(strings.Fields(one), format(k.value))
	}
	if f, ok := forms[k.tag.Get("form")]; ok {
		return f.has(k.value.String())
	}
	if least, ok := k.bound("min"); ok && less(k.value, least) {
		return false
	}
	most, ok := k.bound("max")
	return !ok || !less(most, k.value)
}

func (c *Config) places() error {
	if c.Data == "" || strings.ContainsRune(c.Data, 0) {
		return fmt.Errorf("data (%s) is %q: must be the path of a directory", c.layer("data"), c.Data)
	}
	return nil
}

func (c *Config) addresses() error {
	for _, a := range [...]struct {
		key, text string
		proves    bool
	}{{"listen.http", c.Listen.HTTP, c.Listen.TLS.Cert != ""}, {"listen.admin", c.Listen.Admin, c.Listen.TLS.Admin}} {
		local, ok := address(a.text)
		switch {
		case !ok:
			return fmt.Errorf("%s (%s) is %q: must be host:port, with a port from 0 to 65535, or unix:PATH", a.key, c.layer(a.key), a.text)
		case !local && !a.proves && !c.Listen.Insecure:
			return fmt.Errorf("%s (%s) is %q, which is beyond loopback: requires listen.tls, or listen.insecure: true, for it has no TLS",
				a.key, c.layer(a.key), a.text)
		}
	}
	if c.Listen.HTTP == c.Listen.Admin && !strings.HasSuffix(c.Listen.HTTP, ":0") {
		return fmt.Errorf("listen.admin (%s) is listen.http (%s): each listener wants an address of its own",
			c.layer("listen.admin"), c.layer("listen.http"))
	}
	return nil
}

// tls sees that there is a certificate with its key, or nothing requires one.
func (c *Config) tls() error {
	t := &c.Listen.TLS
	without := func(key, value string, lacks string) error {
		return fmt.Errorf("%s (%s) is %s: requires %s too", key, c.layer(key), value, lacks)
	}
	switch {
	case strings.ContainsRune(t.Cert+t.Key, 0):
		return fmt.Errorf("listen.tls.cert (%s) or listen.tls.key (%s) has a zero byte: each wants the path of a file",
			c.layer("listen.tls.cert"), c.layer("listen.tls.key"))
	case t.Cert != "" && t.Key == "":
		return without("listen.tls.cert", strconv.Quote(t.Cert), "listen.tls.key")
	case t.Key != "" && t.Cert == "":
		return without("listen.tls.key", strconv.Quote(t.Key), "listen.tls.cert")
	case t.Cert == "" && t.Admin:
		return without("listen.tls.admin", "true", "listen.tls.cert")
	case t.Cert == "" && t.Quantum == "required":
		return without("listen.tls.post_quantum", "required", "listen.tls.cert")
	}
	return nil
}

// address reports that a text is one, and whether only this machine can reach it.
// Names are not looked up: but for localhost they count as beyond.
func address(text string) (local, ok bool) {
	if path, unix := strings.CutPrefix(text, "unix:"); unix {
		return true, path != ""
	}
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return false, false
	}
	n, err := strconv.ParseUint(port, 10, 16)
	ip, named := netip.ParseAddr(host)
	return host == "localhost" || named == nil && ip.IsLoopback(), err == nil && strconv.FormatUint(n, 10) == port
}

func (c *Config) ceilings() error {
	l := &c.Wallet.Limits
	for _, day := range [...]struct {
		key string
		has types.Amount
	}{{"wallet.limits.max_daily_debit", l.Day}, {"wallet.limits.max_daily_issue", l.IssueDay}} {
		if day.has.Less(l.Amount) {
			return c.exceeds("wallet.limits.max_amount", l.Amount, day.key, day.has)
		}
	}
	return nil
}

// rooms sees that no part is larger than its whole.
func (c *Config) rooms() error {
	l, i := &c.Wallet.Limits, &c.Wallet.Idempotency
	for _, r := range [...]struct {
		part, whole string
		has, of     int
	}{
		{"wallet.limits.tenant_accounts", "wallet.limits.accounts", l.TenantAccounts, l.Accounts},
		{"wallet.limits.tenant_holdings", "wallet.limits.holdings", l.TenantHoldings, l.Holdings},
		{"wallet.limits.tenant_assets", "wallet.limits.assets", l.TenantAssets, l.Assets},
		{"wallet.idempotency.max_keys_per_tenant", "wallet.idempotency.keys", i.Share, i.Keys},
		{"queue.flow_share", "queue.class_share", c.Queue.Flow, c.Queue.Class},
		{"permits.wallet", "node.in_flight", c.Permits.Money, c.Node.InFlight},
	} {
		if r.has > r.of {
			return c.exceeds(r.part, r.has, r.whole, r.of)
		}
	}
	return nil
}

func (c *Config) times() error {
	if c.HTTP.HeaderTimeout > c.HTTP.ReadTimeout {
		return c.exceeds("http.header_timeout", duration(c.HTTP.HeaderTimeout), "http.read_timeout", duration(c.HTTP.ReadTimeout))
	}
	if c.Journal.Stall >= c.Journal.Fail {
		return fmt.Errorf("journal.stall_threshold (%s) is %s: must be less than journal.sync_timeout (%s), which is %s",
			c.layer("journal.stall_threshold"), duration(c.Journal.Stall), c.layer("journal.sync_timeout"), duration(c.Journal.Fail))
	}
	if c.Queue.Pace > c.Queue.MaxWait {
		return c.exceeds("queue.max_pacing_delay", duration(c.Queue.Pace), "queue.max_wait", duration(c.Queue.MaxWait))
	}
	return nil
}

// turns sees that somebody is served.
func (c *Config) turns() error {
	if c.Queue.Weights == (Weights{}) {
		return fmt.Errorf("queue.weights.internal (%s), queue.weights.authed (%s) and queue.weights.anon (%s) are 0: one of them wants more, or nobody is served",
			c.layer("queue.weights.internal"), c.layer("queue.weights.authed"), c.layer("queue.weights.anon"))
	}
	return nil
}

// tickets sees that there is one for each request that waits or is at work.
func (c *Config) tickets() error {
	q, p := &c.Queue, &c.Permits
	// each class has slots for all of them
	if all := 3 * (q.Money + q.Lists + q.Beyond + q.Streams + q.Storage + p.Money + p.Lists + p.Beyond + p.Streams + p.Storage); all > types.MaxTickets {
		return fmt.Errorf("permits.wallet (%s) is %d, which with all other permits and queues, three times, is %d: they want at most %d together",
			c.layer("permits.wallet"), p.Money, all, types.MaxTickets)
	}
	return nil
}

func (c *Config) exceeds(part string, has any, whole string, of any) error {
	return fmt.Errorf("%s (%s) is %v: must be at most %s (%s), which is %v",
		part, c.layer(part), has, whole, c.layer(whole), of)
}

// layer names the layer that set a key.
func (c *Config) layer(path string) string {
	if from := c.from[path]; from != "" {
		return from
	}
	return "default"
}

// origin is the layer of k and, where it follows another key, which.
func (c *Config) origin(k key) string {
	if leader, ok := k.follows(); ok && c.from[k.path] == "" {
		return "default: as " + leader
	}
	return c.layer(k.path)
}
