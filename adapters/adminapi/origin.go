package adminapi

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// A browser sends what any page wants to any address, also to loopback, and a name
// of the page's own can be made to mean 127.0.0.1. It cannot be made to say another
// Host or Origin than the page's.

// local is where a request came in; nil where that is not known.
func local(r *http.Request) net.Addr {
	a, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return a
}

// onLoopback reports that a request came from this very machine.
func onLoopback(r *http.Request) bool {
	switch a := local(r).(type) {
	case *net.TCPAddr:
		return a.IP.IsLoopback()
	case *net.UnixAddr:
		return true
	}
	return false
}

// ours reports that a request is made for this node: by an address of its own, or by
// a name that means loopback everywhere.
func ours(r *http.Request) bool {
	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(strings.Trim(host, "[]"))
	if err != nil {
		return false
	}
	if a, ok := local(r).(*net.TCPAddr); ok && a.AddrPort().Addr().Unmap() == ip.Unmap() {
		return true
	}
	return ip.Unmap().IsLoopback()
}

// sameOrigin reports that no page of another origin made a request.
func sameOrigin(r *http.Request) bool {
	switch said := r.Header["Origin"]; len(said) {
	case 0:
		return true
	case 1:
		return strings.EqualFold(said[0], "http://"+r.Host) || strings.EqualFold(said[0], "https://"+r.Host)
	}
	return false
}
