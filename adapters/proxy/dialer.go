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

var errHandshakeTimeout = errors.New("proxy: the TLS handshake took too long")

// h2ClientConn is an HTTP/2 connection of golang.org/x/net, not of net/http: in net/http of Go
// 1.26, a frame that overflows a window locks a mutex that is never unlocked.
type h2ClientConn struct {
	*http2.ClientConn
	socket *resetConn
	wire   *windowConn
}

// sendWindow returns how many bytes of request bodies the endpoint takes now.
func (s *h2ClientConn) sendWindow() int64 { return s.wire.window.Load() }

// receiveWindow returns how many bytes of responses the endpoint may send now.
func (s *h2ClientConn) receiveWindow() int64 { return s.wire.receive.Load() }

// ReserveNewRequest reserves a stream for a request. It returns false if there is none.
func (s *h2ClientConn) ReserveNewRequest() bool {
	return !s.socket.lost.Load() && s.ClientConn.ReserveNewRequest()
}

// CanTakeNewRequest reports whether a stream is available for a request.
func (s *h2ClientConn) CanTakeNewRequest() bool {
	return !s.socket.lost.Load() && s.ClientConn.CanTakeNewRequest()
}

// A dialer opens HTTP/2 connections, or lets the endpoint choose between HTTP/2 and HTTP/1.1.
type dialer struct {
	dial             func(ctx context.Context, network, address string) (net.Conn, error)
	tlsConfig        *tls.Config
	handshakeTimeout time.Duration
	transport        *http2.Transport //nolint:staticcheck // see h2ClientConn
}

func newDialer(c *Config, dial func(ctx context.Context, network, address string) (net.Conn, error), choice bool) *dialer {
	g := &dialer{dial: dial, tlsConfig: new(tls.Config), handshakeTimeout: c.DialTimeout}
	if c.TLS != nil {
		g.tlsConfig = c.TLS.Clone()
	}
	if g.tlsConfig.NextProtos = []string{http2.NextProtoTLS}; choice {
		g.tlsConfig.NextProtos = append(g.tlsConfig.NextProtos, "http/1.1")
	}
	by, err := http2.ConfigureTransports(&http.Transport{ //nolint:staticcheck // see h2ClientConn
		DisableCompression: true, ExpectContinueTimeout: continueTimeout(c), MaxResponseHeaderBytes: maxHeaderBytes,
		HTTP2: &http.HTTP2Config{MaxReceiveBufferPerStream: streamWindow, MaxReceiveBufferPerConnection: connWindow,
			MaxReadFrameSize: 16 << 10, WriteByteTimeout: c.Grace}})
	if err != nil {
		panic(fmt.Sprintf("proxy: cannot configure HTTP/2 on a new transport: %v", err))
	}
	g.transport = by
	return g
}

// connect opens a connection within the limits for dialling and for the handshake. It returns nil
// if the endpoint has chosen HTTP/1.1 or supports nothing else.
func (g *dialer) connect(ctx context.Context, scheme, address string) (*h2ClientConn, error) {
	tcp, err := g.dial(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	socket := newResetConn(tcp, true)
	conn := net.Conn(socket)
	if scheme == "https" {
		tlsConn, err := g.handshake(ctx, conn, address)
		if err != nil || tlsConn.ConnectionState().NegotiatedProtocol != http2.NextProtoTLS {
			_ = conn.Close() // its error changes nothing
			return nil, err
		}
		conn = tlsConn
	}
	wire := newWindowConn(conn, socket)
	client, err := g.transport.NewClientConn(wire) //nolint:staticcheck // see h2ClientConn
	if err != nil {
		_ = wire.Close() // its error changes nothing
		return nil, err
	}
	return &h2ClientConn{client, socket, wire}, nil
}

// withTLS returns a dial function for HTTP/1.1 within TLS, without a choice of the protocol.
func withTLS(c *Config, dial dialFunc) dialFunc {
	g := &dialer{tlsConfig: new(tls.Config), handshakeTimeout: c.DialTimeout}
	if c.TLS != nil {
		g.tlsConfig = c.TLS
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		tlsConn, err := g.handshake(ctx, conn, address)
		if err != nil {
			_ = conn.Close() // its error changes nothing
			return nil, err
		}
		return tlsConn, nil
	}
}

func (g *dialer) handshake(ctx context.Context, conn net.Conn, address string) (*tls.Conn, error) {
	config := g.tlsConfig.Clone()
	if host, _, err := net.SplitHostPort(address); err == nil && config.ServerName == "" {
		config.ServerName = host
	}
	handshakeCtx, cancel := context.WithTimeout(ctx, g.handshakeTimeout)
	defer cancel()
	tlsConn := tls.Client(conn, config)
	err := tlsConn.HandshakeContext(handshakeCtx)
	if handshakeCtx.Err() != nil && ctx.Err() == nil {
		err = errHandshakeTimeout
	}
	return tlsConn, err
}
