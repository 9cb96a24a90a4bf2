package proxy

import (
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"macronode/adapters/httpcheck"
)

// DeadlineHeader is how many milliseconds the client goes on waiting. What is left of
// them, or of the route's deadline, is told to the upstream under the same name.
const DeadlineHeader = "X-Deadline-Ms"

// hop reports a field that is of one connection alone, or said otherwise: a request of HTTP/2 may
// have Host beside :authority.
func hop(name string) bool {
	switch name {
	case "Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authenticate", "Proxy-Authorization", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Http2-Settings", "Host":
		return true
	}
	return false
}

// ours reports a field by which an upstream is told who asks: only the proxy says it, in
// whatever spelling it comes.
func ours(name string) bool {
	if len(name) < len("Forwarded") {
		return false
	}
	respelled := strings.IndexByte(name, '_') >= 0
	switch name = hyphened(name); name {
	case "Forwarded", "X-Real-Ip", "Traceparent", "Tracestate", DeadlineHeader:
		return true
	case "X-Request-Id", "X-Decision-Id": // set before the request came here; in another spelling they would contradict that
		return respelled
	}
	return strings.HasPrefix(name, "X-Forwarded-")
}

// hyphened returns name with a hyphen for each underscore, in canonical form. A server that
// passes fields to CGI or WSGI takes both spellings for the same field.
func hyphened(name string) string {
	if strings.IndexByte(name, '_') < 0 {
		return name
	}
	return http.CanonicalHeaderKey(strings.ReplaceAll(name, "_", "-"))
}

// disguised reports whether name is, but for an underscore, the name of a field that frames
// the message or that is of one connection alone.
func disguised(name string) bool {
	if strings.IndexByte(name, '_') < 0 {
		return false
	}
	name = hyphened(name)
	return hop(name) || name == "Content-Length"
}

// dropped reports whether a field of a request is not sent on.
func dropped(name string) bool { return ours(name) || disguised(name) }

// behind leaves of trailers those that may come behind a body, by RFC 9110, 6.5.1: what says how a
// message is framed, where it goes, who asks, what its body is, or what a store or a client does
// with it comes before the body or not at all. So it is both ways, whatever either side announced.
func behind(trailer, header http.Header) {
	for name := range trailer {
		if plain := hyphened(name); hop(plain) || ours(plain) || upfront(plain) || listed(header["Connection"], name) {
			delete(trailer, name)
		}
	}
}

// upfront reports a field that counts in a header alone.
func upfront(name string) bool {
	switch name {
	case "Content-Length", "Content-Encoding", "Content-Type", "Content-Range", "Host", "Max-Forwards", "Authorization", "Www-Authenticate", "Realm", "Cookie", "Set-Cookie",
		"Expect", "Range", "Pragma", "Cache-Control", "Age", "Date", "Expires", "Location", "Retry-After", "Vary", "X-Request-Id", "X-Decision-Id":
		return true
	}
	return strings.HasPrefix(name, "If-") || strings.HasPrefix(name, "Access-Control-")
}

// listed reports that Connection names a field.
func listed(connection []string, name string) bool {
	for _, line := range connection {
		for one := range strings.SplitSeq(line, ",") {
			if strings.EqualFold(strings.TrimSpace(one), name) {
				return true
			}
		}
	}
	return false
}

// special reports that Connection names more than what is dropped anyway.
func special(connection []string) bool {
	for _, line := range connection {
		for one := range strings.SplitSeq(line, ",") {
			one = strings.TrimSpace(one)
			if one != "" && !strings.EqualFold(one, "close") && !hop(http.CanonicalHeaderKey(one)) {
				return true
			}
		}
	}
	return false
}

// pass puts the fields that go further into to. Their values are shared.
func pass(to, from http.Header, drop func(string) bool) {
	connection := from["Connection"]
	named := special(connection)
	for name, values := range from {
		if !hop(name) && (drop == nil || !drop(name)) && (!named || !listed(connection, name)) {
			to[name] = values
		}
	}
}

