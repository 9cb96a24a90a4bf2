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

// calm ends all trouble: whoever asks is answered, the last frame has a successor that
// vouches for it, and nothing is under way any more.
func (w *World) calm() {
	w.disk.Fuse, w.disk.FailRead, w.disk.FailWrite, w.disk.FailSync, w.disk.FailDir = -1, false, false, false, false
	w.disk.Leave(plenty)
	w.odds, w.goal, w.now.Synced, w.rate, w.swayed = odds{}, goal{}, true, even, true
	if !w.disk.Dead() {
		w.beat("calm: all leave", w.empties)
	}
	w.beat("calm: a start", w.boot)
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
			w.settle()
			w.folds(math.MaxInt)
			w.table() // or keys would never leave
		})
		if quiet++; w.busy() {
			quiet = 0
		}
	}
	for n := 0; n < 3 || n < patience && w.promise.records > 0; n++ {
		w.beat("calm", func() {
			w.pass(time.Second)
			w.settle()
			w.turn(0) // what the index said
		})
	}
	if stuck := w.Settled(); len(stuck) > 0 {
		what, _, _ := strings.Cut(stuck[0], ":")
		w.fail("stuck "+what, "%s", strings.Join(stuck, "\n"))
	}
}

// patience is how many rounds of the calm may go by until nobody waits: of two seconds
// each, they are longer than a doubted clock and then the life of a key.
const patience = 60

// busy reports that somebody waits, or that the node is not what it should be.
func (w *World) busy() bool {
	var s event.Status
	w.node.Status(&s)
	return !s.Ready || slices.ContainsFunc(w.clients, func(c *client) bool { return c.want != nil })
}

// plenty is room that is never used up.
const plenty = int64(1) << 40

// Settled names what has not come to its end after the calm: nothing, if all is well.
func (w *World) Settled() (stuck []string) {
	note := func(is bool, what, format string, args ...any) {
		if is {
			stuck = append(stuck, what+": "+fmt.Sprintf(format, args...))
		}
	}
	for _, c := range w.clients {
		note(c.want != nil, "client", "%s is never answered", c.mark)
	}
	note(len(w.asked) > 0, "reply", "%d requests were let in and never answered", len(w.asked))
	note(len(w.twins) > 0, "twin", "%d requests that were sent twice were answered once", len(w.twins))
	note(len(w.clerk.admin) > 0, "clerk", "%d times the boss waits", len(w.clerk.admin))
	note(len(w.enter)+len(w.late) > 0, "queue", "%d requests and %d events are not stepped", len(w.enter), len(w.late))
	note(len(w.next.Frames) > 0 || w.inSync != nil || len(w.synced) > 0, "flush", "frames are not written, synced and folded")
	note(w.promise.records > 0, "voucher", "nothing vouches for the last frame")
	var s event.Status
	w.node.Status(&s)
	note(s.LSN != s.Durable || s.Durable != s.Applied, "frame", "last %v, durable %v, folded %v", s.LSN, s.Durable, s.Applied)
	note(s.HeldReplies > 0, "held", "%d replies wait", s.HeldReplies)
	note(!s.Ready, "node", "is %v, unmet %v, ailing %v", s.Phase, s.WaitingFor, s.DegradedBy)
	return stuck
}

// settle carries all that is under way to its end.
func (w *World) settle() {
	for range 8 {
		w.turn(4)
		w.write()
		w.sync()
		w.fold()
	}
	w.indexing()
}

// end drains the node while all go on asking: everybody who asked is answered, and it stops
// in time.
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
		w.beat("drain", w.settle)
		w.node.Status(&s)
	}
	if len(w.asked) > 0 {
		w.fail("never-answered", "%d requests were let in and never answered", len(w.asked))
	}
}
