package proxy

import (
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"
)

// A path may be read in several ways: an upstream that normalises it may serve another
// resource than the one that the route was chosen for. A route with StrictPath takes no such
// path. docs/how-to/put-a-gateway-in-front.md lists what common servers make of each form.

// ambiguity returns what may be read in several ways in a path, decoded once; "" if nothing
// may. Dot segments and control characters are refused on every route, by clean.
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

// strictFault returns, as a sentence, why the path of r is refused on a route that it matched;
// "" if it is not. path is the decoded path as clean returns it.
func (p *Proxy) strictFault(r *http.Request, host, path string, matched *route) string {
	if !matched.StrictPath {
		return ""
	}
	if why := ambiguity(r.URL.Path); why != "" {
		return "The path can be read in several ways: it contains " + why + "."
	}
	if matched.Keyed {
		return ""
	}
	for _, one := range readings(r.URL, path) {
		if p.leadsToKey(r, host, one.path, one.contains != "") {
			if one.contains == "" {
				return "The path differs by case alone from one that wants an API key."
			}
			return "The path can be read in several ways: it contains " + one.contains + "."
		}
	}
	return ""
}

// A reading is a path as some servers read it, and what it contains for which others do not.
type reading struct{ path, contains string }

// readings are the ways to read a path that is not ambiguous by its form alone: cut at an
// escaped question mark or number sign, and with an escaped slash that divides no segments.
func readings(u *url.URL, path string) []reading {
	all := append(make([]reading, 0, 4), reading{path, ""})
	if whole, ok := undividedPath(u); ok {
		all = append(all, reading{whole, "an escaped slash"})
	}
	for _, one := range all {
		if at := strings.IndexAny(one.path, "?#"); at >= 0 {
			all = append(all, reading{one.path[:at], "an escaped question mark or number sign"})
		}
	}
	return all
}

// leadsToKey reports whether r takes a route that wants a key if its path is read as path, in
// any case. differs: path is not the one by which its route was chosen.
func (p *Proxy) leadsToKey(r *http.Request, host, path string, differs bool) bool {
	if differs {
		if other := p.findReading(r, host, path, same); other != nil && other.Keyed {
			return true
		}
	}
	lower := strings.ToLower(path)
	if lower == path && !p.upperCase {
		return false
	}
	other := p.findReading(r, host, lower, strings.ToLower)
	return other != nil && other.Keyed
}

// findReading is the route that r takes if its path is read as path, and prefixes are folded.
func (p *Proxy) findReading(r *http.Request, host, path string, fold func(string) string) *route {
	for i := range p.routes {
		one := &p.routes[i]
		if one.at(host) && under(path, fold(one.Prefix)) && one.said(r.Header) && one.takes(r.Method) {
			return one
		}
	}
	return nil
}

// undividedPath is the decoded path of u in which an escaped slash divides no segments: it is
// NUL. ok is false if there is no escaped slash.
func undividedPath(u *url.URL) (path string, ok bool) {
	if u.RawPath == "" { // the default encoding has none
		return "", false
	}
	divided := strings.NewReplacer("%2f", "%00", "%2F", "%00").Replace(u.RawPath)
	path, err := url.PathUnescape(divided)
	return path, err == nil && divided != u.RawPath
}

// same folds nothing.
func same(prefix string) string { return prefix }
