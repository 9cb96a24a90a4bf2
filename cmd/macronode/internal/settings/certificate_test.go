package settings

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"macronode/cmd/macronode/internal/testkit"
)

// TestBadCertificateIsRejected, with a reason.
func TestBadCertificateIsRejected(t *testing.T) {
	dir := t.TempDir()
	testkit.WriteCertificate(t, dir, time.Now())
	if _, err := ReadCertificate(testkit.Config(t, testkit.TLSKeys(dir)...)); err == nil || !strings.Contains(err.Error(), "listen.tls: "+filepath.Join(dir, "cert")+": certificate 1 of it is over since") {
		t.Fatalf("%v", err)
	}
}
