package httpserver

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// dialFrom connects from an address of this machine.
func (r *running) dialFrom(t *testing.T, from string) (net.Conn, *bufio.Reader) {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	c, err := d.Dial("tcp", r.addr.String())
	if err != nil {
		t.Fatalf("dial: %v", err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c, bufio.NewReader(c)
}

// crowded is a running server and its reports of connections above the limits.
type crowded struct {
	*running
	closed          [NumConnLimits]atomic.Int64
	refused, byPeer atomic.Int64
	log             *lockedText
	later           atomic.Int64 // offset of its clock
}

type lockedText struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lockedText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func startCrowded(t *testing.T, c Config, share int, h http.Handler, changes ...func(*crowded)) *crowded {
	t.Helper()
	k := &crowded{running: &running{ended: make(chan error, 1)}, log: new(lockedText)}
	up := make(chan net.Addr, 1)
	k.Server = New(c, h, Hooks{Listening: func(a net.Addr) { up <- a }, Open: func(by int) { k.open.Add(int64(by)) },
		PeerShare: func(from netip.Addr) int {
			if from == netip.MustParseAddr("127.0.0.9") {
				return 0
			}
			return share
		},
		Refused: func() { k.refused.Add(1) }, PeerRefused: func() { k.byPeer.Add(1) }, IdleClosed: func(by ConnLimit) { k.closed[by].Add(1) }},
		slog.New(slog.NewTextHandler(k.log, nil)))
	k.now = func() time.Time { return time.Now().Add(time.Duration(k.later.Load())) }
	for _, change := range changes {
		change(k)
	}
	go func() { k.ended <- k.Run(context.Background()) }()
	select {
	case k.addr = <-up:
	case err := <-k.ended:
		t.Fatalf("did not come up: %v", err)
	}
	t.Cleanup(k.Kill)
	return k
}

// answered sends a request on a connection and requires a response.
func answered(t *testing.T, c net.Conn, from *bufio.Reader) {
	t.Helper()
	if _, _, body, err := ask(c, from); body != "here" || err != nil {
		t.Fatalf("answered %q, %v", body, err)
	}
}

// until waits for an asynchronous effect of the server.
func until(what func() bool) {
	for !what() {
		time.Sleep(time.Millisecond)
	}
}

// TestLongestIdleConnectionOfPeerGivesWay: a peer at its share loses its own longest idle
// connection, and no other peer loses one. A peer without a share may have as many as there are.
func TestLongestIdleConnectionOfPeerGivesWay(t *testing.T) {
	k := startCrowded(t, local(), 2, respondWith("here"))
	other, otherFrom := k.dialFrom(t, "127.0.0.2")
	until(func() bool { return k.open.Load() == 1 })
	_, firstFrom := k.dialFrom(t, "127.0.0.1") // no request begins on it: it is idle from the start
	var last net.Conn
	var lastFrom *bufio.Reader
	for range 5 {
		last, lastFrom = k.dialFrom(t, "127.0.0.1")
	}
	if _, err := firstFrom.ReadByte(); err == nil {
		t.Fatal("the longest idle connection of the peer is open")
	}
	until(func() bool { return k.closed[ConnLimitPeer].Load() == 4 })
	answered(t, other, otherFrom)
	answered(t, last, lastFrom)
	for range 4 {
		_, _ = k.dialFrom(t, "127.0.0.9") // has no share
	}
	until(func() bool { return k.open.Load() == 1+2+4 })
	if k.closed[ConnLimitPeer].Load() != 4 || k.closed[ConnLimitTotal].Load() != 0 || k.byPeer.Load() != 0 || k.refused.Load() != 0 {
		t.Errorf("%d idle connections of the peer were closed, want 4", k.closed[ConnLimitPeer].Load())
	}
	if lines := k.log.String(); strings.Count(lines, "connection limit reached") != 1 ||
		!strings.Contains(lines, "limit=listen.max_conns_per_peer peer=127.0.0.1 idle_closed=1 refused=0") {
		t.Errorf("the log has %q", lines)
	}
}

// TestBusyPeerGetsNoMoreConnections, while another peer does.
func TestBusyPeerGetsNoMoreConnections(t *testing.T) {
	begun, end := make(chan struct{}), make(chan struct{})
	k := startCrowded(t, local(), 2, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/waits" {
			begun <- struct{}{}
			<-end
		}
		_, _ = io.WriteString(w, "here")
	}))
	defer close(end)
	for range 2 {
		c, _ := k.dialFrom(t, "127.0.0.1")
		if _, err := io.WriteString(c, "GET /waits HTTP/1.1\r\nHost: node\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		<-begun
	}
	k.later.Store(int64(headerGrace)) // their headers are complete, not overdue
	_, from := k.dialFrom(t, "127.0.0.1")
	if _, err := from.ReadByte(); err == nil {
		t.Fatal("the third connection is open")
	}
	if k.byPeer.Load() != 1 || k.closed[ConnLimitPeer].Load() != 0 {
		t.Errorf("%d were refused, %d closed", k.byPeer.Load(), k.closed[ConnLimitPeer].Load())
	}
	other, otherFrom := k.dialFrom(t, "127.0.0.2")
	answered(t, other, otherFrom)
}

