package sim

import (
	"time"

	"macronode/core/event"
	"macronode/core/types"
)

const even = 100 // percent: the wall clock runs at the speed of time

// while is a move: time passes.
func (w *World) while() {
	longest := []int{50, 50, 150, 250, 1200, 4000}[w.c.Choose("gone/longest", 6)]
	w.pass(time.Duration(w.c.Choose("gone", longest)) * time.Millisecond)
}

// gone advances time. The wall clock runs at its own rate.
func (w *World) gone(for_ time.Duration) {
	w.now.Mono += types.Instant(for_)
	w.now.Wall += types.Time(int64(for_/time.Millisecond) * int64(w.rate) / even)
	w.swayed = w.swayed || w.rate != even
}

// pass advances time, with a Tick at the end. Before Due a Tick does nothing; at Due it does
// something, or moves Due.
func (w *World) pass(gone time.Duration) {
	if w.odd("clock", 40, w.odds.clock) {
		w.swayed = true
		w.clocks()
	}
	w.gone(gone)
	due, any := w.node.Due()
	swayed := w.swayed // which Due could not predict
	lsn, answered := w.node.LSN(), len(w.asked)
	w.step(event.Tick{})
	acted := w.node.LSN() != lsn || len(w.asked) != answered || len(w.out.ServiceCommands) > 0 || len(w.out.Decisions) > 0
	if acted && !swayed && (!any || due > w.now.Mono) {
		w.fail("tick-before-due", "a tick acted at %v, due %v %v: %+v", w.now.Mono, due, any, w.out)
	}
	if next, again := w.node.Due(); again && !acted && any && due <= w.now.Mono && next <= w.now.Mono {
		w.fail("tick-undone", "due %v, and still due %v after a tick that did nothing at %v", due, next, w.now.Mono)
	}
	if acted && any && due.Add(3*time.Second) < w.now.Mono {
		w.Saw["a tick that was late"]++
	}
	w.asleep = false
	w.degradedBy()
}

// idles lets time pass in which nothing happens.
func (w *World) idles(long time.Duration) {
	w.idled += long
	w.pass(long)
}

// degradedBy counts the node's conditions.
func (w *World) degradedBy() {
	_, s := w.trace.Around()
	s.DegradedBy.Each(func(c types.Condition) bool {
		w.Saw["degraded: "+c.String()]++
		return true
	})
	if s.Fault != 0 {
		w.Saw["fault: "+s.Fault.String()]++
	}
	if s.PermitsRevoked > w.taken {
		w.Saw["a permit was taken back"]++
	}
	if s.OpenCircuits == [event.NumCallers]uint64{} && w.broken != s.OpenCircuits {
		w.Saw["upstream: closed again"]++
	}
	w.taken, w.broken = s.PermitsRevoked, s.OpenCircuits
	w.measures()
	if s.Offset < -time.Second {
		w.Saw["time stood its ground"]++
	}
}

// clocks changes the machine's clock.
func (w *World) clocks() {
	switch w.c.Choose("clock/how", 5) {
	case 0, 4:
		by := around(w.c.Choose("clock/skew", 40_000))
		w.jump("clock jumped", by)
		w.now.Synced = w.c.Choose("clock/lost", 4) != 1
	case 1:
		w.rate = []int{even, 0, 90, 110, 300}[w.c.Choose("clock/rate", 5)]
		w.Saw[map[int]string{even: "clock goes right", 0: "clock stopped", 90: "clock drifts behind", 110: "clock drifts ahead", 300: "clock runs"}[w.rate]]++
		w.tell(decider, noLane, trouble, "the clock runs at %d of %d", w.rate, even)
	case 2:
		w.now.Synced = !w.now.Synced
		w.Saw["clock lost or found its source"]++
		w.staysWithoutSource()
	case 3:
		w.jump("clock jumped", 1000*around(w.c.Choose("clock/far", 20_000)))
	}
}

// jump moves the wall clock by a number of milliseconds.
func (w *World) jump(what string, by int) {
	w.Saw["clock moved"]++
	w.swayed = true
	switch {
	case by > 0:
		w.Saw[what+" ahead"]++
	case by < 0:
		w.Saw[what+" back"]++
	}
	w.now.Wall = max(1, w.now.Wall+types.Time(by))
	w.tell(decider, noLane, trouble, "the clock moves by %d ms", by)
}
