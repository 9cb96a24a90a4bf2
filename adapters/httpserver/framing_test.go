package httpserver

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// reads is a handler that reads every body and records the requests.
type reads struct {
	mu    sync.Mutex
	lines []string
}

func (h *reads) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, "the body: "+err.Error(), http.StatusBadRequest)
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lines = append(h.lines, r.Method+" "+r.RequestURI+" "+r.Proto+" "+string(body))
}

const smuggled = "GET /smuggled HTTP/1.1\r\nHost: node\r\n\r\n"

// brief starts a server that soon closes a silent connection, so that a missing close is found
// quickly.
func brief() Config {
	c := local()
	c.Idle = time.Second
	return c
}

// TestAmbiguousFramingIsRejected: an ambiguous request is rejected with everything after it, and
// its connection is closed.
func TestAmbiguousFramingIsRejected(t *testing.T) {
	const length, chunked = "Content-Length: 4\r\n", "Transfer-Encoding: chunked\r\n"
	post := func(header, body string) string {
		return "POST /first HTTP/1.1\r\nHost: node\r\n" + header + "\r\n" + body
	}
	wide := strings.Repeat("a: b\r\n", maxFields)
	for _, c := range []struct{ name, text, request string }{
		{"both", post(length+chunked, "0\r\n\r\n"), errTwice.Error()},
		{"both, the other way round", post(chunked+length, "0\r\n\r\n"), errTwice.Error()},
		{"a length twice", post(length+length, "body"), errTwice.Error()},
		{"two lengths", post(length+"Content-Length: 5\r\n", "body"), "400"},
		{"two lengths in one", post("Content-Length: 4, 4\r\n", "body"), "400"},
		{"a length with a sign", post("Content-Length: +4\r\n", "body"), "400"},
		{"a length of nothing", post("Content-Length:\r\n", "body"), "400"},
		{"a length that is too long", post("Content-Length: 1000000000000000000\r\n", "body"), errLength.Error()},
		{"a length in hexadecimal", post("Content-Length: 0x4\r\n", "body"), "400"},
		{"chunked twice", post(chunked+chunked, "0\r\n\r\n"), "501"},
		{"chunked, in a list", post("Transfer-Encoding: chunked, chunked\r\n", "0\r\n\r\n"), "501"},
		{"another coding", post("Transfer-Encoding: gzip, chunked\r\n", "0\r\n\r\n"), "501"},
		{"identity", post("Transfer-Encoding: identity\r\n", ""), "501"},
		{"no coding", post("Transfer-Encoding:\r\n", ""), "501"},
		{"a coding with a parameter", post("Transfer-Encoding: chunked;q=1\r\n", "0\r\n\r\n"), "501"},
		{"an unknown expectation", post(length+"Expect: foo\r\n", "body"), "417"},
		{"a coding that looks like it", post("Transfer-Encoding: \vchunked\r\n", "0\r\n\r\n"), "400"},
		{"a coding of HTTP/1.0", "POST /first HTTP/1.0\r\n" + chunked + "\r\n0\r\n\r\n", errCoding.Error()},
		{"a length and a coding of HTTP/1.0", "POST /first HTTP/1.0\r\n" + length + chunked + "\r\nbody", errTwice.Error()},
		{"a blank before the colon", post("Content-Length : 4\r\n", "body"), "400"},
		{"a line that is folded", post("X: a\r\n b\r\n", ""), errLine.Error()},
		{"a length that is folded", post("Content-Length:\r\n 4\r\n", "body"), errLength.Error()},
		{"a CR within a line", post("X: a\rContent-Length: 4\r\n", "body"), "400"},
		{"a line that ends by LF", post("X: a\nContent-Length: 4\r\n", "body"), errEnd.Error()},
		{"a header that ends by LF", "GET /first HTTP/1.1\r\nHost: node\r\n\n", errLine.Error()},
		{"a NUL", post("X: a\x00\r\n", ""), "400"},
		{"a name that is none", post("X(: a\r\n", ""), "400"},
		{"no name", post(": a\r\n", ""), "400"},
		{"another version", "GET /first HTTP/1.2\r\nHost: node\r\n\r\n", errVersion.Error()},
		{"that of HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", errVersion.Error()},
		{"a line before it", "\r\nGET /first HTTP/1.1\r\nHost: node\r\n\r\n", "400"},
		{"fields without end", post(wide, ""), "400"},

		{"a chunk without size", post(chunked, "\r\n0\r\n\r\n"), "400"},
		{"a size that is none", post(chunked, "-1\r\n\r\n"), "400"},
		{"a size that is too long", post(chunked, "0000000000000001\r\na\r\n0\r\n\r\n"), errChunk.Error()},
		{"a size with a blank", post(chunked, "1 \r\na\r\n0\r\n\r\n"), errChunk.Error()},
		{"a size that ends by LF", post(chunked, "1\na\r\n0\r\n\r\n"), "400"},
		{"an extension that ends by LF", post(chunked, "1;a\na\r\n0\r\n\r\n"), "400"},
		{"an extension with a CR", post(chunked, "1;a\rb\r\na\r\n0\r\n\r\n"), "400"},
		{"an extension without end", post(chunked, "1;"+strings.Repeat("a", maxChunkLine)+"\r\na\r\n0\r\n\r\n"), errChunk.Error()},
		{"a chunk that goes on", post(chunked, "1\r\nab\r\n0\r\n\r\n"), "400"},
		{"a trailer that is folded", post(chunked, "0\r\nX: a\r\n b\r\n\r\n"), errLine.Error()},
		{"a length in a trailer", post(chunked, "0\r\nContent-Length: 4\r\n\r\n"), errTwice.Error()},
		{"a trailer that ends by LF", post(chunked, "0\r\nX: a\n\r\n"), errEnd.Error()},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := new(reads)
			r := start(t, brief(), h, nil)
			conn := r.dial(t)
			if _, err := io.WriteString(conn, c.text+smuggled); err != nil {
				t.Fatal(err)
			}
			b, err := io.ReadAll(conn)
			if err != nil {
				t.Logf("its connection ends with %v", err) // what it sent was not read
			}
			_, status, _ := strings.Cut(string(b), " ")
			if !strings.HasPrefix(status, "4") && !strings.HasPrefix(status, "5") || !strings.Contains(status, c.request) {
				t.Errorf("answered %q", b)
			}
			if strings.Count(string(b), "Connection: close") != 1 || strings.Contains(string(b), " 200 ") || len(h.lines) > 0 {
				t.Errorf("answered %q, served %q", b, h.lines)
			}
		})
	}
}

