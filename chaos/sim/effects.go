package sim

import (
	"time"

	"macronode/chaos/world"
	nodeclock "macronode/core/clock"
	"macronode/core/event"
	"macronode/core/types"
)

// Effects of faults: what the node did otherwise because of a fault. A probe counts an effect, for
// a fault that strikes and changes nothing shows nothing.

// stopped is how the process or the power went, until the next process has recovered.
type stopped struct {
	killed  bool
	written types.LSN      // the last frame that the disk was given
	durable types.LSN      // the last of them that was synced
	hurts   map[string]int // what the disk lost, by kind
}

// stops notes what was written when the process or the power goes.
func (w *World) stops(killed bool) {
	w.stop = stopped{killed: killed, written: w.promise.durable, durable: w.promise.durable, hurts: map[string]int{}}
	if n := len(w.inSync); n > 0 {
		w.stop.written = w.inSync[n-1].LSN
	}
}

// lostWith are the effects of a loss of the disk, where it was the only kind.
var lostWith = map[string]string{
	world.WriteLost:  "frames are lost with their write",
	world.WriteMixed: "frames are lost of a write in parts",
}

// names counts a file that is made again because a crash took its name.
func (w *World) names(op, name string) {
	lost := w.Saw["disk: "+world.NameLost]
	switch op {
	case "create":
		if was, made := w.made[name]; made && was < lost {
			w.Saw["a file whose name was lost is made again"]++
		}
		w.made[name] = lost
	case "remove":
		delete(w.made, name)
	}
}

// recovered counts what the end of the last process, or of the power, has cost.
func (w *World) recovered(last types.LSN) {
	s := w.stop
	w.stop = stopped{}
	if s.killed && s.written > s.durable && last >= s.written {
		w.Saw["killed, and what was not durable is there"]++
	}
	for kind, effect := range lostWith { //nolint:maporder // at most one of them is the only kind
		if len(s.hurts) == 1 && s.hurts[kind] > 0 && last < s.written {
			w.Saw[effect]++
		}
	}
}

// skewed counts what a clock that was moved between two processes does to the next one.
func (w *World) skewed() {
	by := w.skew
	w.skew = 0
	var s event.Status
	switch w.node.Status(&s); {
	case by < 0 && s.Offset < -time.Second:
		w.Saw["began before its journal's time, and the time stands its ground"]++
	case by > 0 && s.DegradedBy.Has(types.ClockUntrusted):
		w.Saw["began too far behind the clock to believe it"]++
	}
}

// staysWithoutSource lets more time pass than a steady clock needs to be believed, if a doubted clock
// has just lost its source.
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

// measures counts what a wrong clock does to the time of the node, at a tick.
func (w *World) measures() {
	_, s := w.trace.Around()
	switch {
	case w.rate == 0 && s.Offset < 0:
		w.Saw["the clock stands, and the time goes on"]++
	case w.rate < even && s.Offset < 0:
		w.Saw["the clock is slow, and the time is ahead of it"]++
	case w.rate > 105 && s.Offset > 0: // more than the time may follow
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
