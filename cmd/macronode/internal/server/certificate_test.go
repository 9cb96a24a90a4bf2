package server

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"macronode/adapters/adminapi"
	"macronode/adapters/fs"
	"macronode/adapters/nodedir"
	"macronode/cmd/macronode/internal/settings"
	"macronode/cmd/macronode/internal/testkit"
)

// newCertificates returns the certificates of a configuration that names the files in dir.
func newCertificates(t *testing.T, dir string, log *slog.Logger) *certificates {
	t.Helper()
	c := testkit.Config(t, testkit.TLSKeys(dir)...)
	read, err := settings.ReadCertificate(c)
	testkit.Must(t, err)
	return &certificates{tls: settings.NewTLS(c, read), settings: settings.NewStart(c).Listeners.TLS, runFile: &runFile{dir: fs.Dir(dir), log: log}, log: log}
}

// reread reads the files again, and presents what they contain.
func reread(t *testing.T, l *certificates, dir string) error {
	t.Helper()
	read, err := settings.ReadCertificate(testkit.Config(t, testkit.TLSKeys(dir)...))
	if err == nil {
		l.show(read)
	}
	return err
}

// TestRenew: a valid pair is presented and logged; an invalid one changes nothing.
func TestRenew(t *testing.T) {
	dir, far := t.TempDir(), time.Now().Add(30*24*time.Hour)
	testkit.WriteCertificate(t, dir, far)
	l := newCertificates(t, dir, slog.New(slog.DiscardHandler))
	first := l.tls.Certificate()
	if err := reread(t, l, dir); err != nil || !l.tls.Certificate().Equal(first) {
		t.Fatalf("the same again: %v", err)
	}
	testkit.WriteCertificate(t, dir, far.Add(time.Hour))
	if err := reread(t, l, dir); err != nil || l.tls.Certificate().Equal(first) {
		t.Fatalf("another: %v", err)
	}
	second := l.tls.Certificate()
	run, err := nodedir.Read(dir)
	if run.Listen.TLS.Certificate != second.Fingerprint() {
		t.Fatalf("run.json says %+v (%v), shown is %s", run, err, second.Fingerprint())
	}
	for name, spoil := range map[string]func(){
		"is over since":                      func() { testkit.WriteCertificate(t, dir, time.Now()) },
		"are no certificate and its key":     func() { testkit.WriteFile(t, filepath.Join(dir, "key")) },
		"key: no such file":                  func() { _ = os.Remove(filepath.Join(dir, "key")) },
		"cert: it is longer than 262144 byt": func() { testkit.WriteFile(t, filepath.Join(dir, "cert"), make([]byte, 1<<20)...) },
	} {
		testkit.WriteCertificate(t, dir, far)
		spoil()
		if err := reread(t, l, dir); err == nil || !strings.Contains(err.Error(), name) || !strings.HasPrefix(err.Error(), "listen.tls: ") || l.tls.Certificate() != second {
			t.Errorf("%s: %v", name, err)
		}
	}
	if read, err := settings.ReadCertificate(testkit.Config(t)); read != nil || err != nil {
		t.Errorf("without TLS: %v", err)
	}
}

// TestCertificateExpiryIsLogged: the last week is logged once, the expiry once, and a new certificate ends both.
func TestCertificateExpiryIsLogged(t *testing.T) {
	dir, ends := t.TempDir(), time.Now().Add(10*24*time.Hour)
	testkit.WriteCertificate(t, dir, ends)
	var log bytes.Buffer
	l := newCertificates(t, dir, slog.New(slog.NewTextHandler(&log, nil)))
	for _, c := range []struct {
		before   time.Duration
		contains string
	}{
		{settings.ExpiryWarning + time.Second, ""}, {settings.ExpiryWarning - time.Second, "expires soon"}, {time.Hour, ""}, {time.Second, ""}, {0, "expired"}, {-time.Hour, ""},
	} {
		l.logExpiry(l.tls.Certificate().NotAfter().Add(-c.before))
		if (log.Len() > 0) != (c.contains != "") || !strings.Contains(log.String(), c.contains) {
			t.Errorf("%v before the end: %q", c.before, &log)
		}
		log.Reset()
	}
	testkit.WriteCertificate(t, dir, ends.Add(24*time.Hour))
	if err := reread(t, l, dir); err != nil {
		t.Fatal(err)
	}
	log.Reset()
	l.logExpiry(ends.Add(-settings.ExpiryWarning))
	if log.Len() > 0 || l.loggedAge != settings.CertificateYoung {
		t.Errorf("of a new one: %q", &log)
	}
	for n := range 2 { // each new certificate is warned of once
		testkit.WriteCertificate(t, dir, ends.Add(time.Duration(n)*time.Hour))
		for again := range 2 {
			if err := reread(t, l, dir); err != nil {
				t.Fatal(err)
			}
			log.Reset()
			l.logExpiry(ends.Add(-time.Minute))
			if strings.Contains(log.String(), "expires soon") != (again == 0) {
				t.Errorf("of another, %d, read %d times before: %q", n, again, &log)
			}
		}
	}
}

// TestRenewalIsCounted: a renewed certificate counts as a change, also if it is the only one.
func TestRenewalIsCounted(t *testing.T) {
	dir, far := t.TempDir(), time.Now().Add(30*24*time.Hour)
	testkit.WriteCertificate(t, dir, far)
	c := testkit.Config(t, testkit.TLSKeys(dir)...)
	l := newTestServer(t, c, c)
	is, shown := l.applied.Load(), l.certificates.tls.Certificate
	l.reloader.nodeCtx = t.Context()
	for n, renew := range []bool{false, true, false, true, false} {
		if renew {
			far = far.Add(time.Hour)
			testkit.WriteCertificate(t, dir, far)
		}
		was := shown()
		got := l.reloader.reload()
		if want := uint64(n+1) / 2; got.Changes != want || got.Refused != 0 || (len(got.Last.Changed) == 1) != renew || got.Version != is.Face.Version {
			t.Errorf("%d: %+v, last %+v", n, got, got.Last)
		}
		if renew && got.Last.Changed[0] != (adminapi.Changed{Key: settings.CertificateKey, Old: settings.DescribeCertificate(was), New: settings.DescribeCertificate(shown()), Hot: true}) {
			t.Errorf("%d: %+v", n, got.Last)
		}
	}
}
