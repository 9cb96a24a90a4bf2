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

// A client sends requests for as long as anybody listens, on one connection for as
// long as it is kept. A POST is not sent twice, whatever becomes of it; and a
// connection that ended while nothing was asked on it is not used again.
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

// Stop, in the middle of much traffic: every request that was sent is answered, and
// every answer is whole.
func TestAStopCutsNoRequest(t *testing.T) {
	var total atomic.Int64
	warm := make(chan struct{})
	var once sync.Once
	c := local()
	c.Grace = time.Second // longer than a busy machine keeps a client from its turn
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

// What is in at the Stop has its time, and its answer says that its connection ends.
func TestWhatIsInFinishes(t *testing.T) {
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
	status, closes, body, err := hear(bufio.NewReader(conn))
	if status != 200 || !closes || body != "late" || err != nil {
		t.Fatalf("answered %d %q, closes %v, %v", status, body, closes, err)
	}
	if err := <-r.ended; err != nil {
		t.Fatalf("ended with %v", err)
	}
}

// What is said before an answer does not decide about its connection: the answer does.
func TestWhatIsSaidFirstClosesNothing(t *testing.T) {
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
	if status, closes, _, err := hear(from); status != http.StatusEarlyHints || closes || err != nil {
		t.Fatalf("first %d, closes %v, %v", status, closes, err)
	}
	r.Stop()
	close(let)
	if status, closes, _, err := hear(from); status != http.StatusNoContent || !closes || err != nil {
		t.Fatalf("answered %d, closes %v, %v", status, closes, err)
	}
	if err := <-r.ended; err != nil {
		t.Fatalf("ended with %v", err)
	}
}

// Who comes during the grace is answered, with the word to close.
func TestTheGraceServes(t *testing.T) {
	c := local()
	c.Grace = time.Hour
	r := start(t, c, saying("here"), nil)
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

// Who comes while another is in is answered too: what he is told is the handler's, and
// it is told as long as the other takes.
func TestNewcomersAreTold(t *testing.T) {
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
	for range 20 { // the first of them may have come before the Stop was heard
		fresh := r.dial(t)
		_, closes, body, err := ask(fresh, bufio.NewReader(fresh))
		if body != "told" || err != nil || late && !closes {
			t.Fatalf("new: %q, closes %v, %v", body, closes, err)
		}
		late = closes
	}
	close(let)
	if _, closes, body, err := hear(bufio.NewReader(first)); !closes || body != "told" || err != nil {
		t.Fatalf("first: %q, closes %v, %v", body, closes, err)
	}
	if err := <-r.ended; err != nil {
		t.Fatalf("ended with %v", err)
	}
}

// Connections without a request do not hold up the end. net/http gives a new one
// five seconds, so that it would be cut as if there were something in it.
func TestSilenceDelaysNothing(t *testing.T) {
	c := local()
	c.Grace, c.Finish, c.Header, c.Read = time.Millisecond, 4*time.Second, time.Hour, time.Hour
	r := start(t, c, saying("here"), nil)
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

// Who has begun to ask on a connection that was kept is answered, though its server takes it
// for idle until the header is whole; who has not is let go.
func TestWhoHasBegunToAskIsAnswered(t *testing.T) {
	secret, client := shows(t, false)
	for name, with := range map[string]*TLS{"tcp": nil, "TLS": secret} {
		t.Run(name, func(t *testing.T) {
			c := local()
			c.Grace, c.Finish, c.Header, c.Read, c.TLS = 0, time.Hour, time.Hour, time.Hour, with
			r := start(t, c, saying("here"), nil)
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
			for { // until the door is shut: what follows would drop them at once
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
				if status, closes, body, err := hear(a.from); status != 200 || !closes || body != "here" || err != nil {
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

// Who begins to ask and does not go on has his time, and no more.
func TestWhoNeverEndsAsking(t *testing.T) {
	c := local()
	c.Grace, c.Finish, c.Header, c.Read = 0, time.Millisecond, time.Hour, time.Hour
	r := start(t, c, saying("here"), nil)
	conn := r.dial(t)
	from := bufio.NewReader(conn)
	if _, _, _, err := ask(conn, from); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, hello[:9]); err != nil {
		t.Fatal(err)
	}
	r.Stop()
	if err := <-r.ended; err != nil && !errors.Is(err, ErrCut) {
		t.Fatalf("ended with %v", err)
	}
	if _, err := from.ReadByte(); err == nil {
		t.Fatal("the connection is still there")
	}
}

// What lies unread in the machine was asked, and so was that of which the server has read some.
func TestWhatLiesUnread(t *testing.T) {
	l, address := door(t, 1)
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
	says := func() {
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
		{"new", func() { c.rests(http.StateNew) }, false},
		{"it is sent something", says, true},
		{"that is read", read, true},
		{"the header is", func() { c.rests(http.StateActive) }, false},
		{"more comes while it is answered", says, false},
		{"it was answered", func() { c.rests(http.StateIdle) }, true},
		{"the rest is read", read, true},
		{"it was answered again", func() { c.rests(http.StateIdle) }, false},
		{"the server ends its waiting", func() { _ = c.SetReadDeadline(time.Unix(1, 0)); read(); _ = c.SetReadDeadline(time.Time{}) }, false},
		{"there was a request", func() { c.rests(http.StateIdle); says() }, true},
		{"and no other", func() { read(); _ = client.Close(); read() }, false},
	} {
		if step.do(); c.asks() != step.asks || l.asked() != step.asks {
			t.Fatalf("%s: asks %v, of any %v", step.what, c.asks(), l.asked())
		}
	}
}

// Who does not finish in time is cut, and that is said.
func TestTheDeadlineCuts(t *testing.T) {
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
	if err := <-r.ended; !errors.Is(err, ErrCut) {
		t.Fatalf("ended with %v", err)
	}
}

// Kill, and the end of the context, wait for nobody.
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
			}), Hooks{Up: func(a net.Addr) { up <- a }}, quietly)
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
			_, _ = io.Copy(io.Discard, conn) // ends, because the connection has
		})
	}
}

// TestADoorThatShutsLate: whoever has connected is let in, however long ago the door was to be
// shut: the machine may have been busy with others.
func TestADoorThatShutsLate(t *testing.T) {
	l, address := door(t, 9)
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

// TestADoorIsNotHeldOpen: where newcomers cannot be kept out, it is shut behind so many.
func TestADoorIsNotHeldOpen(t *testing.T) {
	l, address := door(t, 9)
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

// door is a listener.
func door(t *testing.T, most int) (l *listener, address string) {
	t.Helper()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = inner.Close() })
	return newListener(inner, most), inner.Addr().String()
}

// TestHearsWhoHasJustCome: who came last, and has said nothing yet, is waited for, as long as
// the grace.
func TestHearsWhoHasJustCome(t *testing.T) {
	l, address := door(t, 1)
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
	go func() { s.hear(t.Context(), l); close(heard) }()
	select {
	case <-heard:
		t.Fatal("he was not waited for")
	case <-time.After(20 * time.Millisecond):
	}
	c.speaks()
	c.rests(http.StateActive)
	<-heard

	c.spoke.Store(false)
	c.rests(http.StateNew)
	s.config.Grace = 0
	if !s.hear(t.Context(), l) {
		t.Error("killed")
	}
	l.dropUnheard()
	if l.count() != 0 {
		t.Error("he says nothing, and stays")
	}
}
