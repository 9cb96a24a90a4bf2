package httpserver

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// An issuer signs certificates; another issuer may have signed its own.
type issuer struct {
	cert *x509.Certificate
	key  crypto.Signer
}

var serial = big.NewInt(1)

func elliptical(t testing.TB, of elliptic.Curve) crypto.Signer {
	t.Helper()
	k, err := ecdsa.GenerateKey(of, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// signs makes a certificate for a key; a nil issuer signs itself.
func (a *issuer) signs(t testing.TB, key crypto.Signer, change func(*x509.Certificate)) *issuer {
	t.Helper()
	serial = new(big.Int).Add(serial, big.NewInt(1))
	c := &x509.Certificate{SerialNumber: serial, Subject: pkix.Name{CommonName: "number " + serial.String()},
		NotBefore: today.Add(-time.Hour), NotAfter: today.Add(30 * 24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		BasicConstraintsValid: true, IsCA: a == nil}
	if change != nil {
		change(c)
	}
	by := a
	if by == nil {
		by = &issuer{c, key}
	}
	der, err := x509.CreateCertificate(rand.Reader, c, by.cert, key.Public(), by.key)
	if err != nil {
		t.Fatal(err)
	}
	if c, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	return &issuer{c, key}
}

var today = time.Now()

// files writes a chain and the key of its first certificate.
func files(t testing.TB, chain ...*issuer) (cert, key string) {
	t.Helper()
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	write(t, cert, key, chain...)
	return cert, key
}

func write(t testing.TB, cert, key string, chain ...*issuer) {
	t.Helper()
	var text []byte
	for _, c := range chain {
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.cert.Raw})...)
	}
	der, err := x509.MarshalPKCS8PrivateKey(chain[0].key)
	if err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string][]byte{cert: text, key: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})} {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestReadCertificate(t *testing.T) {
	p256 := elliptic.P256()
	_, edwards, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	var noFile *issuer
	root := noFile.signs(t, elliptical(t, p256), nil)
	middle := root.signs(t, elliptical(t, p256), func(c *x509.Certificate) { c.IsCA = true; c.NotAfter = today.Add(time.Hour) })
	leaf := func(change func(*x509.Certificate)) *issuer { return middle.signs(t, elliptical(t, p256), change) }
	unrelated := noFile.signs(t, elliptical(t, p256), nil)
	for _, c := range []struct {
		name    string
		chain   []*issuer
		message string // empty: it is taken
	}{
		{"one that signed itself", []*issuer{root}, ""},
		{"a chain", []*issuer{leaf(nil), middle}, ""},
		{"a chain with its root", []*issuer{leaf(nil), middle, root}, ""},
		{"Ed25519", []*issuer{noFile.signs(t, edwards, nil)}, ""},
		{"RSA", []*issuer{noFile.signs(t, rsaKey, nil)}, ""},
		{"for a server", []*issuer{leaf(func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth} })}, ""},
		{"for a client", []*issuer{leaf(func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth} })}, "it is not for a server"},
		{"of the wrong order", []*issuer{leaf(nil), root, middle}, "certificate 1 of it is not signed by the one that follows"},
		{"with a stranger in it", []*issuer{leaf(nil), unrelated}, "certificate 1 of it is not signed by the one that follows"},
		{"with a gap", []*issuer{leaf(nil), root}, "certificate 1 of it is not signed by the one that follows"},
		{"one that is over", []*issuer{leaf(func(c *x509.Certificate) { c.NotAfter = today })}, "certificate 1 of it is over since "},
		{"one that begins later", []*issuer{leaf(func(c *x509.Certificate) { c.NotBefore = today.Add(time.Hour) })}, "certificate 1 of it is not valid before "},
		{"one of its signers is over", []*issuer{
			root.signs(t, middle.key, func(c *x509.Certificate) { c.IsCA, c.NotAfter = true, today.Add(-time.Minute) })}, "certificate 1 of it is over"},
		{"one that names nobody", []*issuer{leaf(func(c *x509.Certificate) { c.IPAddresses = nil })}, "it names no host"},
		{"a curve that TLS 1.3 does not have", []*issuer{noFile.signs(t, elliptical(t, elliptic.P224()), nil)}, "TLS 1.3 cannot show it"},
	} {
		cert, key := files(t, c.chain...)
		got, err := ReadCertificate(cert, key, today)
		switch {
		case c.message == "" && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.message != "" && (err == nil || !strings.Contains(err.Error(), cert+": "+c.message)):
			t.Errorf("%s: %v", c.name, err)
		case err == nil && got.Fingerprint() != Fingerprint(c.chain[0].cert.Raw):
			t.Errorf("%s: is another", c.name)
		}
	}
	cert, key := files(t, leaf(nil), middle)
	if c, err := ReadCertificate(cert, key, today); err != nil || !c.NotAfter().Equal(middle.cert.NotAfter) {
		t.Errorf("ends %v, %v: the one that signed it ends %v", c.NotAfter(), err, middle.cert.NotAfter)
	}
}

func TestInvalidCertificateFiles(t *testing.T) {
	var noFile *issuer
	one, other := noFile.signs(t, elliptical(t, elliptic.P256()), nil), noFile.signs(t, elliptical(t, elliptic.P256()), nil)
	cert, key := files(t, one)
	_, anothers := files(t, other)
	none, long := filepath.Join(t.TempDir(), "none"), filepath.Join(t.TempDir(), "long")
	if err := os.WriteFile(long, make([]byte, maxPEMBytes+1), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, cert, key, message string }{
		{"another's key", cert, anothers, "are no certificate and its key: tls: private key does not match public key"},
		{"both the wrong way round", key, cert, "are no certificate and its key"},
		{"no file", none, key, none + ": no such file or directory"},
		{"no key", cert, none, none + ": no such file or directory"},
		{"too long", long, key, long + ": it is longer than 262144 bytes"},
	} {
		if _, err := ReadCertificate(c.cert, c.key, today); err == nil || !strings.Contains(err.Error(), c.message) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// shows returns the TLS of a server and the roots that verify it.
func shows(t testing.TB, quantum bool) (*TLS, *tls.Config) {
	t.Helper()
	var noFile *issuer
	own := noFile.signs(t, elliptical(t, elliptic.P256()), nil)
	cert, key := files(t, own)
	c, err := ReadCertificate(cert, key, today)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(own.cert)
	return NewTLS(c, quantum), &tls.Config{RootCAs: roots}
}
