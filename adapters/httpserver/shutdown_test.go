package httpserver

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// A client sends requests while the server listens, and reuses connections. A POST is never sent
// twice, and a connection that ended while idle is not used again.
func client(url string, total *atomic.Int64) (cut error) {
	transport := &http.Transport{MaxIdleConnsPerHost: 1}
	defer transport.CloseIdleConnections()
	for {
		resp, err := transport.RoundTrip(post(url))
		if errors.Is(err, syscall.ECONNREFUSED) {
			return nil // nothing was sent
		}
		if err != nil {
			return err
		}
		b, err := io.ReadAll(resp.Body)
		if err == nil && string(b) != whole {
			err = io.ErrShortBuffer
		}
		if _ = resp.Body.Close(); err != nil {
			return err
		}
		total.Add(1)
	}
}

func post(url string) *http.Request {
	q, err := http.NewRequest(http.MethodPost, url, http.NoBody)
	if err != nil {
		panic(err)
	}
	return q
}

var whole = strings.Repeat("whole ", 1000)

// Stop during heavy traffic: every request that was sent gets a complete response.
func TestStopCutsNoRequest(t *testing.T) {
	var total atomic.Int64
	warm := make(chan struct{})
	var once sync.Once
	c := local()
	c.Grace = time.Second // longer than a busy machine delays a client
	r := start(t, c, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if total.Load() > 500 {
			once.Do(func() { close(warm) })
		}
		_, _ = io.WriteString(w, whole)
	}), nil)
	const clients = 32
	cut := make(chan error, clients)
	for range clients {
		go func() { cut <- client("http://"+r.addr.String(), &total) }()
	}
	<-warm
	r.Stop()
	for range clients {
		if err := <-cut; err != nil {
			t.Errorf("a request was cut: %v", err)
		}
	}
	if err := <-r.ended; err != nil {
		t.Fatalf("ended with %v", err)
	}
	t.Logf("%d whole answers", total.Load())
}

// A request in progress at Stop completes, and its response closes the connection.
func TestStopLetsRequestsFinish(t *testing.T) {
	in, let := make(chan struct{}), make(chan struct{})
	c := local()
	c.Grace, c.Finish = 0, time.Hour
	r := start(t, c, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(in)
		<-let
		_, _ = io.WriteString(w, "late")
	}), nil)
	conn := r.dial(t)
	if _, err := io.WriteString(conn, hello); err != nil {
		t.Fatal(err)
	}
	<-in
	r.Stop()
	close(let)
	status, closes, body, err := readResponse(bufio.NewReader(conn))
	if status != 200 || !closes || body != "late" || err != nil {
		t.Fatalf("answered %d %q, closes %v, %v", status, body, closes, err)
	}
	if err := <-r.ended; err != nil {
		t.Fatalf("ended with %v", err)
	}
}

// An interim response does not decide about its connection; the final response does.
func TestInterimResponseDoesNotClose(t *testing.T) {
	let := make(chan struct{})
	c := local()
	c.Grace, c.Finish = 0, time.Hour
	r := start(t, c, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusEarlyHints)
		<-let
		w.WriteHeader(http.StatusNoContent)
	}), nil)
	conn := r.dial(t)
	if _, err := io.WriteString(conn, hello); err != nil {
		t.Fatal(err)
	}
	from := bufio.NewReader(conn)
	if status, closes, _, err := readResponse(from); status != http.StatusEarlyHints || closes || err != nil {
		t.Fatalf("first %d, closes %v, %v", status, closes, err)
	}
	r.Stop()
	close(let)
	if status, closes, _, err := readResponse(from); status != http.StatusNoContent || !closes || err != nil {
		t.Fatalf("answered %d, closes %v, %v", status, closes, err)
	}
	if err := <-r.ended; err != nil {
		t.Fatalf("ended with %v", err)
	}
}

// A request during the grace is answered with Connection: close.
func TestGraceServes(t *testing.T) {
	c := local()
	c.Grace = time.Hour
	r := start(t, c, respondWith("here"), nil)
	kept := r.dial(t)
	from := bufio.NewReader(kept)
	if _, closes, _, err := ask(kept, from); closes || err != nil {
		t.Fatalf("before: closes %v, %v", closes, err)
	}
	r.Stop()
	if _, closes, body, err := ask(kept, from); !closes || body != "here" || err != nil {
		t.Fatalf("kept: %q, closes %v, %v", body, closes, err)
	}
	fresh := r.dial(t)
	if _, closes, body, err := ask(fresh, bufio.NewReader(fresh)); !closes || body != "here" || err != nil {
		t.Fatalf("new: %q, closes %v, %v", body, closes, err)
	}
	r.Kill()
	if err := <-r.ended; err != nil {
		t.Fatalf("ended with %v", err)
	}
}

