package httpapi

import (
	"sync/atomic"

	"macronode/core/event"
	"macronode/core/types"
)

// A meter is how many bytes of a request's bodies may go on, and went. Both bodies use it at
// once, and what an upstream's transport still reads when the request is over.
type meter struct {
	ticket  types.Ticket
	credit  atomic.Int64
	up      atomic.Int64                   // bytes that went, but those of Write
	refused atomic.Pointer[event.Decision] // what could not go on, and why
}

// May takes n bytes from what may go on, if they may without asking.
func (k *call) May(n int) bool {
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

// Pass waits until n more bytes may go on, or says why they may not. It is asked before they
// do.
func (k *call) Pass(n int) event.Problem {
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
		v, ok := k.Gate.Stream(k.r.Context(), m.ticket, uint64(rest))
		switch {
		case !ok:
			return event.Timeout // nobody is there any more
		case v.Problem != event.None:
			m.refused.CompareAndSwap(nil, &v)
			return v.Problem
		}
		m.credit.Add(int64(v.Bytes))
	}
	return event.None
}

// Took counts bytes that went, and that nobody has seen Write.
func (k *call) Took(n int) { k.meter.up.Add(int64(n)) }

// went is how many bytes went, of both bodies.
func (k *call) went() uint64 { return uint64(k.meter.up.Load()) + k.sent }

// held is the refusal of a part.
func (k *call) held(why event.Problem) error {
	if v := k.meter.refused.Load(); v != nil {
		return because(why, refused[v.Reason])
	}
	return problem(why)
}

// heldBack tells a call that a part of its bodies could not go on, once.
func (k *call) heldBack() {
	v := k.meter.refused.Swap(nil)
	if v == nil {
		return
	}
	v.Shadow |= k.verdict.Shadow
	k.verdict = *v
	k.Meter.Barred(k.of, v.Reason)
	if k.status == 0 {
		k.limits()
	}
}

// metered is the body of a call, and asks before it hands anything on.
type metered struct{ *call }

func (k metered) Read(to []byte) (int, error) {
	n, err := k.r.Body.Read(to)
	if n > 0 && !k.May(n) {
		if why := k.Pass(n); why != event.None {
			return 0, k.held(why)
		}
	}
	k.Took(n)
	return n, err
}
