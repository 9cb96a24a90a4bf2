package httpserver

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"macronode/core/rejection"
)

// Why a listener cannot be opened.
var (
	ErrInUse    = errors.New("another process listens there")
	ErrNoSocket = errors.New("what is there is no socket, and is left alone")
	ErrAddress  = errors.New("an address is host:port or unix:path")
)

// CheckAddresses returns an error of one sentence if the addresses cannot all be listened on at once. It removes
// Unix sockets that no process listens on.
func CheckAddresses(ctx context.Context, addresses ...string) error {
	for _, bound := range addresses {
		l, err := taken(ctx, bound)
		if err != nil {
			return err
		}
		defer l.Close() //nolint:errcheck // no connection was accepted
	}
	return nil
}

// taken listens on an address. Its error is one sentence.
func taken(ctx context.Context, bound string) (net.Listener, error) {
	network, address := split(bound)
	l, err := bind(ctx, network, address)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s: %w", bound, err)
	}
	return l, nil
}

// listen listens on the address of s. Its error is one sentence.
func (s *Server) listen(ctx context.Context) (*listener, error) {
	inner, err := taken(ctx, s.bound)
	if err != nil {
		return nil, err
	}
	if inner.Addr().Network() == "tcp" {
		s.bound = inner.Addr().String()
	}
	l := newListener(inner, s.config.MaxConns, s.config.Streams)
	l.hooks, l.now, l.keyedFirst = s.hooks, s.now, s.config.KeyedFirst
	l.crowd = crowdLog{log: s.log, address: s.bound, text: "connection limit reached"}
	l.crowdOfStreams = crowdLog{log: s.log, address: s.bound, text: "HTTP/2 request limit reached"}
	l.crowdOfRejected = crowdLog{log: s.log, address: s.bound, text: "limit of rejected requests reached"}
	l.began, l.maxDelay = s.now(), s.config.Header/2
	return l, nil
}

func split(address string) (network, rest string) {
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		return "unix", path
	}
	return "tcp", address
}

func bind(ctx context.Context, network, address string) (net.Listener, error) {
	var c net.ListenConfig
	c.SetMultipathTCP(false) // it supports no socket filter and costs more
	l, err := c.Listen(ctx, network, address)
	if network == "unix" && errors.Is(err, syscall.EADDRINUSE) {
		if why := abandoned(address); why != nil {
			return nil, why
		}
		if err := os.Remove(address); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		l, err = c.Listen(ctx, network, address)
	}
	var wrong *net.AddrError
	switch {
	case err == nil:
		return l, nil
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, ErrInUse
	case errors.As(err, &wrong):
		return nil, ErrAddress
	}
	var op *net.OpError
	if errors.As(err, &op) { // its text repeats the address
		err = op.Err
	}
	return nil, err
}

// abandoned returns nil if path is a socket that no process listens on, else an error that says what it is.
func abandoned(path string) error {
	switch info, err := os.Lstat(path); {
	case errors.Is(err, fs.ErrNotExist):
		return ErrInUse // an abstract socket, which exists only while a process listens
	case err != nil:
		return err
	case info.Mode().Type() != fs.ModeSocket:
		return ErrNoSocket
	}
	c, err := net.Dial("unix", path)
	switch {
	case err == nil:
		_ = c.Close()
		return ErrInUse
	case errors.Is(err, syscall.ECONNREFUSED):
		return nil
	case errors.Is(err, syscall.EAGAIN): // its backlog is full
		return ErrInUse
	}
	return fmt.Errorf("cannot find out whether another process listens there: %w", err)
}

// A listener has a limited number of connections, and a list of them.
type listener struct {
	net.Listener
	most    int // connections, and HTTP/2 requests of all of them
	perConn int // HTTP/2 requests of one
	hooks   Hooks
	now     func() time.Time

	crowd, crowdOfStreams, crowdOfRejected crowdLog

	keyedFirst bool          // see Config
	began      time.Time     // the zero of instants
	maxDelay   time.Duration // of a connection, so that its header is in time

	mu       sync.Mutex // guards the fields up to hasEnded; never held while blocking
	open     map[*conn]struct{}
	accepted uint64               // connections that were let in
	peers    map[netip.Addr]*peer // those that have connections
	rest     restingConns
	streams  int                // HTTP/2 requests, those of each peer within its share
	large    map[*peer]struct{} // peers that have many
	rejected rejection.Peers[netip.Addr]
	drained  chan struct{} // closed when over is set and no connection is open
	hasEnded bool          // no more connections are accepted

	shutting atomic.Pointer[time.Time] // until when connections that have begun are accepted; nil: no shutdown
	late     int                       // connections accepted after that time
	closed   chan struct{}             // closed when the listener is
	leaving  atomic.Bool               // net/http shuts down: it sends a GOAWAY on each HTTP/2 connection
}

