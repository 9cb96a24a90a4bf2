package proxy

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"macronode/core/event"
)

// forwardResponse streams a response to the client. Until something can be sent to the client, the deadline of
// the request holds.
func (t *exchange) forwardResponse(res *http.Response) {
	result, reason := event.AttemptAbandoned, ClientDisconnected
	defer func() { t.finish(result, reason) }()
	buf := buffers.Get().(*[bufferSize]byte)
	defer buffers.Put(buf)
	isStreaming := res.ContentLength < 0 || strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream")
	n, err := 0, error(nil)
	if !isStreaming {
		n, err = readFirstPart(res, buf)
	}
	if err != nil && !errors.Is(err, io.EOF) { // the header was not written yet
		switch result, reason = t.bodyFailure(err); reason {
		case ClientDisconnected:
			panic(http.ErrAbortHandler)
		case DeadlineExceeded, ClientDeadline:
			t.writeProblem(event.Timeout)
		default:
			t.writeProblem(event.BadGateway)
		}
		return
	}
	t.responding.Store(true)
	t.timer.Reset(t.config.StallTimeout)
	h := t.w.Header()
	ids := idsOf(h)
	t.route.copyResponseHeader(h, res.Header)
	ids.put(h)
	if _, isSet := h["Content-Type"]; !isSet {
		h["Content-Type"] = nil // otherwise the server would guess one
	}
	removeHeaderOnlyFields(res.Trailer, res.Header)
	announced := len(res.Trailer)
	if announced > 0 {
		var names []string
		for name := range res.Trailer {
			names = append(names, name)
		}
		h["Trailer"] = []string{strings.Join(names, ", ")}
	}
	t.w.WriteHeader(res.StatusCode)
	result, reason = t.copyBody(res, buf, n, err, isStreaming)
	if result != event.AttemptCompleted {
		if rest := res.ContentLength; rest < 0 && !t.r.ProtoAtLeast(1, 1) {
			t.abortConnection()
		}
		panic(http.ErrAbortHandler) // tells the client that the response is incomplete
	}
	if removeHeaderOnlyFields(res.Trailer, res.Header); len(res.Trailer) > 0 {
		t.writeTrailers(res, announced)
	}
}

// ids are the values of X-Request-Id and X-Decision-Id, which an upstream does not override. nil:
// not set.
type ids struct{ request, decision []string }

func idsOf(h http.Header) ids { return ids{h["X-Request-Id"], h["X-Decision-Id"]} }

func (i ids) put(h http.Header) {
	if i.request != nil {
		h["X-Request-Id"] = i.request
	}
	if i.decision != nil {
		h["X-Decision-Id"] = i.decision
	}
}

// abortConnection resets the connection of an HTTP/1.0 response without a length, so that the
// client does not take its end for the end of the body.
func (t *exchange) abortConnection() {
	conn, _, err := t.controller.Hijack()
	if err != nil {
		return // the server closes it
	}
	if abrupt, ok := conn.(interface{ SetLinger(int) error }); ok {
		_ = abrupt.SetLinger(0) // Close then sends a reset
	}
	_ = conn.Close() // its error changes nothing
}

// writeTrailers writes the trailers after the body.
func (t *exchange) writeTrailers(res *http.Response, announced int) {
	_ = t.controller.Flush() // so that the response is chunked
	h, prefix := t.w.Header(), ""
	if len(res.Trailer) != announced {
		prefix = http.TrailerPrefix
	}
	for name, values := range res.Trailer {
		h[prefix+name] = values
	}
}

// readFirstPart reads the first part of a body before the header is written. If this is the whole
// body, it reads its end as well. An error at this point is answered with a problem; a client
// whose connection ends without a response may send the request again.
func readFirstPart(res *http.Response, buf *[bufferSize]byte) (n int, err error) {
	if n, err = res.Body.Read(buf[:]); err == nil && int64(n) == res.ContentLength {
		var more [1]byte
		_, err = res.Body.Read(more[:])
	}
	return n, err
}

// A bodyCopy is the body of a response on its way to the client.
type bodyCopy struct {
	*exchange
	rest        int64 // bytes that were not sent; negative: unknown
	isSmall     bool  // one write, mostly
	isStreaming bool  // each part is flushed, also the last
	pace        pace
	armed       time.Time // when the timer was last set
}

