// Package httpserver is one HTTP listener with limits, and a shutdown that aborts no request.
//
//	Run ──► listening ──Stop──► grace, until requests in progress have ended: every response has
//	         │                  Connection: close ──► listener closed ──► connections ended ──► returns
//	         └──Kill, or ctx──────────────────────────────────────────────────────────────────► returns
package httpserver

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// ErrShutdown reports that requests were still in progress at the end of Config.Finish.
var ErrShutdown = errors.New("httpserver: requests were cut at the deadline")

// Config has the address, limits and timeouts of a server.
type Config struct {
	Address   string        // host:port, or unix:path
	MaxConns  int           // connections
	MaxHeader int           // bytes of a request header
	Streams   int           // concurrent requests of one HTTP/2 connection; all connections together have MaxConns, and those of one peer its share of them
	Window    int           // bytes of a body that an HTTP/2 client may send before they are read, at least 64 KiB
	Header    time.Duration // to receive the header
	Read      time.Duration // to receive the whole request, including the header
	Request   time.Duration // for the handler
	Write     time.Duration // for the client to take the response
	Idle      time.Duration // of a connection without a request
	Grace     time.Duration // after Stop: clients are asked to close, new requests are still served
	Finish    time.Duration // after Stop: for requests in progress, including the grace
	// KeyedFirst: at a limit, the connection that was accepted first of those that never had an
	// authenticated request is closed for a new one, also during a request. So callers without a key,
	// however many, cannot hold the listener. Otherwise a connection with a request is never closed.
	KeyedFirst bool
	TLS        *TLS // only for a TCP address; nil: no TLS
}

// Default returns the default limits and timeouts for an address.
func Default(address string) Config {
	return Config{Address: address, MaxConns: 8192, MaxHeader: 16 << 10, Streams: 100, Window: 64 << 10,
		Header: 5 * time.Second, Read: 5 * time.Second, Request: 5 * time.Second, Write: 5 * time.Second,
		Idle: time.Minute, Grace: 350 * time.Millisecond, Finish: 3 * time.Second}
}

// Hooks are called when something happens. They must not block. Each may be nil.
type Hooks struct {
	Listening func(net.Addr) // connections are accepted from now on
	Refused   func()         // a connection or an HTTP/2 request above Config.MaxConns was closed
	// PeerShare returns how many connections the peer at an address may have; 0 is as many as the
	// listener. All addresses of a network /64 of IPv6 are one peer.
	PeerShare        func(from netip.Addr) int
	PeerRefused      func()                // a connection above the share of its peer was closed, because none of the peer was idle, or an HTTP/2 request above it was refused
	IdleClosed       func(by ConnLimit)    // a connection was closed to make room for a new one or for an HTTP/2 request
	Open             func(by int)          // the number of connections changed by 1 or -1
	Stream           func(by int)          // the number of HTTP/2 requests changed
	HandshakeDone    func(HandshakeResult) // a TLS handshake ended
	AmbiguousRequest func()                // a request was rejected because its end is ambiguous
	Flooded          func()                // an HTTP/2 connection was closed because its client sent too many frames without progress
	RejectedFlood    func()                // a connection ends because its peer had too many rejected requests
	Delayed          func()                // a new connection starts with a delay, because its peer had many rejected requests
}

// Server serves one handler at one address. Run may be called again after it failed: a port that the
// system chose is used again.
type Server struct {
	config   Config
	handler  http.Handler
	hooks    Hooks
	log      *slog.Logger
	stop     chan struct{}
	kill     chan struct{}
	stopped  sync.Once
	killed   sync.Once
	ending   atomic.Bool
	admitted *requestGroup
	bound    string // the resolved Address
	now      func() time.Time
}

// New returns a server that does not listen yet.
func New(c Config, h http.Handler, hooks Hooks, log *slog.Logger) *Server {
	return &Server{config: c, handler: h, hooks: hooks, log: log, bound: c.Address, admitted: newRequestGroup(), now: time.Now,
		stop: make(chan struct{}), kill: make(chan struct{})}
}

// Stop asks Run to return when the requests in progress have ended, Kill to return now. Neither waits.
// Both may be called at any time; before Run, they make Run return at once.
func (s *Server) Stop() { s.stopped.Do(func() { s.ending.Store(true); close(s.stop) }) }
func (s *Server) Kill() { s.killed.Do(func() { close(s.kill) }) }

