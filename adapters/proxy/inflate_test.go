package proxy_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"macronode/adapters/proxy"
)

func gzipOf(text string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = io.WriteString(z, text)
	_ = z.Close()
	return b.String()
}

// frame returns text as a zstd frame with a window of 8 MiB, uncompressed.
func frame(text string) string {
	head := len(text)<<3 | 1
	return "\x28\xb5\x2f\xfd\x00\x68" + string([]byte{byte(head), byte(head >> 8), byte(head >> 16)}) + text
}

// newInflatingGateway returns a gateway with a route that decompresses and one that does not.
func newInflatingGateway(c *proxy.Config) {
	c.Routes = []proxy.Route{{Prefix: "/", DecompressRequest: true}, {Prefix: "/as-it-is"}}
}

// TestInflate: an endpoint gets the decompressed body without the fields of the compressed one.
// If that is impossible, the request is aborted and the client gets the reason.
func TestInflate(t *testing.T) {
	type seen struct{ body, coding, digest, length string }
	var mu sync.Mutex
	saw := map[string]seen{} // by the query
	peer := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			body = []byte("broken off")
		}
		mu.Lock()
		defer mu.Unlock()
		saw[r.URL.RawQuery] = seen{string(body), r.Header.Get("Content-Encoding"), r.Header.Get("Content-Digest"), fmt.Sprint(r.ContentLength)}
	}))
	h := newGateway(t, newInflatingGateway, peer.URL)
	long := strings.Repeat("0123456789", 6000)
	plain := func(text string) *seen { return &seen{text, "", "", "-1"} }
	broken := plain("broken off")
	cases := []struct {
		what, path, body string
		coding           []string
		status           int
		want             *seen // nil: no request reaches the upstream
	}{
		{"gzip", "/", gzipOf(long), []string{"gzip"}, 200, plain(long)},
		{"gzip of two", "/", gzipOf("a") + gzipOf("b"), []string{"x-gzip"}, 200, plain("ab")},
		{"zstd", "/", frame(long), []string{"zstd"}, 200, plain(long)},
		{"plain", "/", long, nil, 200, &seen{long, "", "sha-256=:x:", fmt.Sprint(len(long))}},
		{"no inflation", "/as-it-is", gzipOf("x"), []string{"gzip"}, 200, &seen{gzipOf("x"), "gzip", "sha-256=:x:", fmt.Sprint(len(gzipOf("x")))}},
		{"of a coding that nobody knows", "/as-it-is", "x", []string{"br"}, 200, &seen{"x", "br", "sha-256=:x:", "1"}},
		{"another", "/", "x", []string{"br"}, 415, nil},
		{"one in the other", "/", gzipOf("x"), []string{"gzip, gzip"}, 415, nil},
		{"two", "/", gzipOf("x"), []string{"gzip", "zstd"}, 415, nil},
		{"a bomb", "/", gzipOf(strings.Repeat("\x00", 64<<20)), []string{"gzip"}, 413, broken},
		{"a bomb of zstd", "/", "\x28\xb5\x2f\xfd\x00\x68" + strings.Repeat("\x02\x00\x10x", 1000), []string{"zstd"}, 413, broken},
		{"a window of 64 GiB", "/", "\x28\xb5\x2f\xfd\x00\xd0\x02\x00\x10x", []string{"zstd"}, 413, broken},
		{"cut short", "/", gzipOf(long)[:50], []string{"gzip"}, 400, broken},
		{"cut short, of zstd", "/", frame(long)[:50], []string{"zstd"}, 400, broken},
		{"no gzip at all", "/", long, []string{"gzip"}, 400, broken},
		{"nothing", "/", "", []string{"gzip"}, 200, &seen{"", "", "", "0"}},
	}
	for i, c := range cases {
		r := h.request("POST", fmt.Sprintf("%s?%d", c.path, i), strings.NewReader(c.body), "Content-Digest", "sha-256=:x:")
		r.Header["Content-Encoding"] = c.coding
		if a := h.do(r); a.err != nil || a.status != c.status {
			t.Errorf("%s: %d %s, %v", c.what, a.status, a.body, a.err)
		}
	}
	h.http.CloseIdleConnections()
	h.front.Close()
	h.proxy.Retire()
	peer.Close() // waits for all requests
	broke := 0
	for i, c := range cases {
		got, asked := saw[fmt.Sprint(i)]
		switch {
		case c.want == broken && !asked: // aborted before anything was sent
		case (c.want != nil) != asked || asked && got != *c.want:
			t.Errorf("%s: it was asked %v, and sent %.60q of %q, %q, %s", c.what, asked, got.body, got.coding, got.digest, got.length)
		case c.want == broken:
			broke++
		}
	}
	if broke < 2 {
		t.Errorf("only %d broke off on their way", broke)
	}
}

