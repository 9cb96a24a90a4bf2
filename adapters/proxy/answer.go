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

// answer gives an answer on as it comes.
func (t *trip) answer(res *http.Response) {
	t.reading.Store(true)
	t.timer.Reset(t.config.Silence)
	ending, how := event.AttemptAbandoned, Gone
	defer func() { t.over(ending, how) }()
	buf := buffers.Get().(*[size]byte)
	defer buffers.Put(buf)
	live := res.ContentLength < 0 || strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream")
	n, err := 0, error(nil)
	if !live {
		n, err = first(res, buf)
	}
	if err != nil && !errors.Is(err, io.EOF) { // nothing has left
		if ending, how = t.broken(err); ending == event.AttemptTruncated {
			t.refuse(event.BadGateway)
			return
		}
		panic(http.ErrAbortHandler)
	}
	h := t.w.Header()
	ids := idsOf(h)
	t.route.pass(h, res.Header)
	ids.put(h)
	if _, said := h["Content-Type"]; !said {
		h["Content-Type"] = nil // or the server would guess one
	}
	behind(res.Trailer, res.Header)
	announced := len(res.Trailer)
	if announced > 0 {
		var names []string
		for name := range res.Trailer {
			names = append(names, name)
		}
		h["Trailer"] = []string{strings.Join(names, ", ")}
	}
	t.w.WriteHeader(res.StatusCode)
	ending, how = t.copy(res, buf, n, err, live)
	if ending != event.AttemptCompleted {
		if rest := res.ContentLength; rest < 0 && !t.r.ProtoAtLeast(1, 1) {
			t.reset()
		}
		panic(http.ErrAbortHandler) // the client must see that it is not whole
	}
	if behind(res.Trailer, res.Header); len(res.Trailer) > 0 {
		t.trailers(res, announced)
	}
}

// ids are what an answer is found by, whatever the upstream says: the request id and the
// decision. Nil: there is none.
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

// reset ends a connection by which an answer of HTTP/1.0 ends, such that this is no end of
// it.
func (t *trip) reset() {
	conn, _, err := t.control.Hijack()
	if err != nil {
		return // it will be closed
	}
	if abrupt, ok := conn.(interface{ SetLinger(int) error }); ok {
		_ = abrupt.SetLinger(0) // so that its close is a reset
	}
	_ = conn.Close() // its error changes nothing
}

// trailers are known when the body is over.
func (t *trip) trailers(res *http.Response, announced int) {
	_ = t.control.Flush() // so that it is chunked
	h, prefix := t.w.Header(), ""
	if len(res.Trailer) != announced {
		prefix = http.TrailerPrefix
	}
	for name, values := range res.Trailer {
		h[prefix+name] = values
	}
}

// first is what there is of a body before the header leaves: its first part, and of one that
// is no longer its end. Whose client was told nothing is told that it failed: a client whose
// connection ends without a word may send the request again.
func first(res *http.Response, buf *[size]byte) (n int, err error) {
	if n, err = res.Body.Read(buf[:]); err == nil && int64(n) == res.ContentLength {
		var more [1]byte
		_, err = res.Body.Read(more[:])
	}
	return n, err
}

// copy moves the body, of which n bytes are there. What does not come at once leaves as soon
// as it is there.
func (t *trip) copy(res *http.Response, buf *[size]byte, n int, err error, live bool) (event.AttemptOutcome, Symptom) {
	rest := res.ContentLength
	small := 0 <= rest && rest <= size // there is one write of it, or few
	pace, armed := t.pace(), time.Now()
	_ = t.control.SetWriteDeadline(pace.begin()) // the server's counts from the request on
	if live && t.control.Flush() != nil {
		return event.AttemptAbandoned, Gone
	}
	for ; ; n, err = res.Body.Read(buf[:]) {
		if n > 0 {
			if !t.meter.May(n) {
				if t.pass(n) != event.None {
					return event.AttemptAbandoned, Held
				}
				t.wait()
				_ = t.control.SetWriteDeadline(pace.begin())
			}
			t.course.Down.Add(uint64(n))
			if !small {
				_ = t.control.SetWriteDeadline(pace.begin())
			}
			_, failed := t.w.Write(buf[:n])
			if rest -= int64(n); failed == nil && (live || rest > 0) {
				failed = t.control.Flush()
			}
			if errors.Is(failed, http.ErrBodyNotAllowed) {
				return event.AttemptTruncated, Malformed
			}
			if failed != nil {
				return event.AttemptAbandoned, Gone
			}
			if !small {
				if now := pace.end(n); now.Sub(armed) > t.config.Silence/8 {
					armed = now
					t.timer.Reset(t.config.Silence)
				}
			}
		}
		switch {
		case err == nil:
		case errors.Is(err, io.EOF):
			if !small {
				_ = t.control.SetWriteDeadline(time.Now().Add(t.config.Grace)) // for what ends it
			}
			return event.AttemptCompleted, Fine
		default:
			return t.broken(err)
		}
	}
}

// broken is who broke an answer off, and how.
func (t *trip) broken(err error) (event.AttemptOutcome, Symptom) {
	switch {
	case t.r.Context().Err() != nil:
		return event.AttemptAbandoned, Gone
	case errors.Is(context.Cause(t.ctx), errSilent):
		return event.AttemptTruncated, Silent
	}
	return event.AttemptTruncated, symptom(err)
}
