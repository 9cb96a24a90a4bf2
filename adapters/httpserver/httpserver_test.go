package httpserver

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

var quietly = slog.New(slog.DiscardHandler)

// net/http lingers for half a second if it answered before the request was read.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*conn).closeWriteAndWait"))
}

// A running server and how it ended.
type running struct {
	*Server
	addr  net.Addr
	ended chan error
	open  atomic.Int64 // connections, as reported by the hook

	streams atomic.Int64 // HTTP/2 requests, the same
}

func start(t *testing.T, c Config, h http.Handler, refused func()) *running {
	t.Helper()
	up := make(chan net.Addr, 1)
	r := &running{ended: make(chan error, 1)}
	s := New(c, h, Hooks{Listening: func(a net.Addr) { up <- a }, Refused: refused, Open: func(by int) { r.open.Add(int64(by)) }, Stream: func(by int) { r.streams.Add(int64(by)) }}, quietly)
	r.Server = s
	go func() { r.ended <- s.Run(context.Background()) }()
	select {
	case r.addr = <-up:
	case err := <-r.ended:
		t.Fatalf("did not come up: %v", err)
	}
	t.Cleanup(s.Kill)
	return r
}

func (r *running) dial(t *testing.T) net.Conn {
	t.Helper()
	c, err := net.Dial(r.addr.Network(), r.addr.String())
	if err != nil {
		t.Fatalf("dial: %v", err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

const hello = "GET / HTTP/1.1\r\nHost: node\r\n\r\n"

// ask sends one request and reads the whole response.
func ask(c net.Conn, from *bufio.Reader) (status int, closes bool, body string, err error) {
	if _, err = io.WriteString(c, hello); err != nil {
		return 0, false, "", err
	}
	return readResponse(from)
}

func readResponse(from *bufio.Reader) (status int, closes bool, body string, err error) {
	resp, err := http.ReadResponse(from, nil)
	if err != nil {
		return 0, false, "", err
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, resp.Close, string(b), err
}

func respondWith(text string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) })
}

func local() Config { return Default("127.0.0.1:0") }

func TestServesUntilStopped(t *testing.T) {
	c := local()
	c.Grace = 0
	r := start(t, c, respondWith("here"), nil)
	conn := r.dial(t)
	status, closes, body, err := ask(conn, bufio.NewReader(conn))
	if status != 200 || closes || body != "here" || err != nil {
		t.Fatalf("answered %d %q, closes %v, %v", status, body, closes, err)
	}
	r.Stop()
	r.Stop()
	if err := <-r.ended; err != nil {
		t.Fatalf("ended with %v", err)
	}
	if _, err := net.Dial("tcp", r.addr.String()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Fatalf("after the end, a connection met %v", err)
	}
	if err := r.Run(context.Background()); err != nil {
		t.Fatalf("run after Stop: %v", err)
	}
}

func TestPortIsReused(t *testing.T) {
	s := New(local(), respondWith("here"), Hooks{}, quietly)
	var ports [2]string
	for i := range ports {
		ctx, cancel := context.WithCancel(context.Background())
		s.hooks.Listening = func(a net.Addr) { ports[i] = a.String(); cancel() }
		if err := s.Run(ctx); err != nil {
			t.Fatalf("run %d: %v", i, err)
		}
	}
	if ports[0] != ports[1] || strings.HasSuffix(ports[0], ":0") {
		t.Fatalf("bound %v", ports)
	}
}

func TestListenErrorsAreSentences(t *testing.T) {
	r := start(t, local(), respondWith(""), nil)
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		address, message string
		is               error
	}{
		{r.addr.String(), "cannot listen on " + r.addr.String() + ": another process listens there", ErrInUse},
		{"nowhere", "cannot listen on nowhere: an address is host:port or unix:path", ErrAddress},
		{"unix:" + file, "cannot listen on unix:" + file + ": what is there is no socket, and is left alone", ErrNoSocket},
		{"unix:" + dir, "cannot listen on unix:" + dir + ": what is there is no socket, and is left alone", ErrNoSocket},
		{"unix:" + dir + "/none/sock", "cannot listen on unix:" + dir + "/none/sock: bind: no such file or directory", syscall.ENOENT},
	} {
		if err := CheckAddresses(t.Context(), "127.0.0.1:0", c.address); !errors.Is(err, c.is) || err.Error() != c.message {
			t.Errorf("%s is free: %v", c.address, err)
			continue // a server would listen there without end
		}
		s := New(Default(c.address), respondWith(""), Hooks{}, quietly)
		if err := s.Run(context.Background()); !errors.Is(err, c.is) || err.Error() != c.message {
			t.Errorf("%s: %v", c.address, err)
		}
	}
	if _, err := os.Stat(file); err != nil {
		t.Errorf("what was no socket: %v", err)
	}
}