// Run listens and serves until Stop (nil, or ErrCut), Kill or the end of ctx (nil), or
// a failure of the listener.
func (s *Server) Run(ctx context.Context) error {
	if s.ending.Load() || s.dead() {
		return nil
	}
	l, err := s.listen(ctx)
	if err != nil {
		return err
	}
	whole, end := context.WithCancelCause(context.WithoutCancel(ctx))
	cancel := func() { end(ErrShutdown) }
	defer context.AfterFunc(ctx, cancel)()
	defer cancel() // ends handlers that are left after Kill
	srv := s.server(whole)
	if s.hooks.Listening != nil {
		s.hooks.Listening(l.Addr())
	}
	served := make(chan error, 1)
	var door net.Listener = plainListener{l}
	if s.config.TLS != nil && l.Addr().Network() == "tcp" {
		hands := secure(l, s.config.TLS.config, s.config.Header, s.hooks.HandshakeDone)
		door = &guardedFrames{Listener: hands, of: s, server: srv}
		defer func() { <-hands.over }()
		go hands.Run(whole) //nolint:errcheck // it never fails, and the deferred receive waits for it
	}
	go func() { served <- srv.Serve(door) }()
	select {
	case err := <-served:
		cancel()
		return errors.Join(fmt.Errorf("serve %s: %w", s.bound, err), srv.Close())
	case <-s.kill:
	case <-ctx.Done():
	case <-s.stop:
		if err = s.finish(ctx, srv, l); err != nil {
			s.log.Warn("requests aborted by shutdown", "address", s.bound, "connections", l.count())
		}
	}
	cancel()
	_ = srv.Close() // closing twice is not an error, and nothing can be done about others
	s.awaitAborted()
	if e := <-served; !errors.Is(e, net.ErrClosed) && !errors.Is(e, http.ErrServerClosed) {
		s.log.Warn("listener shutdown failed", "address", s.bound, "err", e)
	}
	return err
}

// smallest is the smallest limit of an HTTP/2 frame that RFC 9113 permits. Larger frames are rejected.
const smallest = 16 << 10

// settles records whether a connection has a request.
func settles(c net.Conn, is http.ConnState) {
	under := below(c)
	if under == nil {
		return
	}
	if isHTTP2(c) {
		under.idle.Store(is == http.StateIdle)
	} else {
		under.setState(is)
	}
	under.turns(is)
}

// turns records whether a connection is idle, so that it can be closed for a new one.
func (c *conn) turns(is http.ConnState) {
	switch is {
	case http.StateNew, http.StateIdle:
		c.of.becomes(c, true)
	case http.StateActive, http.StateHijacked:
		c.of.becomes(c, false)
	case http.StateClosed: // Close forgets it
	}
}

func (s *Server) server(whole context.Context) *http.Server {
	c := s.config
	return &http.Server{
		Handler:           s.closing(s.handler),
		ReadHeaderTimeout: c.Header,
		ReadTimeout:       c.Read,
		WriteTimeout:      c.Read + c.Request + c.Write, // starts at the end of the header
		IdleTimeout:       c.Idle,
		MaxHeaderBytes:    c.MaxHeader,
		BaseContext:       func(net.Listener) context.Context { return whole },
		ConnContext:       guarded,
		ConnState:         settles,
		HTTP2: &http.HTTP2Config{MaxConcurrentStreams: c.Streams, MaxReadFrameSize: smallest, MaxReceiveBufferPerStream: c.Window,
			MaxReceiveBufferPerConnection: c.Streams * c.Window, // so a body that is not read delays no other
			WriteByteTimeout:              c.Write},
		DisableGeneralOptionsHandler: true, // so that every request is counted
		ErrorLog:                     log.New(serverLog{s.log}, "", 0),
	}
}

// serverLog writes the messages of net/http: a panic as an error, a failed accept, which is repeated after up to a
// second, as a warning, everything else, which clients can cause at will, at debug level.
type serverLog struct{ log *slog.Logger }

func (l serverLog) Write(line []byte) (int, error) {
	level, text := slog.LevelDebug, strings.TrimSuffix(string(line), "\n")
	if strings.HasPrefix(text, "http: panic serving ") || strings.HasPrefix(text, "http2: panic serving ") {
		level = slog.LevelError
	}
	if strings.HasPrefix(text, "http: Accept error: ") {
		level = slog.LevelWarn
	}
	l.log.Log(context.Background(), level, text)
	return len(line), nil
}

// finish shuts down gracefully. First clients are asked to close, and new requests are served
// while others finish. Then the listener is closed without resetting connections that have
// reached it. Then the remaining requests have until Config.Finish.
func (s *Server) finish(ctx context.Context, srv *http.Server, l *listener) error {
	if !s.wait(ctx, s.config.Grace, nil) {
		return nil
	}
	quiet, cancel := context.WithTimeout(ctx, s.config.Finish)
	defer cancel()
	if !s.wait(ctx, s.config.Finish-s.config.Grace, s.admitted.close()) {
		return nil
	}
	l.shut()
	if !s.wait(ctx, s.config.Finish, l.closed) {
		return nil
	}
	if !s.awaitHeaders(quiet, l) {
		return nil
	}
	l.dropUnheard()
	l.leaving.Store(true)
	shut := make(chan struct{})
	go func() {
		_ = srv.Shutdown(quiet) // whether it was complete is checked below
		close(shut)
	}()
	for pause := s.config.Grace; s.wait(quiet, pause, l.empty()) && l.count() > 0; pause = dropInterval {
		l.dropSilent()
	}
	cancel()
	<-shut
	if l.count() > 0 && ctx.Err() == nil && !s.dead() {
		return ErrShutdown
	}
	return nil
}

