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

	"macronode/core/share"
	"macronode/core/types"
)

// maxAbortedRequests is the number of aborted requests after which a connection is retired: an
// endpoint may take more resets for an attack.
const maxAbortedRequests = 100

// Errors of a request over HTTP/2 that are not errors of its connection.
var (
	errStreamRefused  = errors.New("proxy: the endpoint has not processed the request")
	errConnWentAway   = errors.New("proxy: a reused connection ended before the request")
	errHeaderTooLarge = errors.New("proxy: the header exceeds the limit that the endpoint has announced")
	errInvalidStatus  = errors.New("proxy: the status of the response is not valid in HTTP")
)

// A h2conn is an HTTP/2 connection to an endpoint. Each stream has its own window, so a client
// that reads slowly does not delay others. Unlike http.Transport, it never resends a request by
// itself.
type h2conn struct {
	conn         *h2ClientConn
	pool         *h2pool
	createdAt    time.Time
	ended        atomic.Bool  // the connection has ended
	hasAnswered  atomic.Bool  // a response arrived: the endpoint may end the connection while a request is sent
	unheardSince atomic.Int64 // when the first request after the last received data was sent, in nanoseconds from createdAt; 0: no request waits

	// guarded by pool.mu
	dial       *pendingConn // as which it was opened
	requests   int          // in progress
	bodies     share.Bodies // of these requests
	bodyEnded  time.Time    // when the last body ended
	aborted    int          // requests that were reset without a response
	isRetiring bool         // it takes no further requests
	idleSince  time.Time    // since when there is no request
	abortedAt  time.Time    // when a request was aborted: its stream is free once the endpoint has confirmed that
}

// A clientTrace has callbacks for a request. The goroutines that read and write the whole
// connection call them, so they must not block.
type clientTrace = httptrace.ClientTrace

// roundTrip sends a request for which a stream is reserved. sent: a part of it may have been
// written.
func (t *h2conn) roundTrip(out *http.Request, e h2Request) (res *http.Response, sent bool, err error) {
	var wrote atomic.Bool
	ctx, stop := context.WithCancel(out.Context())
	note := e.trace
	note.WroteHeaders = func() {
		wrote.Store(true)
		e.upstream.noteSent()
	}
	note.GotFirstResponseByte = t.noteHeard
	t.unheardSince.CompareAndSwap(0, max(1, int64(time.Since(t.createdAt))))
	try := out.WithContext(httptrace.WithClientTrace(ctx, &note))
	if e.newBody != nil {
		try.Body = e.newBody()
	}
	res, err = t.conn.RoundTrip(try)
	if err == nil && isInvalidStatus(res) {
		stop()
		_ = res.Body.Close() // it is not needed
		wrote.Store(true)    // the writer may not have reported it yet
		err = errInvalidStatus
	}
	if err != nil {
		stop()
		isCancelled := out.Context().Err() != nil
		if !isCancelled && !isStreamError(err) && !t.conn.CanTakeNewRequest() { // after a cancellation the connection may merely be full
			t.ended.Store(true)
		}
		_, isResetByEndpoint := streamResetCode(err)
		t.pool.release(t, e.body, isCancelled || wrote.Load() && !isResetByEndpoint, isCancelled)
		return nil, wrote.Load(), err
	}
	t.hasAnswered.Store(true)
	res.Body = &h2Body{ReadCloser: res.Body, conn: t, sent: e.body, stop: stop, hasNoBody: res.StatusCode == http.StatusNotModified}
	return res, true, nil
}

// noteHeard records that the endpoint has sent data.
func (t *h2conn) noteHeard() {
	if t.unheardSince.Load() != 0 {
		t.unheardSince.Store(0)
	}
}

// isDoubtful reports whether nothing was received for that long although a request was sent.
func (t *h2conn) isDoubtful(long time.Duration) bool {
	since := t.unheardSince.Load()
	return since != 0 && time.Since(t.createdAt)-time.Duration(since) >= long
}

// isInvalidStatus reports whether HTTP/1.1 would reject the status of a response. An invalid
// Content-Length is ignored, because the frames determine where a body ends.
func isInvalidStatus(res *http.Response) bool { return res.StatusCode > 999 }

