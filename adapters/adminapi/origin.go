package adminapi

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// A browser sends requests of any page to any address, loopback included, and a page can
// have its own host name resolve to 127.0.0.1 (DNS rebinding). The page cannot change the
// Host and Origin that the browser sends.

// local returns the local address of a request; nil if unknown.
func local(r *http.Request) net.Addr {
	a, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return a
}

// onLoopback reports whether a request came from this machine.
func onLoopback(r *http.Request) bool {
	switch a := local(r).(type) {
	case *net.TCPAddr:
		return a.IP.IsLoopback()
	case *net.UnixAddr:
		return true
	}
	return false
}

// isAddressed reports whether a request is meant for this node, and not made by a page of another
// origin: its Host is localhost, an IP address or one of Hosts. A page cannot rebind an IP
// address, and the names of Hosts belong to the operator.
func (a *API) isAddressed(r *http.Request) bool {
	return (isLocalHost(r.Host) || a.isKnownHost(r.Host)) && sameOrigin(r)
}

// isLocalHost reports localhost and IP addresses, with or without a port. The unspecified address
// does not count: browsers connect to this machine by it.
func isLocalHost(host string) bool {
	host = withoutPort(host)
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && !ip.Unmap().IsUnspecified()
}

// isKnownHost reports a name of Hosts, in any case, with or without a port or a trailing dot.
func (a *API) isKnownHost(host string) bool {
	if a.Hosts == nil {
		return false
	}
	host = strings.ToLower(strings.TrimSuffix(withoutPort(host), "."))
	for _, name := range a.Hosts() {
		below, wildcard := strings.CutPrefix(name, "*.")
		if !wildcard && host == name || wildcard && strings.HasSuffix(host, "."+below) {
			return true
		}
	}
	return false
}

func withoutPort(host string) string {
	if h, _, err := net.SplitHostPort(host); err == nil {
		return h
	}
	return host
}

// sameOrigin reports whether a request was not made by a page of another origin.
func sameOrigin(r *http.Request) bool {
	switch origins := r.Header["Origin"]; len(origins) {
	case 0:
		return true
	case 1:
		return strings.EqualFold(origins[0], "http://"+r.Host) || strings.EqualFold(origins[0], "https://"+r.Host)
	}
	return false
}