// copyBody streams the body, of which n bytes were read. Unless the whole body arrives at once,
// each part is flushed.
func (t *exchange) copyBody(res *http.Response, buf *[bufferSize]byte, n int, err error, isStreaming bool) (event.AttemptOutcome, FailureReason) {
	length := res.ContentLength
	c := &bodyCopy{exchange: t, rest: length, isSmall: 0 <= length && length <= bufferSize, isStreaming: isStreaming, pace: t.newPace(), armed: time.Now()}
	_ = t.controller.SetWriteDeadline(c.pace.begin()) // the server's deadline counts from the start of the request
	if isStreaming && t.controller.Flush() != nil {
		return event.AttemptAbandoned, ClientDisconnected
	}
	for ; ; n, err = res.Body.Read(buf[:]) {
		if result, reason := c.send(buf[:n]); reason != NoFailure {
			return result, reason
		}
		switch {
		case err == nil:
		case errors.Is(err, io.EOF):
			if !c.isSmall {
				_ = t.controller.SetWriteDeadline(time.Now().Add(t.config.Grace)) // for trailers and the last chunk
			}
			return event.AttemptCompleted, NoFailure
		default:
			return t.bodyFailure(err)
		}
	}
}

// send sends a part of the body as the quotas permit it. What they permit is not held back for the
// rest of the part.
func (c *bodyCopy) send(part []byte) (event.AttemptOutcome, FailureReason) {
	for len(part) > 0 {
		n := len(part)
		if !c.meter.TryTake(n) {
			took, why := c.takeQuota(n)
			if why != event.None {
				return event.AttemptAbandoned, QuotaTimeout
			}
			n = took
			c.resetTimer()
			_ = c.controller.SetWriteDeadline(c.pace.begin())
		}
		if result, reason := c.write(part[:n]); reason != NoFailure {
			return result, reason
		}
		part = part[n:]
	}
	return event.AttemptCompleted, NoFailure
}

// write writes bytes that the quotas permit.
func (c *bodyCopy) write(part []byte) (event.AttemptOutcome, FailureReason) {
	c.trace.BytesDown.Add(uint64(len(part)))
	isWaiting := !c.isSmall
	if isWaiting {
		_ = c.controller.SetWriteDeadline(c.pace.begin())
		c.clientWait.begin(c.pace.since)
	}
	_, failed := c.w.Write(part)
	if c.rest -= int64(len(part)); failed == nil && (c.isStreaming || c.rest > 0) {
		failed = c.controller.Flush()
	}
	if errors.Is(failed, http.ErrBodyNotAllowed) {
		return event.AttemptTruncated, ProtocolError
	}
	if failed != nil {
		return event.AttemptAbandoned, ClientDisconnected
	}
	if c.isSmall = c.isSmall && c.rest == 0; c.isSmall {
		return event.AttemptCompleted, NoFailure
	}
	now := c.pace.end(len(part))
	if isWaiting {
		c.clientWait.end(now)
	}
	if now.Sub(c.armed) > c.config.StallTimeout/8 {
		c.armed = now
		c.timer.Reset(c.config.StallTimeout)
	}
	return event.AttemptCompleted, NoFailure
}

// bodyFailure returns which side broke a response off, and why.
func (t *exchange) bodyFailure(err error) (event.AttemptOutcome, FailureReason) {
	switch {
	case t.lost() != nil, t.r.Context().Err() != nil: // finish tells them apart
		return event.AttemptAbandoned, ClientDisconnected
	case errors.Is(context.Cause(t.ctx), errStalled):
		return event.AttemptTruncated, ResponseStalled
	case errors.Is(context.Cause(t.ctx), errNoResponseInTime) && t.isClientDeadline:
		return event.AttemptAbandoned, ClientDeadline
	case errors.Is(context.Cause(t.ctx), errNoResponseInTime):
		return event.AttemptTruncated, DeadlineExceeded
	}
	if reason := failureReason(err); !t.isEndedBySlowClient(reason) {
		return event.AttemptTruncated, reason
	}
	return event.AttemptAbandoned, ClientSlow
}