// TestValidFramingIsServed: a valid request and the next one are served, so each rejection above
// has exactly one cause.
func TestValidFramingIsServed(t *testing.T) {
	wide := strings.Repeat("a: b\r\n", maxFields-1) + "\r\n"
	text := "POST /1 HTTP/1.1\r\nHost: node\r\nContent-Length: 4\r\n\r\nbody" +
		"POST /2 HTTP/1.1\r\nHost: node\r\ncOnTeNt-LeNgTh: \t 4 \r\n\r\nbody" +
		"POST /3 HTTP/1.1\r\nHost: node\r\nTransfer-Encoding: Chunked\r\n\r\n2\r\nbo\r\n00002;a=\"b c\"\r\ndy\r\n0\r\n\r\n" +
		"POST /4 HTTP/1.1\r\nHost: node\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\nA\r\n0123456789\r\n0;end\r\nX: a\r\n\r\n" +
		"POST /5 HTTP/1.1\r\nHost: node\r\nContent-Length: 0\r\n\r\n" +
		"OPTIONS * HTTP/1.1\r\nHost: node\r\n\r\n" +
		"GET /6 HTTP/1.1\r\nHost: node\r\nX: \t\xffü\r\nY:\r\nContent-Lengths: 9, a\r\n\r\n" +
		"GET /7 HTTP/1.1\r\nHost: node\r\n" + wide +
		"GET /8 HTTP/1.0\r\n\r\n"
	want := []string{"POST /1 HTTP/1.1 body", "POST /2 HTTP/1.1 body", "POST /3 HTTP/1.1 body", "POST /4 HTTP/1.1 0123456789",
		"POST /5 HTTP/1.1 ", "GET /6 HTTP/1.1 ", "GET /7 HTTP/1.1 ", "GET /8 HTTP/1.0 "}
	for _, step := range []int{1, 7, 1000, len(text)} {
		h := new(reads)
		conn := start(t, local(), h, nil).dial(t)
		go func() {
			for part := range slices.Chunk([]byte(text), step) {
				if _, err := conn.Write(part); err != nil {
					return
				}
			}
		}()
		b, err := io.ReadAll(conn)
		if n := strings.Count(string(b), "HTTP/1.1 200 OK"); err != nil || n != len(want) || !slices.Equal(h.lines, want) {
			t.Errorf("in steps of %d: %d answers, %v, served %q", step, n, err, h.lines)
		}
	}
}

// TestInvalidChunksAbortResponse: a request whose chunks become invalid after the response has
// begun is not taken for a shorter one, and none follows.
func TestInvalidChunksAbortResponse(t *testing.T) {
	var served atomic.Int64
	ended := make(chan error, 1)
	r := start(t, brief(), http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		served.Add(1)
		_ = http.NewResponseController(w).EnableFullDuplex()
		_, _ = io.WriteString(w, "begun")
		_ = http.NewResponseController(w).Flush()
		_, err := io.Copy(io.Discard, q.Body)
		ended <- err
	}), nil)
	conn := r.dial(t)
	if _, err := io.WriteString(conn, "POST / HTTP/1.1\r\nHost: node\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nbo\r\n"); err != nil {
		t.Fatal(err)
	}
	from := bufio.NewReader(conn)
	if line, err := from.ReadString('\n'); err != nil || line != "HTTP/1.1 200 OK\r\n" {
		t.Fatalf("%q, %v", line, err)
	}
	if _, err := io.WriteString(conn, "0 \r\n\r\n"+smuggled); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil || !strings.Contains(err.Error(), errChunk.Error()) {
		t.Errorf("the body ended with %v", err)
	}
	if _, err := io.Copy(io.Discard, from); err != nil {
		t.Logf("its connection ends with %v", err)
	}
	if served.Load() != 1 {
		t.Errorf("%d were served", served.Load())
	}
}

