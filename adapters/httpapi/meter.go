package httpapi

import (
	"sync/atomic"

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

// Wait waits until n more bytes may be forwarded, and returns the problem if they may not. It is called before
// they are forwarded.
func (k *call) Wait(n int) event.Problem {
	m := &k.meter
	for rest := int64(n); rest > 0; {
		have := m.credit.Load()
		took := min(have, rest)
		if took > 0 {
			if m.credit.CompareAndSwap(have, have-took) {
				rest -= took
			}
			continue
		}
		v, ok := k.Admission.ReserveBytes(k.r.Context(), m.ticket, uint64(rest))
		switch {
		case !ok:
			return event.Timeout // the request has ended
		case v.Problem != event.None:
			m.refused.CompareAndSwap(nil, &v)
			return v.Problem
		}
		m.credit.Add(int64(v.Bytes))
	}
	return event.None
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
	if n > 0 && !k.TryTake(n) {
		if why := k.Wait(n); why != event.None {
			return 0, k.quotaError(why)
		}
	}
	k.Count(n)
	return n, err
}
