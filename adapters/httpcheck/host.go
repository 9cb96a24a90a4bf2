package httpcheck

import (
	"net/netip"
	"strings"
)

// Limits of a host.
const (
	maxHost  = 255 // bytes of a name
	maxLabel = 63  // bytes of a label
	maxPort  = 1<<16 - 1
)

// Host returns the name in the value of a Host field, in lower case, without the port and
// without the dot that may end a name. ok is false if the value is not a host name, an IPv4
// address or an IPv6 address in brackets, with an optional port. An empty value is valid:
// HTTP/1.0 may have none.
func Host(value string) (name string, ok bool) {
	name, port, found := value, "", false
	if at := strings.LastIndexByte(value, ':'); at >= 0 && strings.IndexByte(value[at:], ']') < 0 {
		name, port, found = value[:at], value[at+1:], true
	}
	switch {
	case found && (name == "" || !isPort(port)):
		return "", false
	case strings.ContainsAny(name, ":[]"):
		return toLower(name), isIPv6(name)
	}
	name = strings.TrimSuffix(name, ".")
	if name == "" {
		return "", value == ""
	}
	return toLower(name), isName(name)
}

// isPort reports whether s is the decimal number of a port, or empty, as RFC 3986 allows.
func isPort(s string) bool {
	n := 0
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' || n > maxPort {
			return false
		}
		n = 10*n + int(s[i]-'0')
	}
	return n <= maxPort
}

// isIPv6 reports whether s is an address of IPv6 without a zone, in brackets.
func isIPv6(s string) bool {
	inner, opened := strings.CutPrefix(s, "[")
	inner, closed := strings.CutSuffix(inner, "]")
	at, err := netip.ParseAddr(inner)
	return opened && closed && err == nil && at.Is6() && at.Zone() == ""
}

// isName reports whether s consists of labels of letters, digits, hyphens and underscores.
func isName(s string) bool {
	label := 0
	for i := range len(s) {
		c := s[i]
		switch {
		case c == '.' && label == 0:
			return false
		case c == '.':
			label = 0
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '_':
			label++
		default:
			return false
		}
		if label > maxLabel {
			return false
		}
	}
	return label > 0 && len(s) <= maxHost
}

// toLower is strings.ToLower without an allocation where s is in lower case.
func toLower(s string) string {
	for i := range len(s) {
		if 'A' <= s[i] && s[i] <= 'Z' {
			return strings.ToLower(s)
		}
	}
	return s
}
