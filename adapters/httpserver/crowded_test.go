package httpserver

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"testing"
	"time"
)

// TestFewPeersCannotHoldListener: two peers hold all connections with requests that last. A third one is served, and the connection
// that was accepted first ends. A peer whose request had a valid key keeps its connections.
func TestFewPeersCannotHoldListener(t *testing.T) {
	c := local()
	c.MaxConns, c.Request, c.Write = 8, time.Hour, time.Hour
	let, working, up := make(chan struct{}), make(chan struct{}, 8), make(chan net.Addr, 1)
	s := New(c, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/keyed":
			MarkAuthenticated(r.Context())
			fallthrough
		case "/lasts":
			working <- struct{}{}
			<-let
		}
		_, _ = io.WriteString(w, "here")
	}), Hooks{Listening: func(a net.Addr) { up <- a }, PeerShare: func(netip.Addr) int { return 4 }}, quietly)
	ended := make(chan error, 1)
	go func() { ended <- s.Run(context.Background()) }()
	address := (<-up).String()
	defer func() {
		close(let)
		s.Kill()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	dial := func(from, path string) net.Conn {
		conn, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}).Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		_, _ = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: a\r\n\r\n", path)
		return conn
	}
	held := []net.Conn{dial("127.0.0.2", "/keyed")}
	for n := range 7 {
		<-working
		held = append(held, dial([]string{"127.0.0.2", "127.0.0.3"}[min(n/3, 1)], "/lasts"))
	}
	<-working
	status, _, _, err := readResponse(bufio.NewReader(dial("127.0.0.4", "/")))
	if err != nil || status != http.StatusOK {
		t.Fatalf("a third peer gets %d, %v", status, err)
	}
	for n, conn := range held {
		_ = conn.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
		_, err := conn.Read(make([]byte, 1))
		if lasts := errors.Is(err, os.ErrDeadlineExceeded); lasts != (n != 1) {
			t.Errorf("connection %d: %v", n, err)
		}
	}
}
