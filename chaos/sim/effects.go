package sim

import (
	"time"

	"macronode/chaos/world"
	nodeclock "macronode/core/clock"
	"macronode/core/event"
	"macronode/core/types"
)

// Effects of faults: what the node did differently because of a fault. A probe counts effects,
// because a fault without an effect tests nothing.

// stopped is how the process or the power ended, until the next process has recovered.
type stopped struct {
	killed  bool
	written types.LSN      // the last written frame
	durable types.LSN      // the last synced frame
	hurts   map[string]int // losses of the disk by kind
}

// stops records the written frames when the process or the power ends.
func (w *World) stops(killed bool) {
	w.stop = stopped{killed: killed, written: w.promise.durable, durable: w.promise.durable, hurts: map[string]int{}}
	if n := len(w.inSync); n > 0 {
		w.stop.written = w.inSync[n-1].LSN
	}
}

// lostWith are the effects of a loss if it was the only kind.
var lostWith = map[string]string{
	world.WriteLost:  "frames are lost with their write",
	world.WriteMixed: "frames are lost of a write in parts",
}

// names counts files that are created again because a crash lost their name.
func (w *World) names(op, name string) {
	lost := w.Saw["disk: "+world.NameLost]
	switch op {
	case "create":
		if was, made := w.made[name]; made && was < lost {
			w.Saw["a file whose name was lost is created again"]++
		}
		w.made[name] = lost
	case "remove":
		delete(w.made, name)
	}
}

// recovered counts the effects of the last crash.
func (w *World) recovered(last types.LSN) {
	s := w.stop
	w.stop = stopped{}
	if s.killed && s.written > s.durable && last >= s.written {
		w.Saw["killed, and unsynced data is there"]++
	}
	for kind, effect := range lostWith { //nolint:maporder // at most one of them is the only kind
		if len(s.hurts) == 1 && s.hurts[kind] > 0 && last < s.written {
			w.Saw[effect]++
		}
	}
}

// skewed counts the effects of a clock that moved between two processes.
func (w *World) skewed() {
	by := w.skew
	w.skew = 0
	var s event.Status
	switch w.node.Status(&s); {
	case by < 0 && s.Offset < -time.Second:
		w.Saw["started with a clock behind its journal"]++
	case by > 0 && s.DegradedBy.Has(types.ClockUntrusted):
		w.Saw["started with a clock too far ahead"]++
	}
}

// staysWithoutSource advances time by more than SteadyFor, if an untrusted clock has lost its
// source.
func (w *World) staysWithoutSource() {
	if _, s := w.trace.Around(); w.now.Synced || !s.DegradedBy.Has(types.ClockUntrusted) {
		return
	}
	for range 4 {
		w.gone(nodeclock.SteadyFor / 2)
		w.asleep, w.swayed = true, true
		w.step(event.Tick{})
		w.measures()
	}
	w.asleep = false
}

// measures counts the effects of a wrong clock at a tick.
func (w *World) measures() {
	_, s := w.trace.Around()
	switch {
	case w.rate == 0 && s.Offset < 0:
		w.Saw["the machine's clock stands still, the node's time advances"]++
	case w.rate < even && s.Offset < 0:
		w.Saw["the clock is slow, and the time is ahead of it"]++
	case w.rate > 105 && s.Offset > 0: // faster than the node's clock may follow
		w.Saw["the clock is fast, and the time is behind it"]++
	}
	if w.now.Synced || !s.DegradedBy.Has(types.ClockUntrusted) {
		w.unsourced = 0
		return
	}
	if w.unsourced == 0 {
		w.unsourced = w.now.Mono
	}
	if w.unsourced.Add(nodeclock.SteadyFor) < w.now.Mono {
		w.Saw["a clock without its source stays doubted"]++
	}
}
