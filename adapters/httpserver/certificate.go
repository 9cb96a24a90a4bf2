package httpserver

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"time"

	file "macronode/adapters/fs"
)

// maxPEMBytes is the limit of the size of a certificate or key file.
const maxPEMBytes = 256 << 10

// A Certificate is a certificate chain and the private key of its first certificate.
type Certificate struct {
	pair     tls.Certificate
	notAfter time.Time
}

// ReadCertificate reads a chain and its key in PEM. It returns an error of one sentence if
// clients would reject them at a time: the key must belong to the first certificate, each
// certificate must be signed by the next, all must be valid, and the first must be usable by a
// TLS 1.3 server.
func ReadCertificate(chain, key string, at time.Time) (*Certificate, error) {
	texts := [2][]byte{}
	for i, path := range []string{chain, key} {
		text, err := readPEM(path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		texts[i] = text
	}
	defer clear(texts[1])
	pair, err := tls.X509KeyPair(texts[0], texts[1])
	if err != nil {
		return nil, fmt.Errorf("%s and %s are no certificate and its key: %w", chain, key, err)
	}
	all := make([]*x509.Certificate, len(pair.Certificate))
	for i, der := range pair.Certificate {
		if all[i], err = x509.ParseCertificate(der); err != nil {
			return nil, fmt.Errorf("%s: certificate %d of it: %w", chain, i+1, err)
		}
	}
	c := &Certificate{pair: pair, notAfter: all[0].NotAfter}
	if err := c.check(all, at); err != nil {
		return nil, fmt.Errorf("%s: %w", chain, err)
	}
	return c, nil
}

// check validates a chain and sets notAfter.
func (c *Certificate) check(all []*x509.Certificate, at time.Time) error {
	for i, cert := range all {
		switch {
		case at.Before(cert.NotBefore):
			return fmt.Errorf("certificate %d of it is not valid before %s", i+1, formatTime(cert.NotBefore))
		case !at.Before(cert.NotAfter):
			return fmt.Errorf("certificate %d of it is over since %s", i+1, formatTime(cert.NotAfter))
		}
		if i+1 < len(all) {
			if err := cert.CheckSignatureFrom(all[i+1]); err != nil {
				return fmt.Errorf("certificate %d of it is not signed by the one that follows: %w", i+1, err)
			}
		}
		if cert.NotAfter.Before(c.notAfter) {
			c.notAfter = cert.NotAfter
		}
	}
	leaf := all[0]
	if uses := leaf.ExtKeyUsage; len(uses) > 0 && !slices.Contains(uses, x509.ExtKeyUsageServerAuth) && !slices.Contains(uses, x509.ExtKeyUsageAny) {
		return errors.New("it is not for a server")
	}
	if len(leaf.DNSNames)+len(leaf.IPAddresses) == 0 {
		return errors.New("it names no host")
	}
	if err := anyTLS13Client.SupportsCertificate(&c.pair); err != nil {
		return fmt.Errorf("TLS 1.3 cannot show it: %w", err)
	}
	return nil
}

// anyTLS13Client supports all signature schemes of TLS 1.3.
var anyTLS13Client = &tls.ClientHelloInfo{
	SupportedVersions: []uint16{tls.VersionTLS13},
	SignatureSchemes: []tls.SignatureScheme{tls.Ed25519, tls.ECDSAWithP256AndSHA256, tls.ECDSAWithP384AndSHA384, tls.ECDSAWithP521AndSHA512,
		tls.PSSWithSHA256, tls.PSSWithSHA384, tls.PSSWithSHA512},
}

// NotAfter returns when the first certificate of the chain expires.
func (c *Certificate) NotAfter() time.Time { return c.notAfter }

// Fingerprint returns the SHA-256 of the first certificate in hexadecimal. A client can pin it.
func (c *Certificate) Fingerprint() string { return Fingerprint(c.pair.Certificate[0]) }

// Equal reports whether both have the same chain.
func (c *Certificate) Equal(as *Certificate) bool {
	return slices.EqualFunc(c.pair.Certificate, as.pair.Certificate, bytes.Equal)
}

// Fingerprint returns the SHA-256 of a certificate in DER.
func Fingerprint(der []byte) string {
	sum := sha256.Sum256(der)
	return hex.EncodeToString(sum[:])
}

func formatTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// readPEM reads a file up to the limit.
func readPEM(path string) ([]byte, error) {
	f, err := file.OpenRegular(path)
	if err != nil {
		why := new(fs.PathError)
		if errors.As(err, &why) { // its text repeats the path
			err = why.Err
		}
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was read
	text, err := io.ReadAll(io.LimitReader(f, maxPEMBytes+1))
	if err == nil && len(text) > maxPEMBytes {
		err = fmt.Errorf("it is longer than %d bytes", maxPEMBytes)
	}
	return text, err
}
