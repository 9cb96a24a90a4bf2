package cli

import (
	"crypto/tls"
	"net/http"
	"strings"
	"testing"
	"time"

	"macronode/cmd/macronode/internal/testkit"
)

// TestProtectedPathHasOneSpelling requests a path that needs a key in every spelling that common servers accept,
// over both protocols. If another route needs no key, each gets 400 or 401, unless that route matches any path.
func TestProtectedPathHasOneSpelling(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	trust := &tls.Config{RootCAs: testkit.WriteCertificate(t, dir, time.Now().Add(30*24*time.Hour)), MinVersion: tls.VersionTLS13}
	p := startNode(t, append(testkit.TLSKeys(dir), newAppUpstream(t),
		`routes=[{"path":"/","upstream":"app","auth":"none"},{"path":"/secret","upstream":"app"},{"path":"/posts","methods":["POST"],"upstream":"app"},{"path":"/any","upstream":"app","auth":"none","path_normalization":"off"}]`)...)
	to := strings.TrimPrefix(p.HTTP, "https://")
	for target, want := range map[string]int{
		"/": 200, "/open/x": 200, "/wiki/What%3F": 200, "/any/;a//b%5cc.": 200,
		"/secret": 401, "/secret/": 401, "/secret%2fx": 401, "/%73ecret": 401,
		"/secret;a": 400, "//h/secret": 400, "/%5csecret": 400, "/x%5csecret": 400, "/secret.": 400, "/secret%20": 400, "/SECRET": 400, "/secret%3f": 400, "/%2573ecret": 400, "/secret%a0": 400,
		"/posts": 405, "/posts/x": 405, "/POSTS": 400,
	} {
		m := malformedRequest{part: target, method: http.MethodGet, target: target, host: "node"}
		if status, body := m.overHTTP1(t, to, trust); status != want {
			t.Errorf("%s by HTTP/1.1: %d %s, want %d", target, status, body, want)
		}
		if status, body := m.overHTTP2(t, to, trust); status != want || want == http.StatusBadRequest && !strings.Contains(body, `"detail":"The path `) {
			t.Errorf("%s by HTTP/2: %d %s, want %d", target, status, body, want)
		}
	}
}