// dropInterval is the time between two looks for connections to drop, once the grace is over.
const dropInterval = 10 * time.Millisecond

// awaitHeaders waits until no request header is partly received, and every new connection has
// sent something or the grace is over: the shutdown of net/http drops such connections. It stops
// waiting when ctx ends. It returns false if the server was killed.
func (s *Server) awaitHeaders(ctx context.Context, l *listener) bool {
	until := time.Now().Add(s.config.Grace)
	for (l.isReadingHeader() || time.Now().Before(until) && len(l.unheard()) > 0) && s.wait(ctx, time.Millisecond, nil) {
	}
	return !s.dead()
}

// wait waits for d or until done is closed. It returns false if the server was killed or ctx has ended.
func (s *Server) wait(ctx context.Context, d time.Duration, done <-chan struct{}) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-done:
	case <-s.kill:
		return false
	case <-ctx.Done():
		return false
	}
	return true
}

// awaitAborted waits for aborted handlers, at most for the grace, so that they can record it.
func (s *Server) awaitAborted() {
	t := time.NewTimer(s.config.Grace)
	defer t.Stop()
	select {
	case <-s.admitted.close():
	case <-t.C:
	}
}

func (s *Server) dead() bool {
	select {
	case <-s.kill:
		return true
	default:
		return false
	}
}

// closing adds Connection: close to every response that begins after Stop, and rejects malformed requests.
func (s *Server) closing(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.admitted.enter() {
			defer s.admitted.leave()
		}
		c, _ := r.Context().Value(connKey{}).(*conn)
		if c != nil && !c.hadRequest.Load() {
			c.hadRequest.Store(true)
		}
		if r.ProtoMajor == 2 {
			if c != nil {
				if !c.of.beginHandler(c) {
					panic(http.ErrAbortHandler) // a response could block on a client that does not read
				}
				defer c.of.endHandler(c)
				if c.closes.Load() {
					panic(http.ErrAbortHandler) // it came behind the request that ends the connection
				}
			}
			defer s.limitEnd(w)
		}
		if err := admit(r); err != nil {
			callHook(s.hooks.AmbiguousRequest)
			if c != nil {
				c.of.takeCredit(c)
			}
			refuse(w, err)
			return
		}
		out := &responseWriter{ResponseWriter: w, ending: &s.ending, conn: c}
		if r.RequestURI == "*" && r.Method == http.MethodOptions { // it asks about the server, not about a resource
			MarkRejected(r.Context()) // no admission limits it, so it counts as a rejected request
			out.announceEnd()
			out.Header()["Content-Length"] = []string{"0"}
			return
		}
		h.ServeHTTP(out, r)
	})
}

func callHook(hook func()) {
	if hook != nil {
		hook()
	}
}

// refuse rejects a request in the same form as net/http does.
func refuse(w http.ResponseWriter, why error) {
	h := w.Header()
	h["Connection"], h["Content-Type"] = []string{"close"}, []string{"text/plain; charset=utf-8"}
	status := http.StatusBadRequest
	if errors.Is(why, errExpect) {
		status = http.StatusExpectationFailed
	}
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, "%d %s: %v", status, http.StatusText(status), why) // a client that does not read it needs nothing else
}

// A responseWriter decides when its header is sent whether the connection will be closed, not when the request
// arrived: after a request that was in progress at Stop, the client must not use the connection again.
type responseWriter struct {
	http.ResponseWriter
	ending *atomic.Bool
	conn   *conn // nil: the server does not know it
	begun  bool
}

func (a *responseWriter) WriteHeader(status int) {
	if status >= http.StatusOK { // else it is informational, and the final response follows
		a.begin(status)
	}
	a.ResponseWriter.WriteHeader(status)
}

func (a *responseWriter) Write(b []byte) (int, error) {
	a.begin(http.StatusOK)
	return a.ResponseWriter.Write(b)
}

func (a *responseWriter) begin(status int) {
	if a.begun {
		return
	}
	a.begun = true
	if a.conn != nil && status < http.StatusBadRequest {
		a.conn.pay()
	}
	a.announceEnd()
}

// announceEnd says in the header that the connection ends with this response, if it does.
func (a *responseWriter) announceEnd() {
	if a.ending.Load() || a.conn != nil && a.conn.closes.Load() {
		a.Header()["Connection"] = []string{"close"}
	}
}

// Unwrap returns the wrapped writer to http.ResponseController.
func (a *responseWriter) Unwrap() http.ResponseWriter { return a.ResponseWriter }