func newListener(inner net.Listener, most, perConn int) *listener {
	return &listener{Listener: inner, most: most, perConn: perConn, large: make(map[*peer]struct{}), open: make(map[*conn]struct{}), peers: make(map[netip.Addr]*peer), rest: newResting(ConnLimitTotal), now: time.Now,
		rejected: rejection.New[netip.Addr](), began: time.Now(), maxDelay: rejection.MaxDelay,
		drained: make(chan struct{}), closed: make(chan struct{})}
}

// take returns the next connection that is within the limits.
func (l *listener) take() (*conn, error) {
	for looks := 0; ; {
		inner, err := l.Listener.Accept()
		if until := l.shutting.Load(); until != nil {
			if err != nil && looks > 0 || l.late > backlog {
				if err == nil {
					_ = inner.Close()
				}
				return nil, l.closeListener()
			}
			looks = l.look(looks, err, *until)
			if err != nil {
				continue
			}
		}
		if err != nil {
			return nil, err
		}
		from := addressOf(inner.RemoteAddr())
		c := &conn{Conn: inner, of: l, from: from, peer: peerOf(from)}
		c.awaitsHeader.Store(true) // also before net/http reports its state
		c.headerBegan.Store(l.now().UnixNano())
		if l.add(c) {
			return c, nil
		}
		_ = inner.Close()
	}
}

// add counts a connection. If it is one too many, another one without a request at work is closed: of
// its peer if the peer has its share, else of all. If there is none, the new one is refused.
func (l *listener) add(c *conn) bool {
	share := 0
	if c.peer.IsValid() && l.hooks.PeerShare != nil {
		share = l.hooks.PeerShare(c.from)
	}
	l.mu.Lock()
	closed, by, ok := l.makeRoom(l.peers[c.peer], share)
	if ok {
		l.enter(c, share)
		l.delay(c)
	}
	l.mu.Unlock()
	if c.delay > 0 {
		callHook(l.hooks.Delayed)
	}
	l.reportCrowd(c, closed, by, ok)
	return ok
}

// reportCrowd closes connections that gave way, and reports them, or that the new one is refused.
func (l *listener) reportCrowd(c *conn, closed [2]*conn, by ConnLimit, ok bool) {
	n := 0
	for _, gone := range closed {
		if gone == nil {
			continue
		}
		n++
		_ = gone.Close()
		if l.hooks.IdleClosed != nil {
			l.hooks.IdleClosed(by)
		}
	}
	if n == 0 && ok {
		return
	}
	l.crowd.note(time.Now(), c.peer, "listen."+by.String(), n)
	switch {
	case ok:
	case by == ConnLimitPeer:
		callHook(l.hooks.PeerRefused)
	default:
		callHook(l.hooks.Refused)
	}
}

func (l *listener) tell(by int) {
	if l.hooks.Open != nil {
		l.hooks.Open(by)
	}
}

func (l *listener) remove(c *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forget(c)
	l.settle()
}

func (l *listener) settle() {
	if l.hasEnded && len(l.open) == 0 {
		select {
		case <-l.drained:
		default:
			close(l.drained)
		}
	}
}

func (l *listener) empty() <-chan struct{} { return l.drained }

func (l *listener) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.open)
}

// dropUnheard closes HTTP/1 connections on which nothing was received. net/http would wait for 5 s.
func (l *listener) dropUnheard() {
	for _, c := range l.unheard() {
		_ = c.Close()
	}
}

// dropSilent closes connections on which nothing was ever received, and HTTP/2 connections without a
// request whose client has got the GOAWAY. net/http closes the others itself, soon after it has sent theirs.
func (l *listener) dropSilent() {
	for _, c := range l.silent() {
		_ = c.Close()
	}
}

func (l *listener) silent() []*conn {
	return l.connsWhere(func(c *conn) bool { return !c.hasReceived.Load() || c.idle.Load() && c.gotGoAway.Load() })
}

// unheard returns the HTTP/1 connections on which nothing was received yet.
func (l *listener) unheard() []*conn {
	return l.connsWhere(func(c *conn) bool { return c.awaitsHeader.Load() && !c.hasReceived.Load() })
}

// connsWhere returns the open connections for which so is true.
func (l *listener) connsWhere(so func(*conn) bool) (found []*conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.open {
		if so(c) {
			found = append(found, c)
		}
	}
	return found
}

