package proxy

import (
	"crypto/tls"
	"net"
	"sync"
	"testing"
)

// RawEndpoint is an endpoint that a test plays by hand. do gets the number of each connection,
// from 0. If secure is not nil, the connection uses TLS, and do starts after the handshake. The
// end of the test stops the listener and waits for the connections.
func RawEndpoint(t *testing.T, secure *tls.Config, play func(n int, c net.Conn)) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for n := 0; ; n++ {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer c.Close()
				if secure == nil {
					play(n, c)
				} else if sealed := tls.Server(c, secure); sealed.Handshake() == nil {
					defer sealed.Close()
					play(n, sealed)
				}
			})
		}
	})
	t.Cleanup(func() { l.Close(); all.Wait() })
	return l.Addr().String()
}