// A h2Body is the body of a response over HTTP/2.
type h2Body struct {
	io.ReadCloser
	conn       *h2conn
	sent       bodyToSend // of the request
	stop       func()
	hasNoBody  bool // the response has no body, whatever its Content-Length is
	isComplete bool // it was read to its end
	isClosed   bool
}

func (s *h2Body) Read(p []byte) (int, error) {
	if s.hasNoBody {
		return 0, io.EOF
	}
	n, err := s.ReadCloser.Read(p)
	if n > 0 {
		s.conn.noteHeard()
	}
	s.isComplete = s.isComplete || err == io.EOF
	return n, err
}

// Close aborts what is left of both bodies. If the response was read to its end, Close waits
// until the stream is free.
func (s *h2Body) Close() error {
	if s.isClosed {
		return nil
	}
	if s.isClosed = true; !s.isComplete {
		s.stop()
	}
	defer s.stop()
	err := s.ReadCloser.Close()
	s.conn.pool.release(s.conn, s.sent, false, !s.isComplete)
	return err
}

// A h2Request is a request over HTTP/2 and what its attempts need.
type h2Request struct {
	upstream  *UpstreamTrace
	trace     clientTrace
	canRepeat func() bool    // the whole request may be sent again
	newBody   func() *upload // for each attempt; nil: the request has no body
	body      bodyToSend
}

// A bodyToSend is what is known of the body of a request before it is sent.
type bodyToSend struct {
	exists bool
	flow   types.Flow // of the request
	length int64      // share.UnknownLength: it is not known
}

// An upload is a body as one attempt over HTTP/2 reads it. A connection that aborts a request
// closes its body and waits for the reader, which therefore must not wait for the client. Data
// that was being read at that moment is lost, and the request is not sent again.
type upload struct {
	inner        io.Reader
	inBackground func(func()) // runs a function while others continue
	closed       chan struct{}
	once         sync.Once
}

func (u *upload) Read(to []byte) (int, error) {
	type part struct {
		text *[bufferSize]byte
		n    int
		err  error
	}
	got := make(chan part, 1)
	select {
	case <-u.closed:
		return 0, errRequestEnded
	default:
	}
	u.inBackground(func() {
		text := buffers.Get().(*[bufferSize]byte)
		n, err := u.inner.Read(text[:min(len(to), bufferSize)])
		got <- part{text, n, err}
	})
	select {
	case p := <-got:
		n := copy(to, p.text[:p.n])
		buffers.Put(p.text)
		return n, p.err
	case <-u.closed:
		return 0, errRequestEnded
	}
}

// Close ends reads. It does not close the client's body.
func (u *upload) Close() error {
	u.once.Do(func() { close(u.closed) })
	return nil
}

// streamResetCode returns the code with which the endpoint has reset a stream. ok is false if it
// has not.
func streamResetCode(err error) (code http2.ErrCode, ok bool) {
	var r http2.StreamError
	if !errors.As(err, &r) || r.Cause == nil || r.Cause.Error() != "received from peer" {
		return 0, false
	}
	return r.Code, true
}

// isStreamError reports whether an error concerns one request and not its connection.
func isStreamError(err error) bool {
	var r http2.StreamError
	return errors.As(err, &r)
}

// isUnsendable reports whether the transport could not write a request. Only the text of the
// error shows it, because the connection may end at the same moment.
func isUnsendable(err error) bool {
	text := err.Error()
	return strings.Contains(text, "invalid HTTP ") || strings.Contains(text, "invalid request :path") || strings.Contains(text, "invalid Trailer")
}

// isHeaderTooLarge reports whether the header exceeds the limit that the endpoint has announced.
func isHeaderTooLarge(err error) bool {
	return strings.Contains(err.Error(), "request header list larger than peer's advertised limit")
}

// isGoAway reports whether the endpoint has closed its connection with GOAWAY and has not
// processed this request.
func isGoAway(err error) bool {
	return err != nil && strings.HasPrefix(err.Error(), "http2: Transport received ") && strings.Contains(err.Error(), "GOAWAY")
}

// isEndedByEndpoint reports whether the endpoint has ended the stream or its connection.
func isEndedByEndpoint(err error) bool {
	_, is := streamResetCode(err)
	text := err.Error()
	return is || errors.Is(err, errConnEndsAtOnce) || strings.HasPrefix(text, "http2: ") &&
		(strings.Contains(text, "GOAWAY") || strings.Contains(text, "client conn"))
}
