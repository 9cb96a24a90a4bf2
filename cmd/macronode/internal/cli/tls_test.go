package cli

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"macronode/cmd/macronode/internal/exit"
	"macronode/cmd/macronode/internal/settings"
	"macronode/cmd/macronode/internal/testkit"
)

// TestNodeCertificate: other clients verify the issuer, and commands on the directory of the node verify the
// fingerprint that is written there.
func TestNodeCertificate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ends := time.Now().Add(30 * 24 * time.Hour).Truncate(time.Second)
	pool := testkit.WriteCertificate(t, dir, ends)
	p := startNode(t, append(testkit.TLSKeys(dir), "listen.tls.admin=true", "listen.tls.post_quantum=required")...)
	if !strings.HasPrefix(p.HTTP, "https://") || !strings.HasPrefix(p.Admin, "https://") {
		t.Fatalf("it greets with %+v", p.greeting)
	}
	clientWithPool := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}
	defer clientWithPool.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.Admin+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+p.token)
	resp, err := clientWithPool.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if end := fmt.Sprintf("\ntls_certificate_not_after_timestamp_seconds %v\n", float64(ends.Unix())); err != nil || !strings.Contains(string(text), end) {
		t.Errorf("metrics say not %q (%v)", end, err)
	}

	c := newTestConsole()
	c.tree = &tree{Data: p.Data}
	_, is, err := c.node().findNode()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := c.node().callAdmin(t.Context(), is, http.MethodGet, "/readyz", time.Minute); err != nil || !got.ok() {
		t.Errorf("the admin listener says %+v, %v", got, err)
	}
	if got, err := c.node().callAdmin(t.Context(), is, http.MethodGet, "/readyz?verbose", time.Minute); err != nil || !strings.Contains(string(got.body), `"certificate":{"ends":"`+ends.UTC().Format(time.RFC3339)+`","age":"young"}`) {
		t.Errorf("the admin listener says %s, %v", got.body, err)
	}
	is.Listen.TLS.Certificate = strings.Repeat("0", 64)
	if got, err := c.node().callAdmin(t.Context(), is, http.MethodGet, "/readyz", time.Minute); err == nil || !strings.Contains(err.Error(), errOtherCertificate.Error()) {
		t.Errorf("a stranger is believed: %+v, %v", got, err)
	}
}

// TestConfigCheckReadsCertificate: config check rejects what serve rejects, with the same message.
func TestConfigCheckReadsCertificate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testkit.WriteCertificate(t, dir, time.Now().Add(30*24*time.Hour))
	var sets []string
	for _, s := range append(testkit.TLSKeys(dir), "listen.http=127.0.0.1:0", "listen.admin=127.0.0.1:0") {
		sets = append(sets, "--set", s)
	}
	runVerb := func(args ...string) (code int, errOut string) {
		d := newTestConsole()
		code = Run(append(args, sets...), d.Console)
		return code, d.out.String() + d.err.String()
	}
	if code, errOut := runVerb("config", "check"); code != exit.CodeDone || !strings.HasPrefix(errOut, "the configuration is valid") {
		t.Fatalf("a good one: %d %s", code, errOut)
	}
	for name, spoil := range map[string]func(){
		"certificate 1 of it is over since": func() { testkit.WriteCertificate(t, dir, time.Now()) },
		"are no certificate and its key":    func() { testkit.WriteFile(t, filepath.Join(dir, "key")) },
		"key: no such file":                 func() { _ = os.Remove(filepath.Join(dir, "key")) },
	} {
		testkit.WriteCertificate(t, dir, time.Now().Add(30*24*time.Hour))
		spoil()
		data := filepath.Join(dir, "never")
		startCode, start := runVerb("serve", "--data", data)
		code, errOut := runVerb("config", "check")
		if code != exit.CodeUnable || startCode != exit.CodeUnable || errOut != start || !strings.Contains(errOut, name) || !strings.HasPrefix(errOut, "macronode: listen.tls: ") {
			t.Errorf("%s: %d %s, a start says %d %s", name, code, errOut, startCode, start)
		}
	}
}

