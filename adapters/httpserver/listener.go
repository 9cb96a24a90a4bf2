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
)

// Why there is no listener.
var (
	ErrInUse    = errors.New("another process listens there")
	ErrNoSocket = errors.New("what is there is no socket, and is left alone")
	ErrAddress  = errors.New("an address is host:port or unix:path")
)

// Free says in one sentence why nobody can listen at all of some addresses at once; nil:
// somebody can. A socket that nobody listens on any more is taken away.
func Free(ctx context.Context, addresses ...string) error {
	for _, bound := range addresses {
		l, err := taken(ctx, bound)
		if err != nil {
			return err
		}
		defer l.Close() //nolint:errcheck // nobody was let in
	}
	return nil
}

// taken is an address that is listened at. What fails is one sentence.
func taken(ctx context.Context, bound string) (net.Listener, error) {
	network, address := split(bound)
	l, err := bind(ctx, network, address)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s: %w", bound, err)
	}
	return l, nil
}

// listen takes the address. What fails is one sentence.
func (s *Server) listen(ctx context.Context) (*listener, error) {
	inner, err := taken(ctx, s.bound)
	if err != nil {
		return nil, err
	}
	if inner.Addr().Network() == "tcp" {
		s.bound = inner.Addr().String()
	}
	l := newListener(inner, s.config.MaxConns)
	l.hooks, l.crowd, l.now = s.hooks, crowdLog{log: s.log, address: s.bound}, s.now
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
	c.SetMultipathTCP(false) // takes no socket filter, and costs more
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
	if errors.As(err, &op) { // its text says the address again
		err = op.Err
	}
	return nil, err
}

// abandoned is nil where a socket is there and nobody listens on it; else it says what is
// there.
func abandoned(path string) error {
	switch info, err := os.Lstat(path); {
	case errors.Is(err, fs.ErrNotExist):
		return ErrInUse // it has no file: it ends with who listens
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
	case errors.Is(err, syscall.EAGAIN): // who listens is behind
		return ErrInUse
	}
	return fmt.Errorf("nobody can tell who listens there: %w", err)
}

// A listener holds at most so many connections, and knows them.
type listener struct {
	net.Listener
	most  int
	hooks Hooks
	crowd crowdLog
	now   func() time.Time

	mu    sync.Mutex // of what follows; nothing blocks under it
	open  map[*conn]struct{}
	peers map[netip.Addr]*peer // those that have connections
	rest  resting
	none  chan struct{} // closed once nothing is open and nothing comes
	over  bool          // nothing comes any more

	shutting atomic.Pointer[time.Time] // the door shuts by then; nil: not yet
	late     int                       // who was let in behind that time
	closed   chan struct{}             // it is shut
	leaving  atomic.Bool               // net/http shuts down: it sends a GOAWAY on each HTTP/2 connection
}

func newListener(inner net.Listener, most int) *listener {
	return &listener{Listener: inner, most: most, open: make(map[*conn]struct{}), peers: make(map[netip.Addr]*peer), rest: newResting(BoundTotal), now: time.Now,
		none: make(chan struct{}), closed: make(chan struct{})}
}

// take is the next connection that there is room for.
func (l *listener) take() (*conn, error) {
	for looks := 0; ; {
		inner, err := l.Listener.Accept()
		if until := l.shutting.Load(); until != nil {
			if err != nil && looks > 0 || l.late > backlog {
				if err == nil {
					_ = inner.Close()
				}
				return nil, l.last()
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
		c.waits.Store(true) // also before the server hears of it
		c.began.Store(l.now().UnixNano())
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
		l.enter(c)
	}
	l.mu.Unlock()
	l.tellCrowd(c, closed, by, ok)
	return ok
}

// tellCrowd closes connections that gave way, and reports them, or that the new one is refused.
func (l *listener) tellCrowd(c *conn, closed [2]*conn, by Bound, ok bool) {
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
	l.crowd.note(time.Now(), c.peer, by, n)
	switch {
	case ok:
	case by == BoundPeer:
		told(l.hooks.PeerRefused)
	default:
		told(l.hooks.Refused)
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
	if l.over && len(l.open) == 0 {
		select {
		case <-l.none:
		default:
			close(l.none)
		}
	}
}

func (l *listener) empty() <-chan struct{} { return l.none }

func (l *listener) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.open)
}

// dropUnheard closes connections of HTTP/1 on which nothing was ever said: a server waits long
// for their first word.
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
	return l.those(func(c *conn) bool { return !c.spoke.Load() || c.idle.Load() && c.warned.Load() })
}

