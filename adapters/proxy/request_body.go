package proxy

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"macronode/core/event"
)

var (
	errRequestEnded = errors.New("proxy: the request has ended")
	errQuotaTimeout = errors.New("proxy: no quota for the rest of the body")
)

// A requestBody is the body of a client's request. The transport may read it after the request
// has ended: it gets an error then.
type requestBody struct {
	exchange    *exchange
	inner       io.ReadCloser
	pace        pace
	isStarted   atomic.Bool   // a part was read: it cannot be sent again
	isComplete  atomic.Bool   // it was read to its end
	isOverQuota atomic.Bool   // a quota rejects a part of it
	isMalformed atomic.Bool   // it cannot be decompressed
	problem     atomic.Uint32 // an event.Problem; 0: none

	readMu   sync.Mutex // serialises reads
	mu       sync.Mutex // guards the client's connection, which later serves another request
	hasEnded bool       // the request has ended
}

func (b *requestBody) Read(to []byte) (n int, err error) {
	b.readMu.Lock()
	defer b.readMu.Unlock()
	if b.isComplete.Load() { // a transport may read once more, and the server may have closed it for the response
		return 0, io.EOF
	}
	b.isStarted.Store(true)
	if !b.whileOpen(func() {
		b.exchange.timer.Stop()                                   // the wait is for the client, not for the endpoint
		_ = b.exchange.controller.SetReadDeadline(b.pace.begin()) // a writer without deadlines has limits of its own
	}) {
		return 0, errRequestEnded
	}
	b.exchange.clientWait.begin(b.pace.since)
	n, err = b.inner.Read(to)
	b.exchange.clientWait.end(b.pace.end(n))
	b.exchange.trace.BytesUp.Add(uint64(n))
	switch {
	case err == nil:
	case errors.Is(err, io.EOF):
		removeHeaderOnlyFields(b.exchange.r.Trailer, b.exchange.r.Header) // trailers that were not announced have arrived as well
		b.isComplete.Store(true)
	default:
		b.problem.CompareAndSwap(0, uint32(bodyProblem(err)))
	}
	if err != nil {
		b.whileOpen(func() {
			_ = b.exchange.controller.SetReadDeadline(time.Time{}) // otherwise the next request would seem to be disconnected
		})
	}
	if why := b.exchange.waitForQuota(n); why != event.None {
		b.isOverQuota.Store(why != event.Timeout)
		b.problem.CompareAndSwap(0, uint32(why))
		n, err = 0, errQuotaTimeout
	}
	b.exchange.meter.Count(n)
	b.whileOpen(b.exchange.resetTimer)
	return n, err
}

// failure returns the problem of the body. A server that loses a client cancels the request
// before the read fails. If ended is set, failure waits for that read.
func (b *requestBody) failure(ended bool) event.Problem {
	if ended {
		b.readMu.Lock()
		defer b.readMu.Unlock()
	}
	return event.Problem(b.problem.Load())
}

// whileOpen calls do unless the request has ended. It returns false if it has.
func (b *requestBody) whileOpen(do func()) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.hasEnded {
		do()
	}
	return !b.hasEnded
}

// stop ends the reading of the body, also a read in progress. The request goes on.
func (b *requestBody) stop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.hasEnded && !b.isComplete.Load() {
		b.hasEnded = true
		_ = b.exchange.controller.SetReadDeadline(time.Unix(1, 0))
	}
}

// end leaves the rest of the body to the server, which reads some of it.
func (b *requestBody) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.hasEnded = true
	if !b.isComplete.Load() {
		_ = b.exchange.controller.SetReadDeadline(time.Now().Add(b.pace.grace))
	}
}

// bodyProblem returns the problem for an error of reading a body. A body that arrives too slowly is an
// incomplete one, as everywhere in the API: a 504 would blame the service.
func bodyProblem(err error) event.Problem {
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		return event.PayloadTooLarge
	}
	return event.BadRequest
}

// Close does nothing: another attempt may need the body, and the server closes it.
func (b *requestBody) Close() error { return nil }