// New requests are answered by the handler as long as another request is in progress.
func TestNewRequestsDuringGraceAreAnswered(t *testing.T) {
	in, let := make(chan struct{}), make(chan struct{})
	var asked atomic.Int64
	c := local()
	c.Grace, c.Finish = 0, time.Hour
	r := start(t, c, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) == 1 {
			close(in)
			<-let
		}
		_, _ = io.WriteString(w, "told")
	}), nil)
	first := r.dial(t)
	if _, err := io.WriteString(first, hello); err != nil {
		t.Fatal(err)
	}
	<-in
	r.Stop()
	late := false
	for range 20 { // the first ones may arrive before the Stop takes effect
		fresh := r.dial(t)
		_, closes, body, err := ask(fresh, bufio.NewReader(fresh))
		if body != "told" || err != nil || late && !closes {
			t.Fatalf("new: %q, closes %v, %v", body, closes, err)
		}
		late = closes
	}
	close(let)
	if _, closes, body, err := readResponse(bufio.NewReader(first)); !closes || body != "told" || err != nil {
		t.Fatalf("first: %q, closes %v, %v", body, closes, err)
	}
	if err := <-r.ended; err != nil {
		t.Fatalf("ended with %v", err)
	}
}

// Idle connections do not delay the shutdown. net/http allows a new one five seconds and would
// then count it as aborted.
func TestSilenceDelaysNothing(t *testing.T) {
	c := local()
	c.Grace, c.Finish, c.Header, c.Read = time.Millisecond, 4*time.Second, time.Hour, time.Hour
	r := start(t, c, respondWith("here"), nil)
	silent, idle := r.dial(t), r.dial(t)
	if _, _, _, err := ask(idle, bufio.NewReader(idle)); err != nil {
		t.Fatal(err)
	}
	r.Stop()
	if err := <-r.ended; err != nil {
		t.Fatalf("ended with %v", err)
	}
	for _, conn := range []net.Conn{silent, idle} {
		if _, err := conn.Read(make([]byte, 1)); err == nil {
			t.Fatal("a connection is still there")
		}
	}
}

// A partial request on a kept connection is answered, although net/http takes the connection for
// idle until the header is complete. Connections without data are closed.
func TestPartialHeaderIsAwaited(t *testing.T) {
	secret, client := shows(t, false)
	for name, with := range map[string]*TLS{"tcp": nil, "TLS": secret} {
		t.Run(name, func(t *testing.T) {
			c := local()
			c.Grace, c.Finish, c.Header, c.Read, c.TLS = 0, time.Hour, time.Hour, time.Hour, with
			r := start(t, c, respondWith("here"), nil)
			kept := func() (net.Conn, *bufio.Reader) {
				conn := r.dial(t)
				if with != nil {
					of := client.Clone()
					of.ServerName = "127.0.0.1"
					conn = tls.Client(conn, of)
				}
				from := bufio.NewReader(conn)
				if _, closes, _, err := ask(conn, from); closes || err != nil {
					t.Fatalf("closes %v, %v", closes, err)
				}
				return conn, from
			}
			const half = len(hello) / 2
			type begun struct {
				net.Conn
				from *bufio.Reader
			}
			var asking []begun
			for range 4 {
				conn, from := kept()
				if _, err := io.WriteString(conn, hello[:half]); err != nil {
					t.Fatal(err)
				}
				asking = append(asking, begun{conn, from})
			}
			_, idle := kept()
			r.Stop()
			for { // until the listener is closed: later steps would drop them at once
				conn, err := net.DialTimeout("tcp", r.addr.String(), 100*time.Millisecond)
				if err != nil {
					break
				}
				_ = conn.Close()
			}
			for _, a := range asking {
				if _, err := io.WriteString(a, hello[half:]); err != nil {
					t.Fatal(err)
				}
				if status, closes, body, err := readResponse(a.from); status != 200 || !closes || body != "here" || err != nil {
					t.Fatalf("answered %d %q, closes %v, %v", status, body, closes, err)
				}
			}
			if _, err := idle.ReadByte(); err == nil {
				t.Fatal("who has asked nothing is told something")
			}
			if err := <-r.ended; err != nil {
				t.Fatalf("ended with %v", err)
			}
		})
	}
}

// An unfinished header has the time of the limit, and no more.
func TestUnfinishedHeaderTimesOut(t *testing.T) {
	c := local()
	c.Grace, c.Finish, c.Header, c.Read = 0, time.Millisecond, time.Hour, time.Hour
	r := start(t, c, respondWith("here"), nil)
	conn := r.dial(t)
	from := bufio.NewReader(conn)
	if _, _, _, err := ask(conn, from); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, hello[:9]); err != nil {
		t.Fatal(err)
	}
	r.Stop()
	if err := <-r.ended; err != nil && !errors.Is(err, ErrShutdown) {
		t.Fatalf("ended with %v", err)
	}
	if _, err := from.ReadByte(); err == nil {
		t.Fatal("the connection is still there")
	}
}