// request is the header of a request as an upstream is sent it.
func (p *Proxy) request(r *http.Request, left time.Duration) http.Header {
	return p.fill(make(http.Header, len(r.Header)+8), r, left)
}

// fill is the same, written into an empty one.
func (p *Proxy) fill(h http.Header, r *http.Request, left time.Duration) http.Header {
	pass(h, r.Header, dropped)
	values := make([]string, 0, 8) // of one allocation
	set := func(name, value string) {
		values = append(values, value)
		h[name] = values[len(values)-1 : len(values) : len(values)]
	}
	p.forwarded(r, h, set)
	if parent := traceparent(r, h); parent != "" {
		set("Traceparent", parent)
	}
	set(DeadlineHeader, strconv.FormatInt(max(1, left.Milliseconds()), 10))
	set("Via", via(r))
	if listed(r.Header["Te"], "trailers") {
		set("Te", "trailers")
	}
	if _, said := h["User-Agent"]; !said {
		set("User-Agent", "") // none, rather than that of the library
	}
	return h
}

// singly spells fields such that net/http does not know them, by which it sends a request again
// that is not idempotent. Names are the same in small letters.
func singly(h http.Header) {
	for _, name := range [...]string{"Idempotency-Key", "X-Idempotency-Key"} {
		if values, said := h[name]; said {
			delete(h, name)
			h[strings.ToLower(name)] = values
		}
	}
}

// via is the way that a request took, this proxy at its end.
func via(r *http.Request) (way string) {
	switch {
	case r.ProtoMajor == 2:
		way = "2.0 macronode"
	case r.ProtoAtLeast(1, 1):
		way = "1.1 macronode"
	default:
		way = "1.0 macronode"
	}
	if before := r.Header["Via"]; len(before) > 0 {
		way = strings.Join(before, ", ") + ", " + way
	}
	return way
}

// forwarded tells an upstream who asked. What others said of that is passed on only when
// the peer is a proxy whose word is taken.
func (p *Proxy) forwarded(r *http.Request, h http.Header, set func(name, value string)) {
	peer, known := address(r.RemoteAddr)
	proto := "http"
	if r.TLS != nil {
		proto = "https"
	}
	host, by := r.Host, ""
	if known {
		by = peer.String()
		if p.trusted(peer) {
			if prior := r.Header["X-Forwarded-For"]; len(prior) > 0 {
				by = strings.Join(prior, ", ") + ", " + by
			}
			if said := r.Header["X-Forwarded-Proto"]; len(said) == 1 && (said[0] == "http" || said[0] == "https") {
				proto = said[0]
			}
			if said := r.Header["X-Forwarded-Host"]; len(said) == 1 {
				if _, ok := httpcheck.Host(said[0]); ok {
					host = said[0]
				}
			}
			if prior := r.Header["Forwarded"]; len(prior) > 0 {
				set("Forwarded", strings.Join(prior, ", ")+", "+element(peer, r.Host, proto))
			}
		}
	}
	if by != "" {
		set("X-Forwarded-For", by)
	}
	if host != "" { // a request of HTTP/1.0 may have none
		set("X-Forwarded-Host", host)
	}
	set("X-Forwarded-Proto", proto)
}

// element is a hop as RFC 7239 writes it.
func element(peer netip.Addr, host, proto string) string {
	by := peer.String()
	if peer.Is6() {
		by = `"[` + by + `]"`
	}
	if host != "" {
		host = ";host=" + strconv.Quote(host)
	}
	return "for=" + by + host + ";proto=" + proto
}

// trusted reports that a peer is a proxy whose word is taken.
func (p *Proxy) trusted(peer netip.Addr) bool {
	for _, net := range p.config.Trusted {
		if net.Contains(peer) {
			return true
		}
	}
	return false
}

// address is an address, with a port or without.
func address(said string) (netip.Addr, bool) {
	if at, err := netip.ParseAddrPort(said); err == nil {
		return at.Addr().Unmap().WithZone(""), true
	}
	at, err := netip.ParseAddr(strings.Trim(said, "[]"))
	return at.Unmap().WithZone(""), err == nil
}
