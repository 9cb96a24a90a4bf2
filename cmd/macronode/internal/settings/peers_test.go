package settings

import (
	"net/netip"
	"testing"

	"macronode/adapters/config"
	"macronode/adapters/httpapi"
)

// TestSharesOfPeers: the share is a quarter unless it is configured, never more than the listener
// has, and trusted proxies have none.
func TestSharesOfPeers(t *testing.T) {
	for _, c := range []struct {
		conns, MemoryPart int
		public, admins    int
	}{
		{8192, 0, 2048, 64},
		{40, 0, 16, 16},
		{8, 0, 8, 8},
		{8192, 100, 100, 100},
		{8192, 5000, 5000, 256},
		{100, 5000, 100, 100},
	} {
		conf := &config.Config{Listen: config.Listen{MaxConns: c.conns}}
		s := Reload{ofPeer: peerLimit(c.MemoryPart),
			Face: httpapi.ConfigSnapshot{Trusted: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("2001:db8::7/128")}}}
		for from, want := range map[string][2]int{"192.0.2.1": {c.public, c.admins}, "2001:db8::8": {c.public, c.admins}, "10.1.2.3": {}, "2001:db8::7": {}} {
			at := netip.MustParseAddr(from)
			if got := [2]int{s.PeerShare(c.conns, at), s.PeerShare(adminConns(conf), at)}; got != want {
				t.Errorf("%+v: %s has %d, want %d", c, from, got, want)
			}
		}
	}
}
