package settings

import (
	"fmt"
	"time"

	"macronode/adapters/config"
	"macronode/adapters/httpserver"
)

// ExpiryWarning is how long before its end a certificate is warned of.
const ExpiryWarning = 7 * 24 * time.Hour

// ReadCertificate reads the certificate of the configuration; nil: there is none.
func ReadCertificate(c *config.Config) (*httpserver.Certificate, error) {
	t := tlsOf(c)
	if t.Cert == "" {
		return nil, nil
	}
	read, err := httpserver.ReadCertificate(t.Cert, t.Key, time.Now())
	if err != nil {
		return nil, fmt.Errorf("listen.tls: %w", err)
	}
	return read, nil
}

// NewTLS returns the TLS settings of the listeners; nil: no TLS.
func NewTLS(c *config.Config, read *httpserver.Certificate) *httpserver.TLS {
	if read == nil {
		return nil
	}
	return httpserver.NewTLS(read, tlsOf(c).PostQuantum)
}

// DescribeCertificate describes a certificate in a list of changes: its fingerprint and its end.
func DescribeCertificate(c *httpserver.Certificate) string {
	return ShortFingerprint(c.Fingerprint()) + " until " + c.NotAfter().UTC().Format(time.RFC3339)
}

// ShortFingerprint returns the first 16 digits of a SHA-256 fingerprint.
func ShortFingerprint(print string) string { return print[:min(16, len(print))] }

// CertificateAge says how close to its end a certificate is.
type CertificateAge int

const (
	CertificateYoung CertificateAge = iota
	CertificateOld
	CertificateOver
)

func (a CertificateAge) String() string { return [...]string{"young", "old", "over"}[a] }

func CertificateAgeOf(ends, now time.Time) CertificateAge {
	switch {
	case !now.Before(ends):
		return CertificateOver
	case now.Add(ExpiryWarning).After(ends):
		return CertificateOld
	}
	return CertificateYoung
}
