package config

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"macronode/adapters/httpcheck"
	"macronode/core/types"
)

// Check checks the values, each alone and together. It returns one sentence per problem, in the
// order of the tree. It reads only c.
func (c *Config) Check() (wrong []error) {
	for _, leaf := range keys(c) {
		for _, k := range leaf.parts() {
			if !k.unset() && !k.within() {
				wrong = append(wrong, fmt.Errorf("%s (%s) is %s: must be %s", k.path, c.origin(leaf), k.text(), k.wants()))
			}
		}
	}
	for _, rule := range [...]func() error{c.places, c.addresses, c.s3, c.price, c.copies, c.tls, c.ceilings, c.rooms, c.times, c.turns, c.tickets} {
		if err := rule(); err != nil {
			wrong = append(wrong, err)
		}
	}
	return append(append(wrong, c.lists()...), c.checkSections()...)
}

// within reports whether k's value is in its range.
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
	}{{"listen.http", c.Listen.HTTP, c.Listen.TLS.Cert != ""}, {"listen.admin", c.Listen.Admin, c.Listen.TLS.Admin}, {"listen.s3", c.Listen.S3, c.Listen.TLS.Cert != ""}} {
		if a.text == "" && a.key == "listen.s3" {
			continue
		}
		local, ok := address(a.text)
		switch {
		case !ok:
			return fmt.Errorf("%s (%s) is %q: must be host:port, with a port from 0 to 65535, or unix:PATH", a.key, c.layer(a.key), a.text)
		case !local && !a.proves && !c.Listen.Insecure:
			return fmt.Errorf("%s (%s) is %q, which is beyond loopback: requires listen.tls, or listen.insecure: true, for it has no TLS",
				a.key, c.layer(a.key), a.text)
		}
	}
	for _, p := range [...]struct{ key, text, other, same string }{{"listen.admin", c.Listen.Admin, "listen.http", c.Listen.HTTP},
		{"listen.s3", c.Listen.S3, "listen.http", c.Listen.HTTP}, {"listen.s3", c.Listen.S3, "listen.admin", c.Listen.Admin}} {
		if p.text == p.same && !strings.HasSuffix(p.text, ":0") {
			return fmt.Errorf("%s (%s) is %s (%s): each listener needs an address of its own", p.key, c.layer(p.key), p.other, c.layer(p.other))
		}
	}
	return nil
}

// price checks the accounts and the asset of a price.
func (c *Config) price() error {
	p := &c.Storage.Price
	if p.PerMiB == 0 {
		return nil
	}
	if err := types.CheckAsset(p.Asset); err != nil {
		return fmt.Errorf("storage.price.asset (%s) is %q: storage.price.per_mib requires the name of an asset: %w", c.layer("storage.price.asset"), p.Asset, err)
	}
	for _, a := range [...]struct{ key, text string }{{"storage.price.payer", p.Payer}, {"storage.price.beneficiary", p.Beneficiary}} {
		if err := types.CheckUserAccount(a.text); err != nil {
			return fmt.Errorf("%s (%s) is %q: %w", a.key, c.layer(a.key), a.text, err)
		}
	}
	if p.Payer == p.Beneficiary {
		return fmt.Errorf("storage.price.beneficiary (%s) is storage.price.payer (%s): the price moves from one account to another", c.layer("storage.price.beneficiary"), c.layer("storage.price.payer"))
	}
	return nil
}

// s3 checks the names of the S3 interface.
func (c *Config) s3() error {
	s := &c.Storage.S3
	plain := func(r rune) bool {
		return r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}
	if s.Region == "" || len(s.Region) > 64 || strings.ContainsFunc(s.Region, plain) {
		return fmt.Errorf("storage.s3.region (%s) is %q: must be 1 to 64 letters, digits and hyphens", c.layer("storage.s3.region"), s.Region)
	}
	if name, ok := httpcheck.Host(s.Domain); !ok || name != s.Domain {
		return fmt.Errorf("storage.s3.domain (%s) is %q: must be a host name in lowercase without a port, or nothing", c.layer("storage.s3.domain"), s.Domain)
	}
	return nil
}

// tls checks that there is a certificate with its key, if one is needed.
func (c *Config) tls() error {
	t := &c.Listen.TLS
	without := func(key, value string, lacks string) error {
		return fmt.Errorf("%s (%s) is %s: requires %s too", key, c.layer(key), value, lacks)
	}
	switch {
	case strings.ContainsRune(t.Cert+t.Key, 0):
		return fmt.Errorf("listen.tls.cert (%s) or listen.tls.key (%s) has a zero byte: each needs the path of a file",
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

// address reports whether a text is an address, and whether only this machine can reach it. Names
// are not resolved: all except localhost count as reachable by others.
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

// rooms checks that no part is larger than its whole.
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
		{"permits.wallet", "node.in_flight", c.Permits.Wallet, c.Node.InFlight},
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

// turns checks that some class is served.
func (c *Config) turns() error {
	if c.Queue.Weights == (Weights{}) {
		return fmt.Errorf("queue.weights.internal (%s), queue.weights.authed (%s) and queue.weights.anon (%s) are 0: one of them must be higher, otherwise no request is served",
			c.layer("queue.weights.internal"), c.layer("queue.weights.authed"), c.layer("queue.weights.anon"))
	}
	return nil
}

// tickets checks that there is a ticket for each waiting or running request.
func (c *Config) tickets() error {
	q, p := &c.Queue, &c.Permits
	// each class has slots for all of them
	if all := 3 * (q.Wallet + q.Query + q.Proxy + q.Streams + q.Storage + p.Wallet + p.Query + p.Proxy + p.Streams + p.Storage); all > types.MaxTickets {
		return fmt.Errorf("permits.wallet (%s) is %d, which with all other permits and queues, three times, is %d: the limit of all together is %d",
			c.layer("permits.wallet"), p.Wallet, all, types.MaxTickets)
	}
	return nil
}

func (c *Config) exceeds(part string, has any, whole string, of any) error {
	return fmt.Errorf("%s (%s) is %v: must be at most %s (%s), which is %v",
		part, c.layer(part), has, whole, c.layer(whole), of)
}

// layer returns the name of the layer that set a key.
func (c *Config) layer(path string) string {
	if from := c.from[path]; from != "" {
		return from
	}
	return "default"
}

// origin returns the layer of k and, if k follows another key, that key.
func (c *Config) origin(k key) string {
	if leader, ok := k.follows(); ok && c.from[k.path] == "" {
		return "default: as " + leader
	}
	return c.layer(k.path)
}