// Unread data in the kernel counts as a request, and so does a partly read header.
func TestUnreadDataCountsAsRequest(t *testing.T) {
	l, address := testListener(t, 1)
	client, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	c, err := l.take()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	read := func() { _, _ = c.Read(make([]byte, 9)) }
	sendByte := func() {
		if _, err := io.WriteString(client, "G"); err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(time.Minute); !unread(c.Conn); time.Sleep(time.Millisecond) { // it is on its way
			if time.Now().After(end) {
				t.Fatal("nothing has come for a minute")
			}
		}
	}
	for _, step := range []struct {
		what string
		do   func()
		asks bool
	}{
		{"new", func() { c.setState(http.StateNew) }, false},
		{"it is sent something", sendByte, true},
		{"that is read", read, true},
		{"the header is", func() { c.setState(http.StateActive) }, false},
		{"more comes while it is answered", sendByte, false},
		{"it was answered", func() { c.setState(http.StateIdle) }, true},
		{"the rest is read", read, true},
		{"it was answered again", func() { c.setState(http.StateIdle) }, false},
		{"the server ends its waiting", func() { _ = c.SetReadDeadline(time.Unix(1, 0)); read(); _ = c.SetReadDeadline(time.Time{}) }, false},
		{"there was a request", func() { c.setState(http.StateIdle); sendByte() }, true},
		{"and no other", func() { read(); _ = client.Close(); read() }, false},
	} {
		if step.do(); c.isReadingHeader() != step.asks || l.isReadingHeader() != step.asks {
			t.Fatalf("%s: asks %v, of any %v", step.what, c.isReadingHeader(), l.isReadingHeader())
		}
	}
}

// A request that exceeds Finish is aborted, and Run reports it.
func TestStopDeadlineAborts(t *testing.T) {
	in := make(chan struct{})
	c := local()
	c.Grace, c.Finish = 0, time.Millisecond
	r := start(t, c, http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		close(in)
		<-q.Context().Done()
	}), nil)
	conn := r.dial(t)
	if _, err := io.WriteString(conn, hello); err != nil {
		t.Fatal(err)
	}
	<-in
	r.Stop()
	if err := <-r.ended; !errors.Is(err, ErrShutdown) {
		t.Fatalf("ended with %v", err)
	}
}

// Kill and the end of the context do not wait.
func TestKillEndsAtOnce(t *testing.T) {
	for _, kill := range []string{"kill", "kill in the grace", "kill while finishing", "context"} {
		t.Run(kill, func(t *testing.T) {
			in, up := make(chan struct{}), make(chan net.Addr, 1)
			c := local()
			c.Grace, c.Finish = time.Hour, time.Hour
			if kill == "kill while finishing" {
				c.Grace = 0
			}
			s := New(c, http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
				close(in)
				<-q.Context().Done()
			}), Hooks{Listening: func(a net.Addr) { up <- a }}, quietly)
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			ended := make(chan error, 1)
			go func() { ended <- s.Run(ctx) }()
			conn, err := net.Dial("tcp", (<-up).String())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close() }()
			if _, err := io.WriteString(conn, hello); err != nil {
				t.Fatal(err)
			}
			<-in
			switch kill {
			case "context":
				cancel()
			case "kill":
				s.Kill()
			default:
				s.Stop()
				s.Kill()
			}
			if err := <-ended; err != nil {
				t.Fatalf("ended with %v", err)
			}
			_, _ = io.Copy(io.Discard, conn) // ends because the connection has
		})
	}
}

// TestListenerClosesAfterAccepting: every established connection is accepted, even if the
// listener closes late because the machine was busy.
func TestListenerClosesAfterAccepting(t *testing.T) {
	l, address := testListener(t, 9)
	const guests = 5
	for range guests {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	past := time.Now().Add(-time.Minute)
	l.shutting.Store(&past)
	l.wake(past)
	for n := range guests {
		c, err := l.take()
		if err != nil {
			t.Fatalf("%d of %d were let in: %v", n, guests, err)
		}
		defer c.Close()
	}
	if _, err := l.take(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the door is not shut: %v", err)
	}
}

// TestListenerClosesAfterBacklog: if new connections cannot be stopped, the listener closes after
// the length of the backlog.
func TestListenerClosesAfterBacklog(t *testing.T) {
	l, address := testListener(t, 9)
	past := time.Now().Add(-time.Minute)
	l.shutting.Store(&past)
	l.late = backlog + 1
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := l.take(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the door is not shut: %v", err)
	}
}

// testListener is a listener.
func testListener(t *testing.T, most int) (l *listener, address string) {
	t.Helper()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = inner.Close() })
	return newListener(inner, most, 1), inner.Addr().String()
}

// TestSilentNewConnectionIsAwaited: a new connection without data is awaited as long as the
// grace.
func TestSilentNewConnectionIsAwaited(t *testing.T) {
	l, address := testListener(t, 1)
	client, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	c, err := l.take()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s := &Server{config: Config{Grace: time.Hour}, kill: make(chan struct{})}
	heard := make(chan struct{})
	go func() { s.awaitHeaders(t.Context(), l); close(heard) }()
	select {
	case <-heard:
		t.Fatal("he was not waited for")
	case <-time.After(20 * time.Millisecond):
	}
	c.noteReceived()
	c.setState(http.StateActive)
	<-heard

	c.hasReceived.Store(false)
	c.setState(http.StateNew)
	s.config.Grace = 0
	if !s.awaitHeaders(t.Context(), l) {
		t.Error("killed")
	}
	l.dropUnheard()
	if l.count() != 0 {
		t.Error("he says nothing, and stays")
	}
}