// TestCertificateChangeIsAReload: another certificate in the same file is compared, applied, counted and reported
// like any change.
func TestCertificateChangeIsAReload(t *testing.T) {
	t.Parallel()
	dir, ends := t.TempDir(), time.Now().Add(30*24*time.Hour).Truncate(time.Second)
	testkit.WriteCertificate(t, dir, ends)
	c := startWithFile(t, "listen: { tls: { cert: "+filepath.Join(dir, "cert")+", key: "+filepath.Join(dir, "key")+" } }\n")
	first := c.applied()
	if code, out, errOut := c.run("config", "diff"); code != exit.CodeDone || out != "nothing differs\n" {
		t.Errorf("the same: %d %s%s", code, out, errOut)
	}
	for n := range 2 {
		testkit.WriteCertificate(t, dir, ends.Add(time.Duration(n+1)*time.Hour))
		until := " until " + ends.Add(time.Duration(n+1)*time.Hour).UTC().Format(time.RFC3339)
		if code, out, errOut := c.run("config", "diff"); code != exit.CodeFailed || !strings.HasPrefix(out, "certificate: ") || !strings.HasSuffix(out, until+", while it runs\n") {
			t.Errorf("before %d: %d %s%s", n, code, out, errOut)
		}
		if code, out, errOut := c.run("config", "reload"); code != exit.CodeDone || !strings.Contains(out, fmt.Sprintf(", %d changes applied, 0 rejected\n", n+1)) || !strings.Contains(out, until+", while it runs\n") {
			t.Errorf("%d: %d %s%s", n, code, out, errOut)
		}
		if is := c.applied(); is.Version != first.Version || len(is.Last.Changed) != 1 || is.Last.Changed[0].Key != settings.CertificateKey || !is.Last.Changed[0].Hot {
			t.Errorf("%d: %+v", n, is)
		}
		if got, want := c.servedUntil(t), ends.Add(time.Duration(n+1)*time.Hour); !got.Equal(want) {
			t.Errorf("%d: a client gets the certificate until %v, want %v", n, got, want)
		}
	}
	if code, out, errOut := c.run("config", "reload"); code != exit.CodeDone || !strings.Contains(out, ", 2 changes applied, 0 rejected\n") {
		t.Errorf("the same again: %d %s%s", code, out, errOut)
	}
	// Another certificate and another key of the configuration at once.
	testkit.WriteCertificate(t, dir, ends.Add(3*time.Hour))
	text, err := os.ReadFile(c.file)
	if err != nil {
		t.Fatal(err)
	}
	if is, status := c.reload(string(text) + "queue: { max_wait: 50ms }\n"); status != http.StatusOK || is.Changes != 3 || len(is.Last.Changed) != 2 {
		t.Errorf("both: %d %+v", status, is)
	}
	if got, want := c.servedUntil(t), ends.Add(3*time.Hour); !got.Equal(want) {
		t.Errorf("both: a client gets the certificate until %v, want %v", got, want)
	}
	testkit.WriteFile(t, filepath.Join(dir, "key"))
	if code, out, errOut := c.run("config", "diff"); code != exit.CodeFailed || out != "" || !strings.HasPrefix(errOut, "macronode: it cannot be applied: listen.tls: ") {
		t.Errorf("a wrong key: %d %s%s", code, out, errOut)
	}
	if code, out, errOut := c.run("config", "reload"); code != exit.CodeFailed || !strings.Contains(out, ", 3 changes applied, 1 rejected\n") {
		t.Errorf("a wrong key: %d %s%s", code, out, errOut)
	}
}

// servedUntil returns when the certificate expires that a new client of the public listener gets.
func (c *reloadableNode) servedUntil(t *testing.T) time.Time {
	t.Helper()
	conn, err := tls.Dial("tcp", strings.TrimPrefix(c.HTTP, "https://"), &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // the certificate is what is tested
	testkit.Must(t, err)
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates[0].NotAfter
}
