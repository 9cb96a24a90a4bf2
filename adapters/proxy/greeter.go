package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"golang.org/x/net/http2"
)

var errGreeting = errors.New("proxy: the TLS handshake took too long")

// second is one connection of HTTP/2. It is golang.org/x/net's and not net/http's: in that of
// Go 1.26 one frame from an endpoint, a window that grows beyond its end, takes a lock that
// nobody gives back.
type second = http2.ClientConn //nolint:staticcheck // see above

// A greeter makes connections of HTTP/2, or of what an endpoint chooses.
type greeter struct {
	dial  func(ctx context.Context, network, address string) (net.Conn, error)
	trust *tls.Config
	wait  time.Duration    // for a handshake
	by    *http2.Transport //nolint:staticcheck // see second
}

func newGreeter(c *Config, dial func(ctx context.Context, network, address string) (net.Conn, error), choice bool) *greeter {
	g := &greeter{dial: dial, trust: new(tls.Config), wait: c.Dial}
	if c.TLS != nil {
		g.trust = c.TLS.Clone()
	}
	if g.trust.NextProtos = []string{http2.NextProtoTLS}; choice {
		g.trust.NextProtos = append(g.trust.NextProtos, "http/1.1")
	}
	by, err := http2.ConfigureTransports(&http.Transport{ //nolint:staticcheck // see second
		DisableCompression: true, ExpectContinueTimeout: expecting(c), MaxResponseHeaderBytes: headerMost,
		HTTP2: &http.HTTP2Config{MaxReceiveBufferPerStream: streamWindow, MaxReceiveBufferPerConnection: MaxStreams * streamWindow,
			MaxReadFrameSize: 16 << 10, WriteByteTimeout: c.Grace}})
	if err != nil {
		panic(fmt.Sprintf("proxy: a transport that is new is another's: %v", err))
	}
	g.by = by
	return g
}

// greet connects, within the times of a connection and of a handshake; nil: the endpoint has
// chosen HTTP/1.1, or speaks nothing else.
func (g *greeter) greet(ctx context.Context, scheme, address string) (*second, error) {
	conn, err := g.dial(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	if scheme == "https" {
		sealed, err := g.seal(ctx, conn, address)
		if err != nil || sealed.ConnectionState().NegotiatedProtocol != http2.NextProtoTLS {
			_ = conn.Close() // its error changes nothing
			return nil, err
		}
		conn = sealed
	}
	second, err := g.by.NewClientConn(conn) //nolint:staticcheck // see second
	if err != nil {
		_ = conn.Close() // the same
	}
	return second, err
}

func (g *greeter) seal(ctx context.Context, conn net.Conn, address string) (*tls.Conn, error) {
	trust := g.trust.Clone()
	if host, _, err := net.SplitHostPort(address); err == nil && trust.ServerName == "" {
		trust.ServerName = host
	}
	in, cancel := context.WithTimeout(ctx, g.wait)
	defer cancel()
	sealed := tls.Client(conn, trust)
	err := sealed.HandshakeContext(in)
	if in.Err() != nil && ctx.Err() == nil {
		err = errGreeting
	}
	return sealed, err
}