// TestLongestIdleConnectionGivesWay if the listener is at its limit.
func TestLongestIdleConnectionGivesWay(t *testing.T) {
	c := local()
	c.MaxConns = 2
	k := startCrowded(t, c, 0, respondWith("here"))
	_, firstFrom := k.dialFrom(t, "127.0.0.1")
	_, _ = k.dialFrom(t, "127.0.0.2")
	third, thirdFrom := k.dialFrom(t, "127.0.0.3")
	answered(t, third, thirdFrom)
	if _, err := firstFrom.ReadByte(); err == nil {
		t.Fatal("the longest idle connection is open")
	}
	if got := k.closed[ConnLimitTotal].Load(); got != 1 || k.refused.Load() != 0 {
		t.Errorf("%d were closed, %d refused", got, k.refused.Load())
	}
}

// TestPeerOf: an IPv4 address is a peer, and so is an IPv6 /64 network.
func TestPeerOf(t *testing.T) {
	for header, want := range map[string]string{"192.0.2.7": "192.0.2.7", "::ffff:192.0.2.7": "192.0.2.7",
		"2001:db8:1:2:3:4:5:6": "2001:db8:1:2::", "2001:db8:1:2::9": "2001:db8:1:2::", "2001:db8:1:3::9": "2001:db8:1:3::"} {
		if got := peerOf(addressOf(&net.TCPAddr{IP: net.ParseIP(header)})); got.String() != want {
			t.Errorf("%s: %v, want %s", header, got, want)
		}
	}
	if peerOf(addressOf(&net.UnixAddr{})).IsValid() {
		t.Error("a Unix socket has a peer")
	}
}

// TestCrowdLogIsOneLineForMany: within the pause there is one line, the next says how many there were.
func TestCrowdLogIsOneLineForMany(t *testing.T) {
	var b strings.Builder
	g := crowdLog{log: slog.New(slog.NewTextHandler(&b, nil)), address: "a"}
	at, from := time.Unix(1000, 0), netip.MustParseAddr("10.0.0.1")
	for i := range 100 {
		g.note(at.Add(time.Duration(i)*crowdPause/50), from, "listen.max_conns_per_peer", i%2)
	}
	if n := strings.Count(b.String(), "\n"); n != 2 || !strings.Contains(b.String(), "idle_closed=25 refused=25") {
		t.Errorf("%d lines:\n%s", n, &b)
	}
}

// TestUnfinishedHeadersGiveWay: connections with an unfinished header fill the listener; when they are
// overdue, each gives way to a new connection, and a kept connection that had a request stays.
func TestUnfinishedHeadersGiveWay(t *testing.T) {
	c := local()
	c.MaxConns = 4
	k := startCrowded(t, c, 0, respondWith("here"))
	kept, keptFrom := k.dialFrom(t, "127.0.0.1")
	answered(t, kept, keptFrom)
	for range 3 {
		slow, _ := k.dialFrom(t, "127.0.0.2")
		if _, err := io.WriteString(slow, "GET / HTTP/1.1\r\nHost: a\r\nX: "); err != nil {
			t.Fatal(err)
		}
	}
	until(func() bool { return k.open.Load() == 4 })
	k.later.Store(int64(headerGrace))
	for range 3 {
		probe, from := k.dialFrom(t, "127.0.0.3")
		answered(t, probe, from)
	}
	answered(t, kept, keptFrom)
	if got := k.closed[ConnLimitTotal].Load(); got != 3 || k.refused.Load() != 0 {
		t.Errorf("%d were closed, %d refused, want 3 and 0", got, k.refused.Load())
	}
}

