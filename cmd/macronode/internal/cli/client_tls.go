package cli

import (
	"crypto/tls"
	"errors"

	"macronode/adapters/httpserver"
)

var errOtherCertificate = errors.New("the listener presents another certificate than the node's: if it was just renewed, try again")

// pinnedTLS accepts only the certificate with a fingerprint and ignores its issuer. A node of this machine writes the
// fingerprint into its directory.
func pinnedTLS(print string) *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS13, InsecureSkipVerify: true, //nolint:gosec // compared below
		VerifyConnection: func(s tls.ConnectionState) error {
			if len(s.PeerCertificates) == 0 || httpserver.Fingerprint(s.PeerCertificates[0].Raw) != print {
				return errOtherCertificate
			}
			return nil
		}}
}
