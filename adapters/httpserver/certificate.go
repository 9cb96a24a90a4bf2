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
	"os"
	"slices"
	"time"
)

// mostPEM is how many bytes of a certificate's file, or a key's, are read.
const mostPEM = 256 << 10

// A Certificate is a chain and the key of its first, as they were read at one time.
type Certificate struct {
	pair tls.Certificate
	ends time.Time
}

// ReadCertificate reads a chain and its key, in PEM, and says in one sentence why clients
// would not take them at a time: the key must be that of the first, each must be signed by
// the one that follows, none may be before or behind its time, and the first must be one
// that TLS 1.3 can show for a server.
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
	c := &Certificate{pair: pair, ends: all[0].NotAfter}
	if err := c.check(all, at); err != nil {
		return nil, fmt.Errorf("%s: %w", chain, err)
	}
	return c, nil
}

// check says what is wrong with a chain, and finds its end.
func (c *Certificate) check(all []*x509.Certificate, at time.Time) error {
	for i, one := range all {
		switch {
		case at.Before(one.NotBefore):
			return fmt.Errorf("certificate %d of it is not valid before %s", i+1, stamp(one.NotBefore))
		case !at.Before(one.NotAfter):
			return fmt.Errorf("certificate %d of it is over since %s", i+1, stamp(one.NotAfter))
		}
		if i+1 < len(all) {
			if err := one.CheckSignatureFrom(all[i+1]); err != nil {
				return fmt.Errorf("certificate %d of it is not signed by the one that follows: %w", i+1, err)
			}
		}
		if one.NotAfter.Before(c.ends) {
			c.ends = one.NotAfter
		}
	}
	leaf := all[0]
	if uses := leaf.ExtKeyUsage; len(uses) > 0 && !slices.Contains(uses, x509.ExtKeyUsageServerAuth) && !slices.Contains(uses, x509.ExtKeyUsageAny) {
		return errors.New("it is not for a server")
	}
	if len(leaf.DNSNames)+len(leaf.IPAddresses) == 0 {
		return errors.New("it names no host")
	}
	if err := anybody.SupportsCertificate(&c.pair); err != nil {
		return fmt.Errorf("TLS 1.3 cannot show it: %w", err)
	}
	return nil
}

// anybody is a client that takes all that TLS 1.3 knows.
var anybody = &tls.ClientHelloInfo{
	SupportedVersions: []uint16{tls.VersionTLS13},
	SignatureSchemes: []tls.SignatureScheme{tls.Ed25519, tls.ECDSAWithP256AndSHA256, tls.ECDSAWithP384AndSHA384, tls.ECDSAWithP521AndSHA512,
		tls.PSSWithSHA256, tls.PSSWithSHA384, tls.PSSWithSHA512},
}

// Ends is the end of the certificate of the chain that is over first.
func (c *Certificate) Ends() time.Time { return c.ends }

// Print is the SHA-256 of the first certificate, in hexadecimal: who has it knows whom he
// speaks to.
func (c *Certificate) Print() string { return Print(c.pair.Certificate[0]) }

// Same reports that two are of the same chain.
func (c *Certificate) Same(as *Certificate) bool {
	return slices.EqualFunc(c.pair.Certificate, as.pair.Certificate, bytes.Equal)
}

// Print is the SHA-256 of a certificate in DER.
func Print(der []byte) string {
	sum := sha256.Sum256(der)
	return hex.EncodeToString(sum[:])
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// readPEM reads a file that is not too long.
func readPEM(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		why := new(fs.PathError)
		if errors.As(err, &why) { // its text says the path again
			err = why.Err
		}
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was read
	text, err := io.ReadAll(io.LimitReader(f, mostPEM+1))
	if err == nil && len(text) > mostPEM {
		err = fmt.Errorf("it is longer than %d bytes", mostPEM)
	}
	return text, err
}