// TestHeaderOnItsWayIsNotBrokenOff: mayGiveWay says which resting connections may be closed.
func TestHeaderOnItsWayIsNotBrokenOff(t *testing.T) {
	now := time.Unix(1000, 0)
	for what, c := range map[string]struct {
		heard, over bool
		began       time.Time
		want        bool
	}{
		"nothing received":            {want: true, began: now},
		"a header that began now":     {heard: true, began: now},
		"a header within its grace":   {heard: true, began: now.Add(1 - headerGrace)},
		"an overdue header":           {heard: true, began: now.Add(-headerGrace), want: true},
		"the other side has ended it": {heard: true, over: true, began: now, want: true},
	} {
		x := &conn{Conn: nullConn{}}
		x.hasHeaderPart.Store(c.heard)
		x.readEnded.Store(c.over)
		x.headerBegan.Store(c.began.UnixNano())
		if got := x.mayGiveWay(now); got != c.want {
			t.Errorf("%s: may give way %v", what, got)
		}
	}
}

// TestConnectionsWithAKeyGiveWayLast: a kept connection whose request had a valid API key stays, although
// it rests for longer than one without.
func TestConnectionsWithAKeyGiveWayLast(t *testing.T) {
	for range 10 { // the other connection may not rest yet when its response is here
		if keyedStays(t) {
			return
		}
	}
	t.Fatal("the connection with a key gives way")
}

// keyedStays reports whether a resting connection with a key stays when there is a third one, and one without a key is closed.
func keyedStays(t *testing.T) bool {
	t.Helper()
	c := local()
	c.MaxConns = 2
	k := startCrowded(t, c, 0, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			MarkAuthenticated(r.Context())
		}
		_, _ = io.WriteString(w, "here")
	}))
	keyed, keyedFrom := k.dialFrom(t, "127.0.0.1")
	if _, err := io.WriteString(keyed, "GET / HTTP/1.1\r\nHost: node\r\nAuthorization: Bearer k\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(keyedFrom, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	other, otherFrom := k.dialFrom(t, "127.0.0.2")
	answered(t, other, otherFrom)
	k.later.Store(int64(headerGrace))
	until(func() bool { // it is refused if no connection rests yet
		_, _, body, err := ask(k.dialFrom(t, "127.0.0.3"))
		return body == "here" && err == nil
	})
	if _, _, body, err := ask(keyed, keyedFrom); body != "here" || err != nil {
		answered(t, other, otherFrom) // it stays instead
		return false
	}
	if _, err := otherFrom.ReadByte(); err == nil {
		t.Fatal("the connection without a key is open")
	}
	return true
}

// TestAcceptedConnectionKeepsItsPlace: within headerGrace, a connection without a header gives way after
// idle ones and before those with a key. Among connections of one rank, the first one gives way.
func TestAcceptedConnectionKeepsItsPlace(t *testing.T) {
	now := time.Unix(1000, 0)
	accepted := func(before time.Duration) *conn {
		c := &conn{Conn: nullConn{}, rank: rankFresh}
		c.headerBegan.Store(now.Add(-before).UnixNano())
		return c
	}
	overdue, older, newer := accepted(headerGrace), accepted(headerGrace-1), accepted(0)
	ended := accepted(0)
	ended.readEnded.Store(true)
	idle, later, keyed := &conn{Conn: nullConn{}, rank: rankIdle}, &conn{Conn: nullConn{}, rank: rankIdle}, &conn{Conn: nullConn{}, rank: rankKeyed}
	for what, c := range map[string]struct{ all, want []*conn }{
		"an idle one":        {[]*conn{older, newer, idle, later, keyed}, []*conn{idle, later, older, newer, keyed}},
		"an overdue one":     {[]*conn{overdue, newer, idle}, []*conn{overdue, idle, newer}},
		"one that has ended": {[]*conn{ended, idle}, []*conn{ended, idle}},
		"one with a key":     {[]*conn{keyed, newer}, []*conn{newer, keyed}},
		"only accepted ones": {[]*conn{older, newer}, []*conn{older, newer}},
	} {
		r := newResting(ConnLimitTotal)
		for _, one := range c.all {
			r.list(one).push(one)
		}
		for n, want := range c.want {
			got := r.givesWay(now)
			if got != want {
				t.Fatalf("%s: another connection gave way as number %d", what, n)
			}
			r.list(got).remove(got)
		}
		if got := r.givesWay(now); got != nil {
			t.Fatalf("%s: one more gave way", what)
		}
	}
}
