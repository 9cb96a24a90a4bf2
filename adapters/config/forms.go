package config

import (
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"macronode/core/types"
)

// A form is the syntax of a text.
type form struct {
	wants   string
	pattern *regexp.Regexp
	also    func(text string) bool // nil: the pattern is sufficient
}

// longest is the largest length of a text with a form, in bytes; a form may be stricter.
const longest = 512

func (f form) has(text string) bool {
	return len(text) <= longest && f.pattern.MatchString(text) && (f.also == nil || f.also(text))
}

// forms are all forms by their name in a tag. The schema uses their patterns.
var forms = map[string]form{
	"label": {"a name of at most 64 letters, digits, dashes and underscores",
		regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`), nil},
	"member": {"a name of at most 64 small letters, digits and underscores, which is not _missing",
		regexp.MustCompile(`^[a-z0-9_]{1,64}$`), func(t string) bool { return t != "_missing" }},
	"host": {"a host in small letters, without a port, such as example.com or *.example.com",
		regexp.MustCompile(`^(\*\.)?[a-z0-9_][a-z0-9_-]*(\.[a-z0-9_][a-z0-9_-]*)*$`), nil},
	"authority": {"a host in small letters, with or without a port, such as example.com or example.com:8080",
		regexp.MustCompile(`^[a-z0-9_][a-z0-9_-]*(\.[a-z0-9_][a-z0-9_-]*)*(:[0-9]{1,5})?$`), hasPort},
	"url": {"a URL such as http://127.0.0.1:9000, of http or https, without user, query, or slash at its end",
		regexp.MustCompile(`^https?://[a-z0-9_.:\[\]-]{1,300}(/[A-Za-z0-9._~!$&'()*+,;=:@-]+)*$`), isURL},
	"database": {"a URL such as postgres://user@127.0.0.1:5432/name, with a user and without a password",
		regexp.MustCompile(`^postgres://[a-z0-9_.-]{1,63}@[a-z0-9_.:,\[\]-]{0,300}/[A-Za-z0-9_-]{1,63}(\?[a-z0-9_]+=[A-Za-z0-9_.:/,-]+(&[a-z0-9_]+=[A-Za-z0-9_.:/,-]+)*)?$`), nil},
	"server": {"a URL such as nats://127.0.0.1:4222, kafka://127.0.0.1:9092 or tls://nats.example.com:4222, without a user",
		regexp.MustCompile(`^(nats|kafka|tls)://[a-z0-9_.:\[\]-]{1,300}$`), isURL},
	"subject": {"at most 64 of A-Z a-z 0-9 _ - in parts that are separated by dots",
		regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}(\.[A-Za-z0-9_-]{1,64})*$`), func(t string) bool { return len(t) <= 64 }},
	"topic": {"at most 249 of A-Z a-z 0-9 . _ -, and not . or ..",
		regexp.MustCompile(`^[A-Za-z0-9._-]{1,249}$`), func(t string) bool { return t != "." && t != ".." }},
	"directory": {"the path of a directory, of at most 400 printable ASCII characters",
		regexp.MustCompile(`^[ -~]{1,400}$`), nil},
	"file": {"the path of a file, of at most 400 printable ASCII characters",
		regexp.MustCompile(`^[ -~]{1,400}$`), nil},
	"sink": {"a name of at most 32 small letters, digits, dots, dashes and underscores",
		regexp.MustCompile(`^[a-z0-9._-]{1,32}$`), nil},
	"bucket": {"the name of a bucket: 3 to 63 small letters, digits, dots and dashes",
		regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`), nil},
	"key prefix": {"the begin of keys such as node-1 or backups/node-1, without a slash at its end",
		regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}(/[A-Za-z0-9_.-]{1,64}){0,3}$`), staysInside},
	"tenant": {"a tenant: default, or its number from 2 on",
		regexp.MustCompile(`^(default|[1-9][0-9]{0,9})$`), func(t string) bool { _, ok := types.ParseTenant(t); return ok }},
	"path": {"a path such as /v1, without query, percent signs, empty segments or dots as a segment",
		regexp.MustCompile(`^/([A-Za-z0-9._~!$&'()*+,;=:@-]+/)*[A-Za-z0-9._~!$&'()*+,;=:@-]*$`), staysInside},
	"prefix": {"a path such as /users, which stands for /users and all below it: without wildcards, query, percent signs, empty segments or dots as a segment",
		regexp.MustCompile(`^/([A-Za-z0-9._~!$&'()+,;=:@-]+/)*[A-Za-z0-9._~!$&'()+,;=:@-]*$`), staysInside},
	"method": {"a method in capitals, and neither CONNECT nor TRACE",
		regexp.MustCompile(`^[A-Z][A-Z-]{0,19}$`), func(t string) bool { return t != "CONNECT" && t != "TRACE" }},
	"allowed method": {"a method in capitals, and neither CONNECT nor TRACE, or *",
		regexp.MustCompile(`^(\*|[A-Z][A-Z-]{0,19})$`), func(t string) bool { return t != "CONNECT" && t != "TRACE" }},
	"origin": {"an origin as a browser says it, such as https://example.com or http://localhost:3000, in small letters, without a path and the scheme's own port, or *, or null",
		regexp.MustCompile(`^(\*|null|[a-z][a-z0-9+.-]*://[a-z0-9_.:\[\]-]{1,300})$`), isOrigin},
	"header": {"the name of a header",
		regexp.MustCompile(`^[A-Za-z0-9!#$%&'*+.^_|~-]{1,64}$`), nil},
	"value": {"at most 256 printable ASCII characters, with no space at either end",
		regexp.MustCompile(`^[!-~]([ -~]{0,254}[!-~])?$`), nil},
	"usage label": {"at most 64 of a-z 0-9 . _ - / { }",
		regexp.MustCompile(`^[a-z0-9._/{}-]{1,64}$`), nil},
	"dimension": {"a dimension such as requests, bytes_out or custom:tokens",
		regexp.MustCompile(`^(bytes_in|bytes_out|bytes_stored|requests|requests_write|requests_read|cpu_ms|custom:[a-z0-9._/{}-]{1,57})$`), nil},
	"account": {"the name of an account such as usage:prepaid: at most 256 of A-Z a-z 0-9 : / _ -, and not one that begins with issuance: or burned:",
		regexp.MustCompile(`^[A-Za-z0-9:/_-]{1,256}$`), func(t string) bool { return types.CheckUserAccount(t) == nil }},
	"asset": {"the name of an asset such as EUR/2: at most 32 of A-Z a-z 0-9 / _ -",
		regexp.MustCompile(`^[A-Za-z0-9/_-]{1,32}$`), nil},
	"decimal": {`minor units as a decimal number in quotes such as "0.25": at most 12 digits, and 6 after the point, without zeros at its end`,
		regexp.MustCompile(`^(0|[1-9][0-9]{0,11})(\.[0-9]{0,5}[1-9])?$`), nil},
	"json": {"JSON of at most 512 printable ASCII characters",
		regexp.MustCompile(`^[ -~]+$`), func(t string) bool { return jsontext.Value(t).IsValid() }},
}

func hasPort(text string) bool {
	_, port, ok := strings.Cut(text, ":")
	n, err := strconv.ParseUint(port, 10, 16)
	return !ok || err == nil && n > 0
}

func isURL(text string) bool {
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.Path != "" && !staysInside(u.Path) {
		return false
	}
	n, err := strconv.ParseUint(u.Port(), 10, 16)
	return u.Port() == "" && !strings.HasSuffix(u.Host, ":") || err == nil && n > 0
}

// isOrigin reports whether a text is an origin as browsers send it.
func isOrigin(text string) bool {
	if text == "*" || text == "null" {
		return true
	}
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || strings.HasSuffix(u.Host, ":") || u.Scheme == "http" && u.Port() == "80" || u.Scheme == "https" && u.Port() == "443" {
		return false
	}
	n, err := strconv.ParseUint(u.Port(), 10, 16)
	return u.Port() == "" || err == nil && n > 0
}

// staysInside reports whether no segment of a path is dots, even before a parameter.
func staysInside(path string) bool {
	for segment := range strings.SplitSeq(path, "/") {
		segment, _, _ = strings.Cut(segment, ";")
		if segment == "." || segment == ".." {
			return false
		}
	}
	return true
}

// nearest returns the name with the smallest edit distance.
func nearest(name string, among []string) (best string) {
	least := -1
	for _, n := range among {
		if d := distance(name, n); least < 0 || d < least {
			best, least = n, d
		}
	}
	return best
}

// distance returns the edit distance of two texts.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0] // of the previous row, one to the left
		row[0] = i + 1
		for j := range len(b) {
			same := before
			if a[i] != b[j] {
				same++
			}
			before = row[j+1]
			row[j+1] = min(same, row[j]+1, before+1)
		}
	}
	return row[len(b)]
}
