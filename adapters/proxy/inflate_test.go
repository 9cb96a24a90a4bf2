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

func zipped(text string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = io.WriteString(z, text)
	_ = z.Close()
	return b.String()
}

// frame is text as zstd may write it, in a window of 8 MiB, and not compressed.
func frame(text string) string {
	head := len(text)<<3 | 1
	return "\x28\xb5\x2f\xfd\x00\x68" + string([]byte{byte(head), byte(head >> 8), byte(head >> 16)}) + text
}

// inflates is a proxy with a route that does, and one that does not.
func inflates(c *proxy.Config) {
	c.Routes = []proxy.Route{{Prefix: "/", Inflate: true}, {Prefix: "/as-it-is"}}
}

// TestInflate: an endpoint is sent what was compressed as it was before, and is told so; or
// its request breaks off, and the client is told why.
func TestInflate(t *testing.T) {
	type seen struct{ body, coding, digest, length string }
	var mu sync.Mutex
	saw := map[string]seen{} // by what the query says
	far := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			body = []byte("broken off")
		}
		mu.Lock()
		defer mu.Unlock()
		saw[r.URL.RawQuery] = seen{string(body), r.Header.Get("Content-Encoding"), r.Header.Get("Content-Digest"), fmt.Sprint(r.ContentLength)}
	}))
	h := build(t, inflates, far.URL)
	long := strings.Repeat("0123456789", 6000)
	plain := func(text string) *seen { return &seen{text, "", "", "-1"} }
	broken := plain("broken off")
	cases := []struct {
		what, path, body string
		coding           []string
		status           int
		want             *seen // nil: it is not asked
	}{
		{"gzip", "/", zipped(long), []string{"gzip"}, 200, plain(long)},
		{"gzip of two", "/", zipped("a") + zipped("b"), []string{"x-gzip"}, 200, plain("ab")},
		{"zstd", "/", frame(long), []string{"zstd"}, 200, plain(long)},
		{"plain", "/", long, nil, 200, &seen{long, "", "sha-256=:x:", fmt.Sprint(len(long))}},
		{"no inflation", "/as-it-is", zipped("x"), []string{"gzip"}, 200, &seen{zipped("x"), "gzip", "sha-256=:x:", fmt.Sprint(len(zipped("x")))}},
		{"of a coding that nobody knows", "/as-it-is", "x", []string{"br"}, 200, &seen{"x", "br", "sha-256=:x:", "1"}},
		{"another", "/", "x", []string{"br"}, 415, nil},
		{"one in the other", "/", zipped("x"), []string{"gzip, gzip"}, 415, nil},
		{"two", "/", zipped("x"), []string{"gzip", "zstd"}, 415, nil},
		{"a bomb", "/", zipped(strings.Repeat("\x00", 64<<20)), []string{"gzip"}, 413, broken},
		{"a bomb of zstd", "/", "\x28\xb5\x2f\xfd\x00\x68" + strings.Repeat("\x02\x00\x10x", 1000), []string{"zstd"}, 413, broken},
		{"a window of 64 GiB", "/", "\x28\xb5\x2f\xfd\x00\xd0\x02\x00\x10x", []string{"zstd"}, 413, broken},
		{"cut short", "/", zipped(long)[:50], []string{"gzip"}, 400, broken},
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
	far.Close() // when all that it was asked is over
	broke := 0
	for i, c := range cases {
		got, asked := saw[fmt.Sprint(i)]
		switch {
		case c.want == broken && !asked: // it broke off before anything had left
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

// TestInflatersAreFew: as many bodies of zstd as there are places for are inflated at once;
// one more is told to come back. A place is free again when its request is over, however.
func TestInflatersAreFew(t *testing.T) {
	came := make(chan struct{}, proxy.MaxInflaters)
	far := serves(t, func(_ http.ResponseWriter, r *http.Request) {
		came <- struct{}{}
		_, _ = io.Copy(io.Discard, r.Body)
	})
	places := proxy.NewInflaters()
	h := build(t, func(c *proxy.Config) {
		inflates(c)
		c.Inflaters = places
	}, far)
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
	if a := h.do(h.request("POST", "/", strings.NewReader(zipped("x")), "Content-Encoding", "gzip")); a.status != http.StatusOK {
		t.Errorf("gzip: %d", a.status)
	}
	for i, in := range ends {
		_ = in.CloseWithError([]error{io.EOF, errors.New("left")}[i%2])
	}
	all.Wait()
	h.http.CloseIdleConnections()
	h.front.Close() // when all are over
	if taken, _ := places.Depth(); taken > 0 {
		t.Errorf("%d are taken for ever", taken)
	}
}
