package httpserver

import (
	"crypto/tls"
	"sync/atomic"
)

// TLS is how listeners prove who they are, of version 1.3 alone. The certificate may change
// while they listen: whoever comes is shown the one that there is, and nobody who is there
// is disturbed.
type TLS struct {
	shown  atomic.Pointer[Certificate]
	config *tls.Config
}

// NewTLS shows c. Keys are agreed on by a way that a quantum computer cannot break where
// the client knows one (X25519MLKEM768 first); when quantum is set, who knows none is
// refused.
func NewTLS(c *Certificate, quantum bool) *TLS {
	t := new(TLS)
	t.shown.Store(c)
	t.config = &tls.Config{
		MinVersion:             tls.VersionTLS13,
		NextProtos:             []string{"h2", "http/1.1"},
		SessionTicketsDisabled: true, // each handshake shows the certificate that there is
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return &t.shown.Load().pair, nil
		},
	}
	if quantum {
		t.config.CurvePreferences = []tls.CurveID{tls.X25519MLKEM768, tls.SecP256r1MLKEM768, tls.SecP384r1MLKEM1024}
	}
	return t
}

// Show has whoever comes from now on see c.
func (t *TLS) Show(c *Certificate) { t.shown.Store(c) }

// Shown is what they see.
func (t *TLS) Shown() *Certificate { return t.shown.Load() }
