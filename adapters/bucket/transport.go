package bucket

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"

	"macronode/adapters/httpcheck"
)

// transport returns the connections to the server.
func (b *Bucket) transport() http.RoundTripper {
	d := net.Dialer{Timeout: connTimeout}
	t := &http.Transport{DialContext: d.DialContext, TLSHandshakeTimeout: connTimeout, MaxIdleConnsPerHost: MaxIdleConns, IdleConnTimeout: idleTimeout,
		ExpectContinueTimeout: connTimeout, MaxResponseHeaderBytes: maxHeader, DisableCompression: true}
	if b.CAFile != "" {
		t.DialTLSContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			return b.dialTLS(ctx, &d, network, address)
		}
	}
	return bounded{httpcheck.Unswitched(t)}
}

// dialTLS connects to a server whose certificate is signed by one of CAFile.
func (b *Bucket) dialTLS(ctx context.Context, d *net.Dialer, network, address string) (net.Conn, error) {
	text, err := os.ReadFile(b.CAFile)
	if err != nil {
		return nil, unreadable(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return nil, secretError(b.CAFile + " has no certificate in PEM")
	}
	ctx, cancel := context.WithTimeoutCause(ctx, 2*connTimeout, errTimeout)
	defer cancel()
	conn, err := (&tls.Dialer{NetDialer: d, Config: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}).DialContext(ctx, network, address)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	return conn, nil
}

// bounded is a transport whose answers are bounded, except for the content of files: its length is that of the range.
type bounded struct{ http.RoundTripper }

// RoundTrip sends a request.
func (t bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	answered, err := t.RoundTripper.RoundTrip(r)
	isContent := err == nil && r.Header.Get("Range") != "" && answered.StatusCode == http.StatusPartialContent
	if err == nil && !isContent {
		answered.Body = &limitedBody{answered.Body, maxAnswer}
	}
	return answered, err
}

// errLongAnswer reports an answer that is longer than maxAnswer.
var errLongAnswer = errors.New("the answer is too long")

// limitedBody is a body with a limit.
type limitedBody struct {
	io.ReadCloser
	left int
}

func (l *limitedBody) Read(p []byte) (int, error) {
	n, err := l.ReadCloser.Read(p[:min(len(p), l.left+1)])
	if n > l.left {
		return 0, errLongAnswer
	}
	l.left -= n
	return n, err
}
