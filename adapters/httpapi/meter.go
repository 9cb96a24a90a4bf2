package httpapi

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"macronode/core/event"
	"macronode/core/types"
)

// A meter counts the bytes of both bodies of a request, and holds the credit for more. It is used concurrently,
// and by the transport of an upstream after the request has ended.
type meter struct {
	ticket    types.Ticket
	credit    atomic.Int64
	forwarded atomic.Int64                   // bytes of the client that were forwarded
	tunnelled atomic.Int64                   // bytes sent to the client without Write
	refused   atomic.Pointer[event.Decision] // the first rejection of bytes
}

// TryTake takes n bytes from the credit. It returns false if the credit does not cover them.
func (k *call) TryTake(n int) bool {
	m := &k.meter
	for {
		have := m.credit.Load()
		if have < int64(n) {
			return false
		}
		if m.credit.CompareAndSwap(have, have-int64(n)) {
			return true
		}
	}
}

// promptly is how long bytes that may be forwarded wait for a decision on more, so that they are sent together.
const promptly = 10 * time.Millisecond

// Take takes 1 to n bytes, and waits until they may be forwarded. It returns the problem if they may not. If the
// quotas do not permit all of them at once, it takes fewer.
func (k *call) Take(n int) (took int, why event.Problem) {
	for {
		if took += k.takeCredit(n - took); took == n {
			return took, event.None
		}
		v, ok := k.reserveBytes(n-took, took > 0)
		switch {
		case !ok && took > 0:
			return took, event.None
		case !ok:
			return 0, event.Timeout // the request has ended
		case v.Problem != event.None:
			k.meter.refused.CompareAndSwap(nil, &v)
			return 0, v.Problem
		}
		k.meter.credit.Add(int64(v.Bytes))
	}
}

// takeCredit takes at most n bytes from the credit.
func (k *call) takeCredit(n int) int {
	for {
		have := k.meter.credit.Load()
		took := min(have, int64(n))
		if took <= 0 || k.meter.credit.CompareAndSwap(have, have-took) {
			return int(max(0, took))
		}
	}
}

// reserveBytes reserves bytes. ok is false if the request ends first, or if the decision is needed promptly and is
// not there: then the next call gets it.
func (k *call) reserveBytes(n int, isPrompt bool) (v event.Decision, ok bool) {
	ctx := k.r.Context()
	if isPrompt {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, promptly)
		defer cancel()
	}
	return k.Admission.ReserveBytes(ctx, k.meter.ticket, uint64(n))
}

// Wait waits until n more bytes may be forwarded, and returns the problem if they may not. It is called before
// they are forwarded.
func (k *call) Wait(n int) event.Problem {
	for n > 0 {
		took, why := k.Take(n)
		if why != event.None {
			return why
		}
		n -= took
	}
	return event.None
}

// writeMetered writes a part of a response as the quotas permit it, each write with a deadline of its own. The
// header, and what they permit, is not held back for the rest of the part.
func (k *call) writeMetered(p []byte) (written int, err error) {
	conn := http.NewResponseController(k.ResponseWriter)
	for written < len(p) {
		took, why := k.Take(len(p) - written)
		if why != event.None {
			return written, errCut
		}
		_ = conn.SetWriteDeadline(time.Now().Add(k.StreamWriteTimeout)) // without a deadline of its own, the connection has one
		n, err := k.Write(p[written : written+took])
		if written += n; err == nil && written < len(p) {
			err = conn.Flush()
		}
		if err != nil && !errors.Is(err, http.ErrNotSupported) {
			return written, err
		}
	}
	return written, nil
}

// Count counts bytes of the client that were forwarded.
func (k *call) Count(n int) { k.meter.forwarded.Add(int64(n)) }

// CountSent counts bytes that a tunnel has sent to the client.
func (k *call) CountSent(n int) { k.meter.tunnelled.Add(int64(n)) }

// bytesSent returns the bytes that were sent to the client.
func (k *call) bytesSent() uint64 { return k.sent + uint64(k.meter.tunnelled.Load()) }

// bytesForwarded returns the bytes of both bodies that were forwarded.
func (k *call) bytesForwarded() uint64 { return uint64(k.meter.forwarded.Load()) + k.bytesSent() }

// quotaError returns the problem of rejected bytes.
func (k *call) quotaError(why event.Problem) error {
	if v := k.meter.refused.Load(); v != nil {
		return problemDetail(why, rejectDetails[v.Reason])
	}
	return problem(why)
}

// recordQuotaRejection makes a rejection of bytes the verdict of the call, once.
func (k *call) recordQuotaRejection() {
	v := k.meter.refused.Swap(nil)
	if v == nil {
		return
	}
	v.Shadow |= k.verdict.Shadow
	k.verdict = *v
	k.Meter.Rejected(k.class, v.Reason)
	if k.status == 0 {
		k.setRateLimit()
	}
}

// metered is the body of a call. Read reserves the bytes before it returns them.
type metered struct{ *call }

func (k metered) Read(to []byte) (int, error) {
	n, err := k.r.Body.Read(to)
	switch {
	case err == nil:
	case errors.Is(err, io.EOF):
		k.bodyIsRead()
	default:
		err = cmp.Or(k.lossError(), err)
	}
	if n > 0 && !k.TryTake(n) {
		if why := k.Wait(n); why != event.None {
			return 0, k.quotaError(why)
		}
	}
	k.Count(n)
	return n, err
}