// TestInflatersLimit: the number of zstd bodies that are decompressed at once is limited; one
// more is rejected as busy. A place is free after its request, however it ends.
func TestInflatersLimit(t *testing.T) {
	came := make(chan struct{}, proxy.MaxInflaters)
	peer := startUpstream(t, func(_ http.ResponseWriter, r *http.Request) {
		came <- struct{}{}
		_, _ = io.Copy(io.Discard, r.Body)
	})
	places := proxy.NewInflaters()
	h := newGateway(t, func(c *proxy.Config) {
		newInflatingGateway(c)
		c.Inflaters = places
	}, peer)
	var all sync.WaitGroup
	var ends []*io.PipeWriter
	zstd := func(body io.Reader) *http.Request {
		return h.request("POST", "/", body, "Content-Encoding", "zstd")
	}
	for i := range proxy.MaxInflaters {
		out, in := io.Pipe()
		ends = append(ends, in)
		all.Go(func() { h.do(zstd(out)) })
		all.Go(func() {
			_, _ = io.WriteString(in, frame("hello"))
			if i%2 == 0 {
				_, _ = io.WriteString(in, "\x28\xb5\x2f\xfd\x00\x68\x04")
			}
		})
		<-came
	}
	if taken, of := places.Depth(); taken != of {
		t.Errorf("%d of %d are taken", taken, of)
	}
	if a := h.do(zstd(strings.NewReader(frame("x")))); a.status != http.StatusTooManyRequests || a.header.Get("Retry-After") == "" {
		t.Errorf("one more: %d %v", a.status, a.header)
	}
	if a := h.do(h.request("POST", "/", strings.NewReader(gzipOf("x")), "Content-Encoding", "gzip")); a.status != http.StatusOK {
		t.Errorf("gzip: %d", a.status)
	}
	for i, in := range ends {
		_ = in.CloseWithError([]error{io.EOF, errors.New("left")}[i%2])
	}
	all.Wait()
	h.http.CloseIdleConnections()
	h.front.Close() // waits for all requests
	if taken, _ := places.Depth(); taken > 0 {
		t.Errorf("%d are taken for ever", taken)
	}
}

// TestInflaterIsFreeAfterBody: a decompressor is free when the body was decompressed to its end, while the response is still awaited.
func TestInflaterIsFreeAfterBody(t *testing.T) {
	end, got := make(chan struct{}), make(chan string, 1)
	peer := startUpstream(t, func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- string(body)
		<-end
	})
	places := proxy.NewInflaters()
	h := newGateway(t, func(c *proxy.Config) {
		newInflatingGateway(c)
		c.Inflaters = places
	}, peer)
	var all sync.WaitGroup
	all.Go(func() {
		h.do(h.request("POST", "/", strings.NewReader(frame("hello")), "Content-Encoding", "zstd"))
	})
	if body := <-got; body != "hello" {
		t.Errorf("the body is %q", body)
	}
	if taken, _ := places.Depth(); taken > 0 { // the end of the body was sent after its place was given back
		t.Errorf("%d are taken while the response is awaited", taken)
	}
	close(end)
	all.Wait()
}
