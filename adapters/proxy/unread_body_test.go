package proxy_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"golang.org/x/net/http2"

	"macronode/adapters/proxy"
	"macronode/core/types"
)

// leavesUnread starts an endpoint that does not read the bodies of requests whose path begins with /stall, so it does not open
// the window of the connection for them. It reads all other bodies, and answers. Unread ones are answered with a
// request without a body on the same connection. full gets a value when the window of a connection is used up.
func leavesUnread(t *testing.T, full chan<- bool) *rawH2Server {
	t.Helper()
	const window = 1<<16 - 1
	return startH2Server(t, func(_ int, c *rawH2Conn) {
		stalled, unread := make(map[uint32]bool), 0
		for {
			f, err := c.frame()
			if err != nil {
				return
			}
			switch f := f.(type) {
			case *http2.HeadersFrame:
				fields, err := c.read.DecodeFull(f.HeaderBlockFragment())
				if err != nil {
					return
				}
				for _, one := range fields {
					stalled[f.StreamID] = stalled[f.StreamID] || one.Name == ":path" && strings.HasPrefix(one.Value, "/stall")
				}
				if f.StreamEnded() {
					c.respondOK(f.StreamID)
					for stream, is := range stalled {
						if is {
							c.respondOK(stream)
						}
					}
				}
			case *http2.DataFrame:
				n := len(f.Data())
				if stalled[f.StreamID] {
					if unread += n; unread == window {
						full <- true
					}
					continue
				}
				if n > 0 {
					_ = c.WriteWindowUpdate(0, uint32(n))
					_ = c.WriteWindowUpdate(f.StreamID, uint32(n))
				}
				if f.StreamEnded() {
					c.respondOK(f.StreamID)
				}
			}
		}
	})
}

// TestUnreadBodyDelaysNoOther: while a body that the endpoint does not read uses up the window of a connection, bodies of other callers, and
// small ones of its own, use another connection. Requests without a body use the same.
func TestUnreadBodyDelaysNoOther(t *testing.T) {
	full := make(chan bool, 8)
	peer := leavesUnread(t, full)
	h := newGateway(t, useHTTP2, peer.url)
	h.front.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m, _ := h.proxy.Match(r)
		flow := types.Flow{Class: types.ClassAuthed, ID: 1}
		if r.Header.Get("Caller") == "anonymous" {
			flow = types.Flow{Class: types.ClassAnon, ID: 1}
		}
		h.proxy.Serve(w, r, m, &proxy.Trace{Flow: flow})
	})
	_, unread := h.raw("POST /stall HTTP/1.1\r\nHost: x\r\nCaller: anonymous\r\nContent-Length: 300000\r\n\r\n" + strings.Repeat("y", 100_000))
	<-full
	for _, r := range []struct {
		what, method string
		body         io.Reader
		header       []string
	}{
		{"a small body of another caller", "POST", strings.NewReader(strings.Repeat("z", 1000)), nil},
		{"a long body of another caller", "POST", strings.NewReader(strings.Repeat("z", 200_000)), nil},
		{"a body of unknown length of another caller", "POST", io.MultiReader(strings.NewReader("some"), strings.NewReader("more")), nil},
		{"a small body of the same caller", "POST", strings.NewReader("small"), []string{"Caller", "anonymous"}},
		{"no body", "GET", nil, nil},
	} {
		if a := h.do(h.request(r.method, "/", r.body, r.header...)); a.status != 200 || a.err != nil {
			t.Errorf("%s: %d, %v", r.what, a.status, a.err)
		}
	}
	if n := peer.conns.Load(); n != 2 {
		t.Errorf("%d connections", n)
	}
	if res, err := http.ReadResponse(unread, nil); err != nil || res.StatusCode != 200 {
		t.Errorf("the unread body: %v", err)
	} else {
		_ = res.Body.Close()
	}
}