// unheard are those who have come for a request of HTTP/1, and said nothing yet.
func (l *listener) unheard() []*conn {
	return l.those(func(c *conn) bool { return c.waits.Load() && !c.spoke.Load() })
}

// those are the connections that are so.
func (l *listener) those(so func(*conn) bool) (found []*conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.open {
		if so(c) {
			found = append(found, c)
		}
	}
	return found
}

// asked reports that somebody asks.
func (l *listener) asked() bool { return len(l.those((*conn).asks)) > 0 }

// A conn tells its listener when it ends.
type conn struct {
	net.Conn
	of     *listener
	from   netip.Addr        // the other side; not valid: a Unix socket
	peer   netip.Addr        // whose share it is counted in; not valid: nobody's
	links  [Bounds]idleLinks // of.mu holds them
	veiled bool              // what is read of it are no words of its client yet
	spoke  atomic.Bool       // its client did
	idle   atomic.Bool       // it is of HTTP/2, and has no request
	waits  atomic.Bool       // it is of HTTP/1, and the server has not read the header of its next request
	heard  atomic.Bool       // but something of it
	began  atomic.Int64      // when a header began to come, or the connection itself, in ns since 1970; 0: neither
	rank   rank              // its list when it rests; of.mu holds it
	keyed  atomic.Bool       // a request of it had a valid API key
	over   atomic.Bool       // nothing more can be read
	warned atomic.Bool       // something was sent on it since of.leaving: the GOAWAY, if it has no request
	once   sync.Once
}

func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 && !c.heard.Load() {
		c.began.CompareAndSwap(0, c.of.now().UnixNano())
		c.heard.Store(true)
	}
	if err != nil {
		c.over.Store(true)
	}
	if n > 0 && !c.veiled {
		c.speaks()
	}
	return n, err
}

func (c *conn) Write(b []byte) (int, error) {
	leaving := c.of.leaving.Load()
	n, err := c.Conn.Write(b)
	if leaving {
		c.warned.Store(true)
	}
	return n, err
}

// rests hears how a connection of HTTP/1 is.
func (c *conn) rests(is http.ConnState) {
	waits := is == http.StateNew || is == http.StateIdle
	if waits {
		c.heard.Store(false)
		if is == http.StateIdle {
			c.began.Store(0)
		}
		c.over.Store(false) // the server breaks off its reading ahead by a deadline
	}
	c.waits.Store(waits)
}

// asks reports that a request has begun to come, whose header is not read.
func (c *conn) asks() bool {
	return c.waits.Load() && !c.over.Load() && (c.heard.Load() || unread(c.Conn))
}

func (c *conn) speaks() {
	if !c.spoke.Load() {
		c.spoke.Store(true)
	}
}

func (c *conn) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() { c.of.remove(c) })
	return err
}

// CloseWrite lets an answer to a body that was not read be read by its client.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// Loopback reports that an address can be reached from this machine alone.
func Loopback(a net.Addr) bool {
	switch a := a.(type) {
	case *net.TCPAddr:
		return a.IP.IsLoopback()
	case *net.UnixAddr:
		return true
	}
	return false
}

// SetLinger passes on how a connection is to end: one that an answer breaks off is reset,
// or its end would look like that of the answer.
func (c *conn) SetLinger(sec int) error {
	if l, ok := c.Conn.(interface{ SetLinger(int) error }); ok {
		return l.SetLinger(sec)
	}
	return nil
}
