package proxy

import (
	"errors"
	"io"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"macronode/core/event"
)

var (
	errOver = errors.New("proxy: the request is over")
	errHeld = errors.New("proxy: no more of the body may go on")
)

// A body is that of a client's request on its way to an endpoint. The transport may ask
// for more of it when the request is over: it gets nothing then.
type body struct {
	of     *trip
	inner  io.ReadCloser
	pace   pace
	begun  atomic.Bool   // something was asked of the client: it cannot be asked again
	done   atomic.Bool   // it is all there
	failed atomic.Uint32 // the problem with it

	turn sync.Mutex // of who reads
	mu   sync.Mutex // of what is done to the client's connection, which is another request's later
	over bool       // the request is
}

func (b *body) Read(to []byte) (n int, err error) {
	b.turn.Lock()
	defer b.turn.Unlock()
	if b.done.Load() { // a transport looks once more, and the server may have closed it for the answer
		return 0, io.EOF
	}
	b.begun.Store(true)
	if !b.during(func() {
		b.of.timer.Stop()                                // the client's time, not the endpoint's
		_ = b.of.control.SetReadDeadline(b.pace.begin()) // a writer that has none has limits of its own
	}) {
		return 0, errOver
	}
	n, err = b.inner.Read(to)
	b.pace.end(n)
	b.of.course.Up.Add(uint64(n))
	switch {
	case err == nil:
	case errors.Is(err, io.EOF):
		behind(b.of.r.Trailer, b.of.r.Header) // what was not announced has come as well
		b.done.Store(true)
	default:
		b.failed.CompareAndSwap(0, uint32(fault(err)))
	}
	if err != nil {
		b.during(func() {
			_ = b.of.control.SetReadDeadline(time.Time{}) // or the client would seem to leave at the next
		})
	}
	if why := b.of.pass(n); why != event.None {
		b.failed.CompareAndSwap(0, uint32(why))
		n, err = 0, errHeld
	}
	b.of.meter.Took(n)
	b.during(b.of.wait)
	return n, err
}

// wrong is the problem with the body. A server that gives up a client ends the request
// before the read that found out: whose request has ended waits for it.
func (b *body) wrong(ended bool) event.Problem {
	if ended {
		b.turn.Lock()
		defer b.turn.Unlock()
	}
	return event.Problem(b.failed.Load())
}

// during does what must not be done once the request is over; false: it is.
func (b *body) during(do func()) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.over {
		do()
	}
	return !b.over
}

// end leaves what is still to come to the server, which waits for some of it.
func (b *body) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.over = true
	if !b.done.Load() {
		_ = b.of.control.SetReadDeadline(time.Now().Add(b.pace.grace))
	}
}

// fault is what is wrong with a body that cannot be read.
func fault(err error) event.Problem {
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return event.PayloadTooLarge
	case errors.Is(err, os.ErrDeadlineExceeded):
		return event.Timeout
	}
	return event.BadRequest
}

// Close leaves the client's body alone: there may be another try with it, and the server
// closes it.
func (b *body) Close() error { return nil }
