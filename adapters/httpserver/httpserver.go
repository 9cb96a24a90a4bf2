// Package httpserver is one HTTP listener with limits, and an end that cuts no
// request.
//
//	Run ──► up ──Stop──► grace, and until who was in is out: every answer says
//	         │           Connection: close ──► door shut ──► quiet ──► ended
//	         └──Kill, or ctx───────────────────────────────────────────► ended
package httpserver

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
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

// ErrCut says that requests were still in when the time to finish them was over.
var ErrCut = errors.New("httpserver: requests were cut at the deadline")

// Config is where a server listens and how long it waits for its peers.
type Config struct {
	Address   string        // host:port, or unix:path
	MaxConns  int           // one more is closed at once
	MaxHeader int           // bytes of a request's header
	Streams   int           // requests of one connection of HTTP/2 at once; all have MaxConns together
	Window    int           // bytes that such a connection sends before they are read, 64 KiB at least
	Header    time.Duration // for the header to arrive
	Read      time.Duration // for the whole request to arrive, header included
	Request   time.Duration // for the handler
	Write     time.Duration // for the answer to be taken
	Idle      time.Duration // for a connection without a request
	Grace     time.Duration // of telling clients to close, while taking what they still send
	Finish    time.Duration // for what is in, after the grace
	TLS       *TLS          // where Address is of TCP; nil: none
}

// Default is the contract's numbers, at an address.
func Default(address string) Config {
	return Config{Address: address, MaxConns: 8192, MaxHeader: 16 << 10, Streams: 100, Window: 64 << 10,
		Header: 5 * time.Second, Read: 5 * time.Second, Request: 5 * time.Second, Write: 5 * time.Second,
		Idle: time.Minute, Grace: 350 * time.Millisecond, Finish: 3 * time.Second}
}

// Hooks are told what happens; none of them may block. Each may be nil.
type Hooks struct {
	Up      func(net.Addr) // connections are taken from now on
	Refused func()         // a connection, or a request of HTTP/2, was one too many, and ended
	// PeerShare returns how many connections the peer at an address may have; 0 is as many as the
	// listener. All addresses of a network /64 of IPv6 are one peer.
	PeerShare   func(from netip.Addr) int
	PeerRefused func()         // a connection was one too many of its peer, none of which was idle, and ended
	IdleClosed  func(by Bound) // an idle connection was closed to make room for a new one
	Open        func(by int)   // there is one connection more, or less
	Stream      func(by int)   // there is one request of HTTP/2 more at work, or less
	Greeted     func(Greeting) // a handshake of TLS ended
	Smuggle     func()         // a request was refused, whose end can be read in two ways
}

// Server serves one handler at one address. Run may be called again after it
// failed: a free port that was taken once is taken again.
type Server struct {
	config  Config
	handler http.Handler
	hooks   Hooks
	log     *slog.Logger
	stop    chan struct{}
	kill    chan struct{}
	stopped sync.Once
	killed  sync.Once
	ending  atomic.Bool
	guests  *guests
	streams atomic.Int64 // requests of HTTP/2 that are in
	bound   string       // what Address was resolved to
	now     func() time.Time
}

// New is a server that does not listen yet.
func New(c Config, h http.Handler, hooks Hooks, log *slog.Logger) *Server {
	return &Server{config: c, handler: h, hooks: hooks, log: log, bound: c.Address, guests: newGuests(), now: time.Now,
		stop: make(chan struct{}), kill: make(chan struct{})}
}

// Stop asks Run to end once what is in is done. Kill asks it to end now. Neither
// waits, and each may be called at any time; before Run, it makes Run return.
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
	cancel := func() { end(ErrCut) }
	defer context.AfterFunc(ctx, cancel)()
	defer cancel() // handlers that a Kill left behind see it
	srv := s.server(whole)
	if s.hooks.Up != nil {
		s.hooks.Up(l.Addr())
	}
	served := make(chan error, 1)
	var door net.Listener = direct{l}
	if s.config.TLS != nil && l.Addr().Network() == "tcp" {
		hands := secure(l, s.config.TLS.config, s.config.Header, s.hooks.Greeted)
		door = hands
		defer func() { <-hands.over }()
		go hands.Run(whole) //nolint:errcheck // it fails never, and is waited for
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
	_ = srv.Close() // closing twice is no failure, and nothing else can be done about one
	s.leave()
	if e := <-served; !errors.Is(e, net.ErrClosed) && !errors.Is(e, http.ErrServerClosed) {
		s.log.Warn("listener shutdown failed", "address", s.bound, "err", e)
	}
	return err
}

// smallest is the smallest frame of HTTP/2 that must be read; a larger one is refused.
const smallest = 16 << 10

// settles notes which connections have no request.
func settles(c net.Conn, is http.ConnState) {
	under := below(c)
	if under == nil {
		return
	}
	if _, second := c.(*tls.Conn); second {
		under.idle.Store(is == http.StateIdle)
	} else {
		under.rests(is)
	}
	under.turns(is)
}

