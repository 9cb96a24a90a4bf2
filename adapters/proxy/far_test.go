package proxy

import (
	"crypto/tls"
	"net"
	"sync"
	"testing"
)

// Far is an endpoint that is played by hand: the n-th connection that is made to it, from 0; of
// TLS where secure is not nil, once its handshake is done. When the test ends it takes none any
// more, and is waited for.
func Far(t *testing.T, secure *tls.Config, play func(n int, c net.Conn)) (address string) {
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
