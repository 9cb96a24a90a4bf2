package httpserver

import (
	"crypto/tls"
	"sync/atomic"
)

// TLS is the TLS 1.3 configuration of listeners. The certificate may be replaced at any time: new
// connections use the new one, and established connections are not affected.
type TLS struct {
	certificate atomic.Pointer[Certificate]
	config      *tls.Config
}

// NewTLS returns a configuration with c. Clients that support hybrid key exchange (X25519MLKEM768
// first) use it. If quantum is set, other clients are rejected.
func NewTLS(c *Certificate, quantum bool) *TLS {
	t := new(TLS)
	t.certificate.Store(c)
	t.config = &tls.Config{
		MinVersion:             tls.VersionTLS13,
		NextProtos:             []string{"h2", "http/1.1"},
		SessionTicketsDisabled: true, // each handshake uses the current certificate
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return &t.certificate.Load().pair, nil
		},
	}
	if quantum {
		t.config.CurvePreferences = []tls.CurveID{tls.X25519MLKEM768, tls.SecP256r1MLKEM768, tls.SecP384r1MLKEM1024}
	}
	return t
}

// SetCertificate sets the certificate of new connections.
func (t *TLS) SetCertificate(c *Certificate) { t.certificate.Store(c) }

// Certificate returns the certificate of new connections.
func (t *TLS) Certificate() *Certificate { return t.certificate.Load() }