// isReadingHeader reports whether a request header is partly received on any connection.
func (l *listener) isReadingHeader() bool { return len(l.connsWhere((*conn).isReadingHeader)) > 0 }

// A conn is a connection of a listener. Its Close removes it from the listener's list.
type conn struct {
	net.Conn
	of              *listener
	from            netip.Addr               // remote address; not valid for a Unix socket
	peer            netip.Addr               // peer in whose share it counts; not valid: none
	links           [NumConnLimits]idleLinks // guarded by of.mu
	isTLS           bool                     // bytes read are of the TLS handshake, not of a request
	hasReceived     atomic.Bool              // data of the client was received
	idle            atomic.Bool              // an HTTP/2 connection without a request
	awaitsHeader    atomic.Bool              // an HTTP/1 connection whose next request header is not completely read
	hasHeaderPart   atomic.Bool              // part of that header was received
	headerBegan     atomic.Int64             // when the header or, before the first one, the connection began, in ns since 1970; 0: no header
	rank            rank                     // its list when it has no request; guarded by of.mu
	isAuthenticated atomic.Bool              // a request of it had a valid API key
	readEnded       atomic.Bool              // nothing more can be read
	yields          bool                     // gives way even during a request, and stays in the list of rankFresh; guarded by of.mu
	streams         streams                  // guarded by of.mu
	refused         atomic.Int64             // requests above a limit that its frameGuard has not charged for
	holder          *peer                    // that of peer, which outlives its connections while it has requests; nil: none
	accepted        uint64                   // its number among those that were let in
	delay           time.Duration            // before its first read; 0: none is left
	gone            chan struct{}            // closed with it; nil: it has no delay
	hadRequest      atomic.Bool              // a request of it was complete, or it is of HTTP/2
	closes          atomic.Bool              // it ends with the next response: a request above the limit of its peer was rejected
	paid            atomic.Int32             // rejected requests that take no credit of the peer
	gotGoAway       atomic.Bool              // something was sent on it since of.leaving: the GOAWAY, if it has no request
	once            sync.Once
}

func (c *conn) Read(b []byte) (int, error) {
	c.awaitStart(nil)
	n, err := c.Conn.Read(b)
	if n > 0 && !c.hasHeaderPart.Load() {
		c.headerBegan.CompareAndSwap(0, c.of.now().UnixNano())
		c.hasHeaderPart.Store(true)
	}
	if err != nil {
		c.readEnded.Store(true)
	}
	if n > 0 && !c.isTLS {
		c.noteReceived()
	}
	return n, err
}

func (c *conn) Write(b []byte) (int, error) {
	leaving := c.of.leaving.Load()
	n, err := c.Conn.Write(b)
	if leaving {
		c.gotGoAway.Store(true)
	}
	return n, err
}

// setState records the state of an HTTP/1 connection.
func (c *conn) setState(is http.ConnState) {
	waits := is == http.StateNew || is == http.StateIdle
	if waits {
		c.hasHeaderPart.Store(false)
		if is == http.StateIdle {
			c.headerBegan.Store(0)
		}
		c.readEnded.Store(false) // net/http ends its background read with a deadline
	}
	c.awaitsHeader.Store(waits)
}

// isReadingHeader reports whether a request header is partly received.
func (c *conn) isReadingHeader() bool {
	return c.awaitsHeader.Load() && !c.readEnded.Load() && (c.hasHeaderPart.Load() || unread(c.Conn))
}

func (c *conn) noteReceived() {
	if !c.hasReceived.Load() {
		c.hasReceived.Store(true)
	}
}

func (c *conn) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() {
		if c.gone != nil {
			close(c.gone)
		}
		if c.hasReceived.Load() && !c.hadRequest.Load() {
			c.of.takeCredit(c) // net/http has rejected what was received
		}
		c.of.remove(c)
	})
	return err
}

// CloseWrite closes the sending side, so that the client can read a response although its body was not read.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// Loopback reports whether an address can be reached only from this machine.
func Loopback(a net.Addr) bool {
	switch a := a.(type) {
	case *net.TCPAddr:
		return a.IP.IsLoopback()
	case *net.UnixAddr:
		return true
	}
	return false
}

// SetLinger sets how the connection closes. A connection with an aborted response is reset: a normal close
// would look like the end of the response.
func (c *conn) SetLinger(sec int) error {
	if l, ok := c.Conn.(interface{ SetLinger(int) error }); ok {
		return l.SetLinger(sec)
	}
	return nil
}