// TestCheckAddressesOfAll: one address by two names cannot be used twice, and an address that was
// free stays so.
func TestCheckAddressesOfAll(t *testing.T) {
	dir := t.TempDir()
	if err := CheckAddresses(t.Context(), "unix:"+dir+"/sock", "unix:"+dir+"/./sock"); !errors.Is(err, ErrInUse) {
		t.Errorf("one for two: %v", err)
	}
	for range 2 {
		if err := CheckAddresses(t.Context(), "unix:"+dir+"/sock", "unix:"+dir+"/other", "127.0.0.1:0", "127.0.0.1:0"); err != nil {
			t.Error(err)
		}
	}
}

func TestUnixSockets(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sock")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	_ = l.Close() // a process has died and left it

	c := Default("unix:" + path)
	c.Grace = 0
	r := start(t, c, respondWith("here"), nil)
	conn := r.dial(t)
	if _, _, body, err := ask(conn, bufio.NewReader(conn)); body != "here" || err != nil {
		t.Fatalf("answered %q, %v", body, err)
	}
	second := New(c, respondWith(""), Hooks{}, quietly)
	soon, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := second.Run(soon); !errors.Is(err, ErrInUse) {
		t.Fatalf("a second one: %v", err)
	}
	if err := CheckAddresses(t.Context(), c.Address); !errors.Is(err, ErrInUse) {
		t.Fatalf("it is free: %v", err)
	}
	r.Stop()
	if err := <-r.ended; err != nil {
		t.Fatalf("ended with %v", err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("the socket is still there: %v", err)
	}
}

func TestConnectionAboveLimitIsClosed(t *testing.T) {
	c := local()
	c.MaxConns = 2
	var refused atomic.Int64
	var came atomic.Int64
	begun, end := make(chan struct{}), make(chan struct{})
	free := sync.OnceFunc(func() { close(end) })
	defer free()
	r := start(t, c, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if came.Add(1) <= 2 {
			begun <- struct{}{}
			<-end
		}
		_, _ = io.WriteString(w, "here")
	}), func() { refused.Add(1) })
	first, second := r.dial(t), r.dial(t)
	for _, conn := range []net.Conn{first, second} { // an idle one would give way
		if _, err := io.WriteString(conn, hello); err != nil {
			t.Fatal(err)
		}
		<-begun
	}
	third := r.dial(t)
	if _, _, _, err := ask(third, bufio.NewReader(third)); err == nil {
		t.Fatal("the third was answered")
	}
	if refused.Load() != 1 || r.open.Load() != 2 {
		t.Fatalf("counted %d, and %d that are open", refused.Load(), r.open.Load())
	}
	free()
	_ = first.Close()
	for { // until the server has accepted it
		again := r.dial(t)
		if _, _, body, err := ask(again, bufio.NewReader(again)); err == nil && body == "here" {
			break
		}
	}
	r.Kill()
	if err := <-r.ended; err != nil || r.open.Load() != 0 {
		t.Fatalf("ended with %v, and %d that are open", err, r.open.Load())
	}
}

func TestHeaderLimits(t *testing.T) {
	c := local()
	c.Header, c.Read = 10*time.Millisecond, 10*time.Millisecond
	r := start(t, c, respondWith("here"), nil)
	slow := r.dial(t)
	if _, err := io.WriteString(slow, hello[:10]); err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(slow); err != nil || strings.Contains(string(b), "here") {
		t.Fatalf("a slow header got %q, %v", b, err)
	}
	long := start(t, local(), respondWith("here"), nil).dial(t)
	go func() { _, _ = io.WriteString(long, "GET / HTTP/1.1\r\nHost: node\r\nX: "+strings.Repeat("x", 64<<10)) }()
	if status, _, _, err := readResponse(bufio.NewReader(long)); status != http.StatusRequestHeaderFieldsTooLarge {
		t.Fatalf("a long header got %d, %v", status, err)
	}
}

func TestLoopback(t *testing.T) {
	for _, c := range []struct {
		addr net.Addr
		want bool
	}{
		{&net.TCPAddr{IP: net.ParseIP("127.8.9.10")}, true},
		{&net.TCPAddr{IP: net.ParseIP("::1")}, true},
		{&net.TCPAddr{IP: net.ParseIP("::ffff:127.0.0.1")}, true},
		{&net.UnixAddr{Name: "sock"}, true},
		{&net.TCPAddr{IP: net.IPv4zero}, false},
		{&net.TCPAddr{}, false},
		{&net.TCPAddr{IP: net.ParseIP("10.0.0.1")}, false},
		{&net.UDPAddr{IP: net.ParseIP("127.0.0.1")}, false},
	} {
		if got := Loopback(c.addr); got != c.want {
			t.Errorf("%v: %v", c.addr, got)
		}
	}
}
