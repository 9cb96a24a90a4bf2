package httpserver

import (
	"io"
	"net/http"
	"testing"

	"golang.org/x/net/http2"
)

// holding is a handler whose requests do not end before the test: a request with a key is marked, and
// reported by its path. "/" is answered.
func holding(t *testing.T) (h http.Handler, begun chan string) {
	begun, end := make(chan string, 64), make(chan struct{})
	t.Cleanup(func() { close(end) })
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			MarkAuthenticated(r.Context())
		}
		if r.URL.Path == "/" && r.Method == http.MethodGet {
			_, _ = io.WriteString(w, "here")
			return
		}
		begun <- r.URL.Path
		select {
		case <-end:
		case <-r.Context().Done():
		}
	}), begun
}

const keyField = "Authorization: Bearer k\r\n"

func (k *crowded) holds(t *testing.T, begun chan string, from, fields string) io.Reader {
	t.Helper()
	c, read := k.dialFrom(t, from)
	if _, err := io.WriteString(c, "GET /waits HTTP/1.1\r\nHost: node\r\n"+fields+"\r\n"); err != nil {
		t.Fatal(err)
	}
	<-begun
	return read
}

// TestCallersWithoutKeyCannotHoldListener fills a listener with requests without a key from several
// peers. Each new connection is accepted, and the connection accepted first gives way. Connections with
// an authenticated request stay, and are the only ones that can fill the listener.
func TestCallersWithoutKeyCannotHoldListener(t *testing.T) {
	c := local()
	c.MaxConns, c.KeyedFirst = 4, true
	h, begun := holding(t)
	k := startCrowded(t, c, 2, h)
	k.holds(t, begun, "127.0.0.1", keyField)
	first := k.holds(t, begun, "127.0.0.2", "")
	for _, from := range []string{"127.0.0.2", "127.0.0.3"} {
		k.holds(t, begun, from, "")
	}
	operator, read := k.dialFrom(t, "127.0.0.4")
	answered(t, operator, read)
	if b, err := io.ReadAll(first); len(b) > 0 {
		t.Fatalf("the first connection got %q, %v", b, err)
	}
	for range 5 { // a peer at its share makes room by its own, which had a response or not
		k.holds(t, begun, "127.0.0.2", "")
	}
	if n := k.refused.Load() + k.byPeer.Load(); n != 0 {
		t.Errorf("%d connections were refused", n)
	}
	for _, from := range []string{"127.0.0.5", "127.0.0.5", "127.0.0.6"} {
		k.holds(t, begun, from, keyField)
	}
	_, read = k.dialFrom(t, "127.0.0.7")
	if _, err := read.ReadByte(); err == nil || k.refused.Load() != 1 {
		t.Errorf("four connections have a request with a key, and a fifth is open: %v", err)
	}
}

// TestStreamsWithoutKeyGiveWay: at the limit of HTTP/2 requests, the connection of requests without a key
// that was accepted first is closed for one more request.
func TestStreamsWithoutKeyGiveWay(t *testing.T) {
	h, begun := holding(t)
	refused := 0
	r, client := h2Server(t, func(c *Config) { c.MaxConns, c.KeyedFirst = 4, true }, h, func() { refused++ })
	keyed, idle, full := r.frames(t, client), r.frames(t, client), r.frames(t, client)
	keyed.must(keyed.asks(1, true, "authorization", "Bearer k"))
	<-begun
	for i := range uint32(3) {
		full.must(full.asks(2*i+1, true))
		<-begun
	}
	keyed.must(keyed.asks(3, true))
	<-begun
	if err := full.until(func(http2.Frame) bool { return false }); err == nil {
		t.Error("the connection without a key is open")
	}
	until(func() bool { return r.streams.Load() == 2 })
	idle.must(idle.asks(1, true))
	<-begun
	if refused != 0 {
		t.Errorf("%d requests were refused", refused)
	}
}
