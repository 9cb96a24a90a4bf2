package proxy

import (
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"
)

// An upstream that normalises a path may serve another resource than that of the matched route. A
// route with StrictPath rejects such paths. docs/how-to/put-a-gateway-in-front.md lists how
// common servers read each form.

// ambiguity returns what is ambiguous in a path that was decoded once, or "" if nothing is.
// cleanPath rejects dot segments and control characters on every route.
func ambiguity(path string) string {
	for i := range len(path) {
		c := path[i]
		ends := i+1 == len(path) || path[i+1] == '/'
		begins := i > 0 && path[i-1] == '/'
		switch {
		case c == ';':
			return "a semicolon, which begins a parameter of a segment"
		case c == '\\':
			return "a backslash"
		case c == '/' && begins:
			return "an empty segment"
		case c == '.' && ends:
			return "a segment that ends with a dot"
		case c == ' ' && (begins || ends):
			return "a segment that begins or ends with a blank"
		case c == '%' && i+2 < len(path) && isHex(path[i+1]) && isHex(path[i+2]):
			return "an escape that is escaped itself"
		}
	}
	if !utf8.ValidString(path) {
		return "bytes that are not UTF-8"
	}
	return ""
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

// strictFault returns, as a sentence, why the path of r is rejected on a route that it matched,
// or "". path is the result of cleanPath.
func (p *Proxy) strictFault(r *http.Request, host, path string, matched *route) string {
	if !matched.StrictPath {
		return ""
	}
	if why := ambiguity(r.URL.Path); why != "" {
		return "The path can be read in several ways: it contains " + why + "."
	}
	if matched.NeedsKey {
		return ""
	}
	if upper := strings.ToUpper(r.Method); upper != r.Method { // some servers ignore the case of a method
		if p.isKeyed(r, host, path, upper, identity) {
			return "The method differs by case alone from one that wants an API key."
		}
	}
	for _, alt := range readings(r.URL, path) {
		if p.reachesKeyedRoute(r, host, alt.path, alt.contains != "") {
			if alt.contains == "" {
				return "The path differs by case alone from one that wants an API key."
			}
			return "The path can be read in several ways: it contains " + alt.contains + "."
		}
	}
	return ""
}

// A reading is a path as some servers read it, and what it contains that causes this.
type reading struct{ path, contains string }

// readings returns the ways to read a path that ambiguity accepts: cut at an escaped question
// mark or number sign, and with an escaped slash that does not separate segments.
func readings(u *url.URL, path string) []reading {
	all := append(make([]reading, 0, 4), reading{path, ""})
	if whole, ok := undividedPath(u); ok {
		all = append(all, reading{whole, "an escaped slash"})
	}
	for _, r := range all {
		if at := strings.IndexAny(r.path, "?#"); at >= 0 {
			all = append(all, reading{r.path[:at], "an escaped question mark or number sign"})
		}
	}
	return all
}

// reachesKeyedRoute reports whether r matches a route that needs a key if its path is read as
// path, in any case. differs: path is not the one by which its route was chosen.
func (p *Proxy) reachesKeyedRoute(r *http.Request, host, path string, differs bool) bool {
	if differs && p.isKeyed(r, host, path, r.Method, identity) {
		return true
	}
	folded := foldCase(path)
	return (folded != path || p.upperCase) && p.isKeyed(r, host, folded, r.Method, foldCase)
}

// foldCase returns text without differences of case. Some letters are equal to one of ASCII only as capital letters: the long s, and the
// i without a dot.
func foldCase(text string) string {
	lower := strings.ToLower(text)
	for i := range len(lower) {
		if lower[i] >= utf8.RuneSelf {
			return strings.ToLower(strings.ToUpper(text))
		}
	}
	return lower
}

// isKeyed reports whether r matches a route that needs a key, or does so but for its method, if it has another path and method, and
// prefixes are folded.
func (p *Proxy) isKeyed(r *http.Request, host, path, method string, fold func(string) string) bool {
	other, _ := p.findRoute(host, path, method, fold, func(other *route) bool { return other.matchesHeader(r.Header) })
	return other != nil && other.NeedsKey
}

// undividedPath returns the decoded path of u with NUL instead of each escaped slash. ok is false
// if there is no escaped slash.
func undividedPath(u *url.URL) (path string, ok bool) {
	if u.RawPath == "" { // the default encoding escapes no slash
		return "", false
	}
	divided := strings.NewReplacer("%2f", "%00", "%2F", "%00").Replace(u.RawPath)
	path, err := url.PathUnescape(divided)
	return path, err == nil && divided != u.RawPath
}

// identity returns its argument.
func identity(prefix string) string { return prefix }