// A scriptedConn is a connection whose input is fixed. It keeps the response.
type scriptedConn struct {
	text    []byte
	step    int // bytes of one read, at most
	written strings.Builder
	closed  chan struct{}
	once    sync.Once
}

func (p *scriptedConn) Read(b []byte) (int, error) {
	if len(p.text) == 0 {
		return 0, io.EOF
	}
	n := copy(b[:min(len(b), p.step)], p.text)
	p.text = p.text[n:]
	return n, nil
}
func (p *scriptedConn) Write(b []byte) (int, error)      { return p.written.Write(b) }
func (p *scriptedConn) Close() error                     { p.once.Do(func() { close(p.closed) }); return nil }
func (p *scriptedConn) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (p *scriptedConn) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (p *scriptedConn) SetDeadline(time.Time) error      { return nil }
func (p *scriptedConn) SetReadDeadline(time.Time) error  { return nil }
func (p *scriptedConn) SetWriteDeadline(time.Time) error { return nil }

// once is a listener of one connection.
type once struct {
	conn chan net.Conn
	done chan struct{}
}

func (o *once) Accept() (net.Conn, error) {
	select {
	case c := <-o.conn:
		return c, nil
	case <-o.done:
		return nil, net.ErrClosed
	}
}
func (o *once) Close() error   { return nil }
func (o *once) Addr() net.Addr { return &net.TCPAddr{} }

// starts returns the offsets at which a framing begins a request.
func starts(text []byte) (at []int) {
	var f framing
	for i := range text {
		if f.follow(text[i : i+1]); int(f.requests) > len(at) {
			at = append(at, i)
		}
		if f.state == stopped {
			break
		}
	}
	return at
}

// FuzzFraming sends any bytes to the server. It always ends, each served request begins where the
// framing says and has that line, and bytes one by one give the same result.
func FuzzFraming(f *testing.F) {
	for _, seed := range []string{
		hello + hello, smuggled,
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc" + hello,
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n0\r\nA: b\r\n\r\n" + hello,
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + hello,
		"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\nConnection: keep-alive\r\n\r\n0\r\n\r\n" + hello,
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\na\r\n" + hello,
		"GET / HTTP/1.1\r\nHost: a\r\nX: a\r\n b\r\n\r\n" + hello, "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n" + hello,
		"POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\nabcde" + hello,
		"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: a\r\n\r\n\x81\x00", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
	} {
		f.Add([]byte(seed), byte(0))
		f.Add([]byte(seed), byte(3))
	}
	type request struct {
		number uint64
		line   string
	}
	var mu sync.Mutex
	var served []request
	s := New(local(), http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		served = append(served, request{r.Context().Value(guardKey{}).(*guard).served, r.Method + " " + r.RequestURI + " " + r.Proto + "\r\n"})
		mu.Unlock()
		_, _ = io.Copy(io.Discard, r.Body)
	}), Hooks{}, quietly)
	ctx, cancel := context.WithCancel(context.Background())
	srv := s.server(ctx)
	l := &once{make(chan net.Conn), make(chan struct{})}
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(l) }()
	f.Cleanup(func() {
		cancel()
		close(l.done)
		if err := <-ended; !errors.Is(err, net.ErrClosed) {
			f.Error(err)
		}
	})
	f.Fuzz(func(t *testing.T, text []byte, step byte) {
		if len(text) > 4<<10 {
			return
		}
		served = nil
		p := &scriptedConn{text: text, step: 1 + int(step), closed: make(chan struct{})}
		l.conn <- &guard{Conn: p}
		<-p.closed
		mu.Lock()
		defer mu.Unlock()
		at := starts(text)
		for _, r := range served {
			if r.number > uint64(len(at)) || !strings.HasPrefix(string(text[at[r.number-1]:]), r.line) {
				t.Fatalf("request %d is %q, requests begin at %v", r.number, r.line, at)
			}
		}
		var whole, parts framing
		whole.follow(text)
		for i := range text {
			parts.follow(text[i : i+1])
		}
		if fmt.Sprint(whole) != fmt.Sprint(parts) {
			t.Fatalf("at once %+v\none by one %+v", whole, parts)
		}
	})
}
