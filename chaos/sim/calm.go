package sim

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"macronode/core/event"
	"macronode/core/types"
)

// calm ends all trouble: every request is answered, a heartbeat follows the last frame, and
// nothing is in progress.
func (w *World) calm() {
	w.disk.Fuse, w.disk.FailRead, w.disk.FailWrite, w.disk.FailSync, w.disk.FailDir = -1, false, false, false, false
	w.disk.Leave(plenty)
	start := w.boot
	if w.storage != nil && w.storage.files != nil {
		w.storage.files.heals()
		start = w.powerLoss // shows which syncs had no effect
	}
	w.odds, w.goal, w.now.Synced, w.rate, w.swayed = odds{}, goal{}, true, even, true
	if !w.disk.Dead() {
		w.beat("calm: all leave", w.empties)
	}
	w.beat("calm: a start", start)
	for quiet := 0; quiet < 5 && w.calmed < patience; w.calmed++ {
		if w.err != nil {
			return
		}
		w.beat("calm", func() {
			for c := range types.NumServices {
				w.step(event.ServiceUp{Service: c})
			}
			w.pass(2 * time.Second)
			w.settle()
			for _, c := range w.clients {
				c.insist(w)
			}
			for _, p := range w.planes {
				p.insist(w)
			}
			w.insistExports()
			w.settle()
			w.folds(math.MaxInt)
			w.table() // otherwise keys would never be evicted
		})
		if quiet++; w.busy() {
			quiet = 0
		}
	}
	for n := 0; n < 3 || n < patience && (w.promise.records > 0 || w.exportsBusy()); n++ {
		w.beat("calm", func() {
			w.pass(time.Second)
			w.settle()
			w.insistExports() // of what was sealed meanwhile
			w.turn(0)         // the index's answer
		})
	}
	if stuck := w.Settled(); len(stuck) > 0 {
		what, _, _ := strings.Cut(stuck[0], ":")
		w.fail("stuck "+what, "%s", strings.Join(stuck, "\n"))
	}
}

// patience is the largest number of rounds of the calm, of two seconds each: longer than the
// distrust of the clock plus the TTL of a key.
const patience = 60

// busy reports whether a request waits, or the node is not in its normal state.
func (w *World) busy() bool {
	var s event.Status
	w.node.Status(&s)
	return !s.Ready || w.exportsBusy() || slices.ContainsFunc(w.planes, planeWorkload.busy) || slices.ContainsFunc(w.clients, func(c *client) bool { return c.want != nil })
}

// plenty is space that is never used up.
const plenty = int64(1) << 40

// Settled returns what has not ended after the calm; nothing if all is well.
func (w *World) Settled() (stuck []string) {
	note := func(is bool, what, format string, args ...any) {
		if is {
			stuck = append(stuck, what+": "+fmt.Sprintf(format, args...))
		}
	}
	for _, c := range w.clients {
		note(c.want != nil, "client", "%s is never answered", c.mark)
	}
	for _, p := range w.planes {
		note(p.busy(), p.name(), "a %s client is never answered", p.name())
	}
	note(w.exportsBusy(), "exports", "something is not exported")
	note(len(w.asked) > 0, "reply", "%d requests were let in and never answered", len(w.asked))
	note(len(w.copies) > 0, "twin", "%d requests that were sent twice were answered once", len(w.copies))
	note(len(w.clerk.admin) > 0, "clerk", "%d times the boss waits", len(w.clerk.admin))
	note(len(w.enter)+len(w.late) > 0, "queue", "%d requests and %d events are not stepped", len(w.enter), len(w.late))
	note(len(w.next.Frames) > 0 || w.inSync != nil || len(w.synced) > 0, "flush", "frames are not written, synced and folded")
	note(w.promise.records > 0, "voucher", "no mark proves that the last frame is durable")
	var s event.Status
	w.node.Status(&s)
	note(s.LSN != s.Durable || s.Durable != s.Applied, "frame", "last %v, durable %v, folded %v", s.LSN, s.Durable, s.Applied)
	trusted := !s.DegradedBy.Has(types.ClockUntrusted)
	note(w.usage != nil && trusted && w.usage.oracle.isDue(s.At), "seal", "usage is due at %d, and not sealed", s.At)
	note(s.HeldReplies > 0, "held", "%d replies wait", s.HeldReplies)
	note(!s.Ready, "node", "is %v, unmet %v, ailing %v", s.Phase, s.WaitingFor, s.DegradedBy)
	return stuck
}

// settle finishes everything in progress.
func (w *World) settle() {
	for range 8 {
		w.turn(4)
		w.write()
		w.sync()
		w.fold()
	}
	w.indexing()
}

// end drains the node while clients continue: every request is answered, and the node stops in
// time.
func (w *World) end() {
	for _, c := range w.clients {
		c.insist(w)
	}
	began := w.now.Mono
	w.beat("drain", func() { w.step(event.Signal{Kind: event.Drain}) })
	var s event.Status
	for s.Phase != types.Stopped && w.err == nil {
		if w.pass(100 * time.Millisecond); w.now.Mono > began.Add(5*time.Second) {
			w.fail("drain-without-end", "a drain without end: %+v", s)
		}
		if w.node.Status(&s); s.Phase == types.Stopped {
			break
		}
		for _, c := range w.clients {
			c.move(w)
		}
		if w.exports != nil {
			w.exportMove()
			enter := w.usage.enter // before the listener is down: then the node stops
			w.usage.enter = nil
			w.step(enter...)
		}
		switch {
		case w.usage == nil:
		case w.usage.prepaid != nil:
			w.usage.prepaid.recorder.flush(w)
		case w.usage.charger != nil:
			w.usage.meter.move(w)
		}
		w.beat("drain", w.settle)
		w.node.Status(&s)
	}
	for _, p := range w.planes {
		if n := p.unanswered(); n > 0 {
			w.fail("never-answered", "%d requests of %s clients were let in and never answered", n, p.name())
		}
	}
	if len(w.asked) > 0 {
		w.fail("never-answered", "%d requests were let in and never answered", len(w.asked))
	}
}
