package proxy

import (
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"macronode/adapters/httpcheck"
)

// DeadlineHeader is the time in milliseconds that the client continues to wait. The upstream gets
// the remaining time, or that of the route's deadline, in the same field.
const DeadlineHeader = "X-Deadline-Ms"

// isHopByHop reports whether a field concerns one connection, or is set elsewhere: an HTTP/2
// request may have Host beside :authority.
func isHopByHop(name string) bool {
	switch name {
	case "Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authenticate", "Proxy-Authorization", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Http2-Settings", "Host":
		return true
	}
	return false
}

// isSetByProxy reports whether a field describes the client to an upstream. Only the proxy sets
// such a field, in any spelling.
func isSetByProxy(name string) bool {
	if len(name) < len("Forwarded") {
		return false
	}
	respelled := strings.IndexByte(name, '_') >= 0
	switch name = hyphened(name); name {
	case "Forwarded", "X-Real-Ip", "Traceparent", "Tracestate", DeadlineHeader:
		return true
	case "X-Request-Id", "X-Decision-Id": // set before the request arrived here; another spelling would contradict it
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

// isDisguised reports whether name is, except for an underscore, the name of a hop-by-hop field
// or of one that frames the message.
func isDisguised(name string) bool {
	if strings.IndexByte(name, '_') < 0 {
		return false
	}
	name = hyphened(name)
	return isHopByHop(name) || name == "Content-Length"
}

// overridesRequest reports whether a field, in any spelling, makes some servers serve another path or method than that
// of the request, which was not matched with the routes.
func overridesRequest(name string) bool {
	if len(name) < len("X-Rewrite-Url") {
		return false
	}
	switch hyphened(name) {
	case "X-Original-Url", "X-Rewrite-Url", "X-Http-Method", "X-Http-Method-Override", "X-Method-Override":
		return true
	}
	return false
}

// isDropped reports whether a field of a request is not forwarded.
func isDropped(name string) bool {
	return isSetByProxy(name) || overridesRequest(name) || isDisguised(name)
}

// removeHeaderOnlyFields removes trailers that RFC 9110, 6.5.1 forbids: fields for framing,
// routing, authentication, the description of the body, and caching. It applies in both
// directions, whatever was announced.
func removeHeaderOnlyFields(trailer, header http.Header) {
	for name := range trailer {
		if plain := hyphened(name); isHopByHop(plain) || isSetByProxy(plain) || overridesRequest(plain) || isHeaderOnly(plain) || containsToken(header["Connection"], name) {
			delete(trailer, name)
		}
	}
}

// isHeaderOnly reports whether a field is valid only in a header.
func isHeaderOnly(name string) bool {
	switch name {
	case "Content-Length", "Content-Encoding", "Content-Type", "Content-Range", "Host", "Max-Forwards", "Authorization", "Www-Authenticate", "Realm", "Cookie", "Set-Cookie",
		"Expect", "Range", "Pragma", "Cache-Control", "Age", "Date", "Expires", "Location", "Retry-After", "Vary", "X-Request-Id", "X-Decision-Id":
		return true
	}
	return strings.HasPrefix(name, "If-") || strings.HasPrefix(name, "Access-Control-")
}

// containsToken reports whether a list of tokens, such as Connection, contains a name.
func containsToken(connection []string, name string) bool {
	for _, line := range connection {
		for token := range strings.SplitSeq(line, ",") {
			if strings.EqualFold(strings.TrimSpace(token), name) {
				return true
			}
		}
	}
	return false
}

// namesOtherFields reports whether Connection names fields that would otherwise be forwarded.
func namesOtherFields(connection []string) bool {
	for _, line := range connection {
		for token := range strings.SplitSeq(line, ",") {
			token = strings.TrimSpace(token)
			if token != "" && !strings.EqualFold(token, "close") && !isHopByHop(http.CanonicalHeaderKey(token)) {
				return true
			}
		}
	}
	return false
}

// copyFields copies the fields that are forwarded. Their values are shared.
func copyFields(to, from http.Header, drop func(string) bool) {
	connection := from["Connection"]
	named := namesOtherFields(connection)
	for name, values := range from {
		if !isHopByHop(name) && (drop == nil || !drop(name)) && (!named || !containsToken(connection, name)) {
			to[name] = values
		}
	}
}

// requestHeader returns the header of a request to an upstream.
func (p *Proxy) requestHeader(r *http.Request, left time.Duration) http.Header {
	return p.fillHeader(make(http.Header, len(r.Header)+8), r, left)
}

// fillHeader fills the empty header h.
func (p *Proxy) fillHeader(h http.Header, r *http.Request, left time.Duration) http.Header {
	copyFields(h, r.Header, isDropped)
	for _, id := range [...]string{"X-Request-Id", "X-Decision-Id"} { // set by this node: no client removes them by Connection
		if v := r.Header[id]; v != nil {
			h[id] = v
		}
	}
	values := make([]string, 0, 8) // one allocation
	set := func(name, value string) {
		values = append(values, value)
		h[name] = values[len(values)-1 : len(values) : len(values)]
	}
	p.setForwarded(r, h, set)
	if parent := traceparent(r, h); parent != "" {
		set("Traceparent", parent)
	}
	set(DeadlineHeader, strconv.FormatInt(max(1, left.Milliseconds()), 10))
	set("Via", via(r))
	if containsToken(r.Header["Te"], "trailers") {
		set("Te", "trailers")
	}
	if _, isSet := h["User-Agent"]; !isSet {
		set("User-Agent", "") // suppresses the default of net/http
	}
	return h
}

// hideIdempotencyKey changes the case of field names by which net/http would resend a request
// that is not idempotent. Field names are not case-sensitive.
func hideIdempotencyKey(h http.Header) {
	for _, name := range [...]string{"Idempotency-Key", "X-Idempotency-Key"} {
		if values, isSet := h[name]; isSet {
			delete(h, name)
			h[strings.ToLower(name)] = values
		}
	}
}

// via returns the value of Via with this proxy at its end.
func via(r *http.Request) (protocol string) {
	switch {
	case r.ProtoMajor == 2:
		protocol = "2.0 macronode"
	case r.ProtoAtLeast(1, 1):
		protocol = "1.1 macronode"
	default:
		protocol = "1.0 macronode"
	}
	if before := r.Header["Via"]; len(before) > 0 {
		protocol = strings.Join(before, ", ") + ", " + protocol
	}
	return protocol
}

// setForwarded sets the fields that describe the client. Existing values are kept only if the
// peer is a trusted proxy.
func (p *Proxy) setForwarded(r *http.Request, h http.Header, set func(name, value string)) {
	peer, known := parseAddress(r.RemoteAddr)
	proto := "http"
	if r.TLS != nil {
		proto = "https"
	}
	host, peers := r.Host, ""
	if known {
		peers = peer.String()
		if p.isTrustedProxy(peer) {
			if prior := r.Header["X-Forwarded-For"]; len(prior) > 0 {
				peers = strings.Join(prior, ", ") + ", " + peers
			}
			if values := r.Header["X-Forwarded-Proto"]; len(values) == 1 && (values[0] == "http" || values[0] == "https") {
				proto = values[0]
			}
			if values := r.Header["X-Forwarded-Host"]; len(values) == 1 {
				if _, ok := httpcheck.Host(values[0]); ok {
					host = values[0]
				}
			}
			if prior := r.Header["Forwarded"]; len(prior) > 0 {
				set("Forwarded", strings.Join(prior, ", ")+", "+forwardedElement(peer, r.Host, proto))
			}
		}
	}
	if peers != "" {
		set("X-Forwarded-For", peers)
	}
	if host != "" { // an HTTP/1.0 request may have none
		set("X-Forwarded-Host", host)
	}
	set("X-Forwarded-Proto", proto)
}

// forwardedElement returns an element of Forwarded (RFC 7239).
func forwardedElement(peer netip.Addr, host, proto string) string {
	by := peer.String()
	if peer.Is6() {
		by = `"[` + by + `]"`
	}
	if host != "" {
		host = ";host=" + strconv.Quote(host)
	}
	return "for=" + by + host + ";proto=" + proto
}

// isTrustedProxy reports whether the forwarding fields of a peer are trusted.
func (p *Proxy) isTrustedProxy(peer netip.Addr) bool {
	for _, net := range p.config.TrustedProxies {
		if net.Contains(peer) {
			return true
		}
	}
	return false
}

// parseAddress parses an address with or without a port.
func parseAddress(text string) (netip.Addr, bool) {
	if at, err := netip.ParseAddrPort(text); err == nil {
		return at.Addr().Unmap().WithZone(""), true
	}
	at, err := netip.ParseAddr(strings.Trim(text, "[]"))
	return at.Unmap().WithZone(""), err == nil
}
