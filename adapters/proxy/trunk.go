package proxy

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"
)

// spoilt is how many requests of a trunk are given up, and no more go over it: an endpoint
// may take more of them for an attack.
const spoilt = 100

// Why a request over a trunk has no answer, where it is not what the connection says.
var (
	errDeclined = errors.New("proxy: the endpoint has not begun with the request")
	errAway     = errors.New("proxy: a connection that was used before ended before the request")
	errLarge    = errors.New("proxy: the endpoint has said that it takes no request like this one, which is too large")
	errOdd      = errors.New("proxy: the header of an answer is none of HTTP")
)

// A trunk is a connection of HTTP/2 to an endpoint, over which many requests go at once. Each
// has a window of its own, so that who is slow to take his answer holds up nobody else.
// What http.Transport would send again by itself, a connection of its own does not.
type trunk struct {
	conn  *second
	of    *trunks
	born  time.Time
	ended atomic.Bool  // the connection is over
	kept  atomic.Bool  // something was answered over it: it may end just when it is asked
	quiet atomic.Int64 // when the first request was sent since something was heard, in nanoseconds from born; 0: all is heard

	// guarded by of.mu
	calls  int // requests that are on it
	spoilt int
	last   bool      // it takes no more of them
	since  time.Time // it has none
	cut    time.Time // a request on it was given up: its place is free when the endpoint has confirmed that
}

// A trail is what a request over trunks leaves behind: what it calls is called by who reads
// or writes for all requests of a trunk, and must not wait.
type trail = httptrace.ClientTrace

// ask sends a request for which t has a place. sent: something of it may have left.
func (t *trunk) ask(out *http.Request, e errand) (res *http.Response, sent bool, err error) {
	var wrote atomic.Bool
	ctx, stop := context.WithCancel(out.Context())
	note := e.note
	note.WroteHeaders = func() { wrote.Store(true) }
	note.GotFirstResponseByte = t.hears
	t.quiet.CompareAndSwap(0, max(1, int64(time.Since(t.born))))
	try := out.WithContext(httptrace.WithClientTrace(ctx, &note))
	if e.body != nil {
		try.Body = e.body()
	}
	res, err = t.conn.RoundTrip(try)
	if err == nil && odd(res) {
		stop()
		_ = res.Body.Close() // nobody wants it
		wrote.Store(true)    // he may not have said so yet
		err = errOdd
	}
	if err != nil {
		stop()
		gone := out.Context().Err() != nil
		if !gone && !ofStream(err) && !t.conn.CanTakeNewRequest() { // of one that is given up it may be full, and no more
			t.ended.Store(true)
		}
		t.of.leave(t, gone, gone)
		return nil, wrote.Load(), err
	}
	t.kept.Store(true)
	res.Body = &strand{ReadCloser: res.Body, trunk: t, stop: stop, bare: res.StatusCode == http.StatusNotModified}
	return res, true, nil
}

// hears notes that the endpoint lives.
func (t *trunk) hears() {
	if t.quiet.Load() != 0 {
		t.quiet.Store(0)
	}
}

// doubted reports that nothing was heard for so long, though something was asked.
func (t *trunk) doubted(long time.Duration) bool {
	asked := t.quiet.Load()
	return asked != 0 && time.Since(t.born)-time.Duration(asked) >= long
}

// odd reports an answer that HTTP/1.1 would not have let through. A length that is none, or
// one of two, is not told: the frames say where a body ends.
func odd(res *http.Response) bool { return res.StatusCode > 999 }

// A strand is the body of an answer over a trunk.
type strand struct {
	io.ReadCloser
	trunk *trunk
	stop  func()
	bare  bool // there is none, whatever length it would have
	whole bool // it was read
	over  bool
}

func (s *strand) Read(p []byte) (int, error) {
	if s.bare {
		return 0, io.EOF
	}
	n, err := s.ReadCloser.Read(p)
	if n > 0 {
		s.trunk.hears()
	}
	s.whole = s.whole || err == io.EOF
	return n, err
}

// Close gives up what is left of both bodies. Of an answer that was read it waits until the
// place is free.
func (s *strand) Close() error {
	if s.over {
		return nil
	}
	if s.over = true; !s.whole {
		s.stop()
	}
	defer s.stop()
	err := s.ReadCloser.Close()
	s.trunk.of.leave(s.trunk, false, !s.whole)
	return err
}

// An errand is what goes along with a request over trunks.
type errand struct {
	leg   *Leg
	note  trail
	again func() bool    // it may be repeated, whole
	body  func() *upload // for each try; nil: there is none
}

// An upload is a body as one try over a trunk reads it. A trunk that gives a request up closes
// its body, and waits for who reads that: he must not wait for the client then. What he
// has begun to read, and does not wait for, is lost: the request is not sent again.
type upload struct {
	inner  io.Reader
	aside  func(func()) // does something while others go on
	closed chan struct{}
	once   sync.Once
}

func (u *upload) Read(to []byte) (int, error) {
	type part struct {
		text *[size]byte
		n    int
		err  error
	}
	got := make(chan part, 1)
	select {
	case <-u.closed:
		return 0, errOver
	default:
	}
	u.aside(func() {
		text := buffers.Get().(*[size]byte)
		n, err := u.inner.Read(text[:min(len(to), size)])
		got <- part{text, n, err}
	})
	select {
	case p := <-got:
		n := copy(to, p.text[:p.n])
		buffers.Put(p.text)
		return n, p.err
	case <-u.closed:
		return 0, errOver
	}
}

// Close ends what is read, and leaves the client's body alone.
func (u *upload) Close() error {
	u.once.Do(func() { close(u.closed) })
	return nil
}

// resetBy is the code by which an endpoint has reset a stream; false: it has not.
func resetBy(err error) (code http2.ErrCode, ok bool) {
	var r http2.StreamError
	if !errors.As(err, &r) || r.Cause == nil || r.Cause.Error() != "received from peer" {
		return 0, false
	}
	return r.Code, true
}

// ofStream reports that an error is of one request, and not of its connection.
func ofStream(err error) bool {
	var r http2.StreamError
	return errors.As(err, &r)
}

// unsendable reports that the transport could not write a request: its error says so, for the
// connection may end just then.
func unsendable(err error) bool {
	text := err.Error()
	return strings.Contains(text, "invalid HTTP ") || strings.Contains(text, "invalid request :path") || strings.Contains(text, "invalid Trailer")
}

// tooLarge reports that an endpoint has said that it takes no header like this one.
func tooLarge(err error) bool {
	return strings.Contains(err.Error(), "request header list larger than peer's advertised limit")
}

// goesAway reports that an endpoint has ended its connection, and says that it has not begun
// with this request.
func goesAway(err error) bool {
	return err != nil && strings.HasPrefix(err.Error(), "http2: Transport received ") && strings.Contains(err.Error(), "GOAWAY")
}

// ended reports that an endpoint has ended a stream, or its connection, in whatever way.
func ended(err error) bool {
	_, is := resetBy(err)
	text := err.Error()
	return is || errors.Is(err, errEnded) || strings.HasPrefix(text, "http2: ") &&
		(strings.Contains(text, "GOAWAY") || strings.Contains(text, "client conn"))
}
