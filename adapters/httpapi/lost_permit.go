package httpapi

import (
	"context"
	"net/http"
	"sync"
	"time"

	"macronode/core/event"
)

// A Holder hears that it has lost its permit, and why.
type Holder = interface{ LosePermit(why event.RejectReason) }

// lostPermitTime is how long a call without a permit may take for the rest of its response, or for the whole one if it has not begun.
const lostPermitTime = time.Second

// lostPermit is whether and why a call has lost its permit. The deadlines of its connection are set under its lock, so that none is
// changed after the call has ended: the connection may then serve another one.
type lostPermit struct {
	mu         sync.Mutex
	isOver     bool // the call has ended
	isBodyRead bool // nothing is left to read
	hasBegun   bool // the response has
	stopsReads bool // its connection reads nothing more
	why        event.RejectReason
	ends       time.Time // of the response; zero: it has the time of any other
	holder     Holder    // ends what the call waits for; nil: nothing
}

// LosePermit ends a call that has lost its permit: it reads nothing more, it waits for nothing but a decision of the node, and its client
// has lostPermitTime to take what is written.
func (k *call) LosePermit(why event.RejectReason) {
	w := &k.lostPermit
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.isOver {
		return
	}
	w.why = why
	if w.holder != nil {
		w.holder.LosePermit(why)
	}
	if !w.isBodyRead { // otherwise the server would take the end of reading for that of the client, and cancel a decision
		w.stopsReads = true
		_ = http.NewResponseController(k.ResponseWriter).SetReadDeadline(time.Unix(1, 0)) // a writer without deadlines has limits of its own
	}
	if w.hasBegun || w.stopsReads {
		k.limitResponse()
	}
}

// limitResponse limits the time of the response. The caller has the lock.
func (k *call) limitResponse() {
	k.lostPermit.ends = time.Now().Add(lostPermitTime)
	_ = http.NewResponseController(k.ResponseWriter).SetWriteDeadline(k.lostPermit.ends)
}

// OnLostPermit sets what a call that loses its permit is to end. It may have lost it before.
func (k *call) OnLostPermit(h Holder) {
	w := &k.lostPermit
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.holder = h; w.why != event.Admitted {
		h.LosePermit(w.why)
	}
}

// A wait is a context that a call waits for.
type wait context.CancelFunc

// LosePermit ends it.
func (end wait) LosePermit(event.RejectReason) { end() }

// waiting returns the context of a wait for at most d. It ends early if the call loses its permit.
func (k *call) waiting(d time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(k.r.Context(), d)
	k.OnLostPermit(wait(cancel))
	return ctx, cancel
}

// bodyIsRead notes that nothing is left to read.
func (k *call) bodyIsRead() {
	k.lostPermit.mu.Lock()
	defer k.lostPermit.mu.Unlock()
	k.lostPermit.isBodyRead = true
}

// begins notes that the response begins, and reports whether the call has lost its permit.
func (k *call) begins() (isLost bool) {
	w := &k.lostPermit
	w.mu.Lock()
	defer w.mu.Unlock()
	if isLost = w.why != event.Admitted; isLost && !w.hasBegun {
		k.limitResponse()
	}
	w.hasBegun = true
	return isLost
}

// SetReadDeadline is for http.ResponseController. A call that has lost its permit reads nothing more.
func (k *call) SetReadDeadline(at time.Time) error {
	w := &k.lostPermit
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopsReads {
		at = time.Unix(1, 0)
	}
	return http.NewResponseController(k.ResponseWriter).SetReadDeadline(at)
}

// SetWriteDeadline is for http.ResponseController. A call that has lost its permit writes until it ends.
func (k *call) SetWriteDeadline(at time.Time) error {
	w := &k.lostPermit
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.ends.IsZero() && (at.IsZero() || at.After(w.ends)) {
		at = w.ends
	}
	return http.NewResponseController(k.ResponseWriter).SetWriteDeadline(at)
}

// lossError returns the problem of a call that has lost its permit; nil: it has it.
func (k *call) lossError() error {
	k.lostPermit.mu.Lock()
	defer k.lostPermit.mu.Unlock()
	if why := k.lostPermit.why; why != event.Admitted {
		return problemDetail(why.Problem(), rejectDetails[why])
	}
	return nil
}

// noteLoss notes as the decision why the call has lost its permit. It reports whether it has.
func (k *call) noteLoss() bool {
	k.lostPermit.mu.Lock()
	defer k.lostPermit.mu.Unlock()
	why := k.lostPermit.why
	if why == event.Admitted {
		return false
	}
	if k.verdict.Reason != why {
		k.verdict.Problem, k.verdict.Reason = why.Problem(), why
		k.Meter.Rejected(k.class, why)
	}
	return true
}

// endPermit ends the time in which the call can lose its permit; isCut: its response was cut. A response that was complete is no
// rejection, although the permit was lost meanwhile. It reports whether the connection must end: one of HTTP/1 has no more requests after
// a read deadline.
func (k *call) endPermit(isCut bool) (cut bool) {
	w := &k.lostPermit
	w.mu.Lock()
	w.isOver, w.holder = true, nil
	why, stopsReads := w.why, w.stopsReads
	w.mu.Unlock()
	if why == event.Admitted {
		return false
	}
	if isCut || stopsReads || k.trace != nil || k.problem == why.Problem() {
		k.noteLoss()
	}
	return stopsReads && k.r.ProtoMajor == 1 && k.Header().Get("Connection") != closes[0]
}