// turns notes whether a connection is idle, so that it gives way to others.
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
		WriteTimeout:      c.Read + c.Request + c.Write, // counts from the header on
		IdleTimeout:       c.Idle,
		MaxHeaderBytes:    c.MaxHeader,
		BaseContext:       func(net.Listener) context.Context { return whole },
		ConnContext:       guarded,
		ConnState:         settles,
		HTTP2: &http.HTTP2Config{MaxConcurrentStreams: c.Streams, MaxReadFrameSize: smallest, MaxReceiveBufferPerStream: c.Window,
			MaxReceiveBufferPerConnection: c.Window, WriteByteTimeout: c.Write},
		DisableGeneralOptionsHandler: true, // each request is counted
		ErrorLog:                     log.New(serverLog{s.log}, "", 0),
	}
}

// serverLog writes the messages of net/http: a panic as an error, everything else, which clients
// can cause at will, at debug level.
type serverLog struct{ log *slog.Logger }

func (l serverLog) Write(line []byte) (int, error) {
	level, text := slog.LevelDebug, strings.TrimSuffix(string(line), "\n")
	if strings.HasPrefix(text, "http: panic serving ") || strings.HasPrefix(text, "http2: panic serving ") {
		level = slog.LevelError
	}
	l.log.Log(context.Background(), level, text)
	return len(line), nil
}

// finish lets what is in end. First clients are told to close, and whoever asks is
// still answered, as long as others finish what they came for; then the door is shut
// such that nobody who came through it is turned out; then what is left has its time.
func (s *Server) finish(ctx context.Context, srv *http.Server, l *listener) error {
	if !s.wait(ctx, s.config.Grace, nil) {
		return nil
	}
	quiet, cancel := context.WithTimeout(ctx, s.config.Finish)
	defer cancel()
	if !s.wait(ctx, s.config.Finish-s.config.Grace, s.guests.last()) {
		return nil
	}
	l.shut()
	if !s.wait(ctx, s.config.Finish, l.closed) {
		return nil
	}
	if !s.hear(quiet, l) {
		return nil
	}
	l.dropUnheard()
	l.leaving.Store(true)
	shut := make(chan struct{})
	go func() {
		_ = srv.Shutdown(quiet) // whether it was in time is counted below
		close(shut)
	}()
	for pause := s.config.Grace; s.wait(quiet, pause, l.empty()) && l.count() > 0; pause = dropInterval {
		l.dropSilent()
	}
	cancel()
	<-shut
	if l.count() > 0 && ctx.Err() == nil && !s.dead() {
		return ErrCut
	}
	return nil
}

// dropInterval is the time between two looks for connections to drop, once the grace is over.
const dropInterval = 10 * time.Millisecond

// hear waits until no request has begun to come whose header is not read, and whoever came has
// said something, for which he has the grace: a server of net/http that shuts down drops those.
// It gives up with ctx; false when the end is to be at once.
func (s *Server) hear(ctx context.Context, l *listener) bool {
	until := time.Now().Add(s.config.Grace)
	for (l.asked() || time.Now().Before(until) && len(l.unheard()) > 0) && s.wait(ctx, time.Millisecond, nil) {
	}
	return !s.dead()
}

// wait lets d pass, or until done; false when the end is to be at once.
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

// leave waits for handlers that were cut, so that they have said so; no longer than the grace.
func (s *Server) leave() {
	t := time.NewTimer(s.config.Grace)
	defer t.Stop()
	select {
	case <-s.guests.last():
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

// closing makes every answer that begins after Stop say that its connection ends. What is
// wrong on the wire comes no further.
func (s *Server) closing(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.guests.come() {
			defer s.guests.leave()
		}
		if r.ProtoMajor == 2 {
			defer s.stream(-1)
			if s.stream(1) > int64(s.config.MaxConns) {
				told(s.hooks.Refused)
				panic(http.ErrAbortHandler) // it ends without a word that somebody must read
			}
		}
		if err := admit(r); err != nil {
			told(s.hooks.Smuggle)
			refuse(w, err)
			return
		}
		if r.RequestURI == "*" && r.Method == http.MethodOptions {
			w.Header()["Content-Length"] = []string{"0"} // of the server, and of no resource
			return
		}
		h.ServeHTTP(&answer{ResponseWriter: w, ending: &s.ending}, r)
	})
}

// stream counts the requests of HTTP/2.
func (s *Server) stream(by int) int64 {
	if s.hooks.Stream != nil {
		s.hooks.Stream(by)
	}
	return s.streams.Add(int64(by))
}

func told(hook func()) {
	if hook != nil {
		hook()
	}
}

// refuse answers as net/http does where it refuses itself.
func refuse(w http.ResponseWriter, why error) {
	h := w.Header()
	h["Connection"], h["Content-Type"] = []string{"close"}, []string{"text/plain; charset=utf-8"}
	w.WriteHeader(http.StatusBadRequest)
	_, _ = io.WriteString(w, "400 Bad Request: "+why.Error()) // who does not read it is not served either
}

// An answer decides about its connection when its header leaves, not when its
// request came: a request that was in at the Stop must not leave an idle connection
// behind for the client to use.
type answer struct {
	http.ResponseWriter
	ending *atomic.Bool
	begun  bool
}

func (a *answer) WriteHeader(status int) {
	if status >= http.StatusOK { // else it is said before the answer
		a.begin()
	}
	a.ResponseWriter.WriteHeader(status)
}

func (a *answer) Write(b []byte) (int, error) {
	a.begin()
	return a.ResponseWriter.Write(b)
}

func (a *answer) begin() {
	if !a.begun && a.ending.Load() {
		a.Header()["Connection"] = []string{"close"}
	}
	a.begun = true
}

// Unwrap is for http.ResponseController.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }
