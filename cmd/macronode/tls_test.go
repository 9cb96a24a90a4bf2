package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"macronode/adapters/adminapi"
	"macronode/adapters/config"
	"macronode/adapters/fs"
	"macronode/adapters/nodedir"
)

// certifies writes a certificate that signed itself, and its key, to dir.
func certifies(t *testing.T, dir string, ends time.Time) (pool *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: ends.Add(-90 * 24 * time.Hour), NotAfter: ends, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{"cert": {Type: "CERTIFICATE", Bytes: der}, "key": {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pool = x509.NewCertPool()
	c, err = x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool.AddCert(c)
	return pool
}

func proof(dir string) []string {
	return []string{"listen.tls.cert=" + filepath.Join(dir, "cert"), "listen.tls.key=" + filepath.Join(dir, "key")}
}

// proven is a life with a certificate, as far as that goes.
func proven(t *testing.T, dir string, log *slog.Logger) *life {
	t.Helper()
	l := &life{config: configured(t, proof(dir)...), log: log, dir: fs.Dir(dir)}
	read, err := readCertificate(l.config)
	if err != nil {
		t.Fatal(err)
	}
	l.tls = newTLS(l.config, read)
	return l
}

// renews is what a change does about it.
func renews(l *life) error {
	read, err := readCertificate(l.config)
	if err == nil {
		l.present(read)
	}
	return err
}

// TestRenew: a good pair is shown and told of, a bad one leaves the one that there is.
func TestRenew(t *testing.T) {
	dir, far := t.TempDir(), time.Now().Add(30*24*time.Hour)
	certifies(t, dir, far)
	l := proven(t, dir, slog.New(slog.DiscardHandler))
	first := l.tls.Shown()
	if err := renews(l); err != nil || !l.tls.Shown().Same(first) {
		t.Fatalf("the same again: %v", err)
	}
	certifies(t, dir, far.Add(time.Hour))
	if err := renews(l); err != nil || l.tls.Shown().Same(first) {
		t.Fatalf("another: %v", err)
	}
	second := l.tls.Shown()
	run, err := nodedir.Read(dir)
	if run.Listen.TLS.Certificate != second.Print() {
		t.Fatalf("run.json says %+v (%v), shown is %s", run, err, second.Print())
	}
	for name, spoil := range map[string]func(){
		"is over since":                      func() { certifies(t, dir, time.Now()) },
		"are no certificate and its key":     func() { spill(t, filepath.Join(dir, "key")) },
		"key: no such file":                  func() { _ = os.Remove(filepath.Join(dir, "key")) },
		"cert: it is longer than 262144 byt": func() { spill(t, filepath.Join(dir, "cert"), make([]byte, 1<<20)...) },
	} {
		certifies(t, dir, far)
		spoil()
		if err := renews(l); err == nil || !strings.Contains(err.Error(), name) || !strings.HasPrefix(err.Error(), "listen.tls: ") || l.tls.Shown() != second {
			t.Errorf("%s: %v", name, err)
		}
	}
	if read, err := readCertificate(configured(t)); read != nil || err != nil {
		t.Errorf("without TLS: %v", err)
	}
}

func spill(t *testing.T, path string, what ...byte) {
	t.Helper()
	if err := os.WriteFile(path, what, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestACertificateIsWatched: its last week is said once, its end once, and a new one ends both.
func TestACertificateIsWatched(t *testing.T) {
	dir, ends := t.TempDir(), time.Now().Add(10*24*time.Hour)
	certifies(t, dir, ends)
	var said bytes.Buffer
	l := proven(t, dir, slog.New(slog.NewTextHandler(&said, nil)))
	for _, c := range []struct {
		before time.Duration
		says   string
	}{
		{soon + time.Second, ""}, {soon - time.Second, "expires soon"}, {time.Hour, ""}, {time.Second, ""}, {0, "expired"}, {-time.Hour, ""},
	} {
		l.watchCertificate(l.tls.Shown().Ends().Add(-c.before))
		if (said.Len() > 0) != (c.says != "") || !strings.Contains(said.String(), c.says) {
			t.Errorf("%v before the end: %q", c.before, &said)
		}
		said.Reset()
	}
	certifies(t, dir, ends.Add(24*time.Hour))
	if err := renews(l); err != nil {
		t.Fatal(err)
	}
	said.Reset()
	l.watchCertificate(ends.Add(-soon))
	if said.Len() > 0 || l.aged != young {
		t.Errorf("of a new one: %q", &said)
	}
	for n := range 2 { // each is warned of, though the one before it was; the same, read again, is not
		certifies(t, dir, ends.Add(time.Duration(n)*time.Hour))
		for again := range 2 {
			if err := renews(l); err != nil {
				t.Fatal(err)
			}
			said.Reset()
			l.watchCertificate(ends.Add(-time.Minute))
			if strings.Contains(said.String(), "expires soon") != (again == 0) {
				t.Errorf("of another, %d, read %d times before: %q", n, again, &said)
			}
		}
	}
}

// TestTheNodeProvesItself: to strangers by who signed, to who reads its directory by what it
// says there.
func TestTheNodeProvesItself(t *testing.T) {
	dir := t.TempDir()
	ends := time.Now().Add(30 * 24 * time.Hour).Truncate(time.Second)
	pool := certifies(t, dir, ends)
	p := serves(t, append(proof(dir), "listen.tls.admin=true", "listen.tls.post_quantum=required")...)
	if !strings.HasPrefix(p.HTTP, "https://") || !strings.HasPrefix(p.Admin, "https://") {
		t.Fatalf("it greets with %+v", p.greeting)
	}
	stranger := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}
	defer stranger.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.Admin+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+p.token)
	resp, err := stranger.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if end := fmt.Sprintf("\ntls_certificate_not_after_timestamp_seconds %v\n", float64(ends.Unix())); err != nil || !strings.Contains(string(text), end) {
		t.Errorf("metrics say not %q (%v)", end, err)
	}

	c := newDesk()
	c.tree = &tree{Data: p.Data}
	_, is, err := c.found()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := c.admin(t.Context(), is, http.MethodGet, "/readyz", time.Minute); err != nil || !got.ok() {
		t.Errorf("the admin listener says %+v, %v", got, err)
	}
	if got, err := c.admin(t.Context(), is, http.MethodGet, "/readyz?verbose", time.Minute); err != nil || !strings.Contains(string(got.body), `"certificate":{"ends":"`+ends.UTC().Format(time.RFC3339)+`","age":"young"}`) {
		t.Errorf("the admin listener says %s, %v", got.body, err)
	}
	is.Listen.TLS.Certificate = strings.Repeat("0", 64)
	if got, err := c.admin(t.Context(), is, http.MethodGet, "/readyz", time.Minute); err == nil || !strings.Contains(err.Error(), errStranger.Error()) {
		t.Errorf("a stranger is believed: %+v, %v", got, err)
	}
}

// TestACheckReadsTheCertificate: what serve refuses at its start, config check refuses in the
// same words.
func TestACheckReadsTheCertificate(t *testing.T) {
	dir := t.TempDir()
	certifies(t, dir, time.Now().Add(30*24*time.Hour))
	var sets []string
	for _, s := range append(proof(dir), "listen.http=127.0.0.1:0", "listen.admin=127.0.0.1:0") {
		sets = append(sets, "--set", s)
	}
	says := func(args ...string) (code int, said string) {
		d := newDesk()
		code = run(append(args, sets...), d.console)
		return code, d.out.String() + d.err.String()
	}
	if code, said := says("config", "check"); code != done || !strings.HasPrefix(said, "the configuration is valid") {
		t.Fatalf("a good one: %d %s", code, said)
	}
	for name, spoil := range map[string]func(){
		"certificate 1 of it is over since": func() { certifies(t, dir, time.Now()) },
		"are no certificate and its key":    func() { spill(t, filepath.Join(dir, "key")) },
		"key: no such file":                 func() { _ = os.Remove(filepath.Join(dir, "key")) },
	} {
		certifies(t, dir, time.Now().Add(30*24*time.Hour))
		spoil()
		data := filepath.Join(dir, "never")
		startCode, start := says("serve", "--data", data)
		code, said := says("config", "check")
		if code != unable || startCode != unable || said != start || !strings.Contains(said, name) || !strings.HasPrefix(said, "macronode: listen.tls: ") {
			t.Errorf("%s: %d %s, a start says %d %s", name, code, said, startCode, start)
		}
	}
}

// TestAnotherCertificateIsAChange: of the same configuration, with another certificate in its
// file. It is compared, applied, counted and told like any change.
func TestAnotherCertificateIsAChange(t *testing.T) {
	dir, ends := t.TempDir(), time.Now().Add(30*24*time.Hour).Truncate(time.Second)
	certifies(t, dir, ends)
	c := startsWith(t, "listen: { tls: { cert: "+filepath.Join(dir, "cert")+", key: "+filepath.Join(dir, "key")+" } }\n")
	first := c.applied()
	if code, out, said := c.run("config", "diff"); code != done || out != "nothing differs\n" {
		t.Errorf("the same: %d %s%s", code, out, said)
	}
	for n := range 2 {
		certifies(t, dir, ends.Add(time.Duration(n+1)*time.Hour))
		until := " until " + ends.Add(time.Duration(n+1)*time.Hour).UTC().Format(time.RFC3339)
		if code, out, said := c.run("config", "diff"); code != refused || !strings.HasPrefix(out, "certificate: ") || !strings.HasSuffix(out, until+", while it runs\n") {
			t.Errorf("before %d: %d %s%s", n, code, out, said)
		}
		if code, out, said := c.run("config", "reload"); code != done || !strings.Contains(out, fmt.Sprintf(", %d changes applied, 0 rejected\n", n+1)) || !strings.Contains(out, until+", while it runs\n") {
			t.Errorf("%d: %d %s%s", n, code, out, said)
		}
		if is := c.applied(); is.Version != first.Version || len(is.Last.Changed) != 1 || is.Last.Changed[0].Key != certificate || !is.Last.Changed[0].Hot {
			t.Errorf("%d: %+v", n, is)
		}
	}
	if code, out, said := c.run("config", "reload"); code != done || !strings.Contains(out, ", 2 changes applied, 0 rejected\n") {
		t.Errorf("the same again: %d %s%s", code, out, said)
	}
	// Another certificate, and another key of the configuration, at once.
	certifies(t, dir, ends.Add(3*time.Hour))
	text, err := os.ReadFile(c.file)
	if err != nil {
		t.Fatal(err)
	}
	if is, status := c.reload(string(text) + "queue: { max_wait: 50ms }\n"); status != http.StatusOK || is.Changes != 3 || len(is.Last.Changed) != 2 {
		t.Errorf("both: %d %+v", status, is)
	}
	spill(t, filepath.Join(dir, "key"))
	if code, out, said := c.run("config", "diff"); code != refused || out != "" || !strings.HasPrefix(said, "macronode: it cannot be applied: listen.tls: ") {
		t.Errorf("a wrong key: %d %s%s", code, out, said)
	}
	if code, out, said := c.run("config", "reload"); code != refused || !strings.Contains(out, ", 3 changes applied, 1 rejected\n") {
		t.Errorf("a wrong key: %d %s%s", code, out, said)
	}
}

// TestARenewalIsCounted: a renewed certificate counts as a change, also if it is the only one.
func TestARenewalIsCounted(t *testing.T) {
	dir, far := t.TempDir(), time.Now().Add(30*24*time.Hour)
	certifies(t, dir, far)
	l := proven(t, dir, slog.New(slog.DiscardHandler))
	l.changes = newChanges(func() (*config.Config, error) { return l.config, nil })
	is, err := l.edit(l.config, &edition{})
	if err != nil {
		t.Fatal(err)
	}
	l.edition.Store(is)
	l.changes.begin(is)
	l.changes.life = t.Context()
	for n, renew := range []bool{false, true, false, true, false} {
		if renew {
			far = far.Add(time.Hour)
			certifies(t, dir, far)
		}
		was := l.tls.Shown()
		got := l.reload()
		if want := uint64(n+1) / 2; got.Changes != want || got.Refused != 0 || (len(got.Last.Changed) == 1) != renew || got.Version != is.face.Version {
			t.Errorf("%d: %+v, last %+v", n, got, got.Last)
		}
		if renew && got.Last.Changed[0] != (adminapi.Changed{Key: certificate, Old: described(was), New: described(l.tls.Shown()), Hot: true}) {
			t.Errorf("%d: %+v", n, got.Last)
		}
	}
}

// TestABadCertificateIsNoStart, and says why.
func TestABadCertificateIsNoStart(t *testing.T) {
	dir := t.TempDir()
	certifies(t, dir, time.Now())
	if _, err := readCertificate(configured(t, proof(dir)...)); err == nil || !strings.Contains(err.Error(), "listen.tls: "+filepath.Join(dir, "cert")+": certificate 1 of it is over since") {
		t.Fatalf("%v", err)
	}
}
