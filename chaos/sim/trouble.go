package sim

import (
	"time"

	"macronode/core/event"
	"macronode/core/types"
)

// troubles are what may befall a node, each with the odds that this run has drawn for it.
// What comes of it is seen by its probes: see Probes.
var troubles = [...]struct {
	name string
	odds func(*odds) *int
	do   func(*World)
}{
	{"sync", func(o *odds) *int { return &o.sync }, func(w *World) { w.disk.FailSync = true }},
	{"dir", func(o *odds) *int { return &o.dir }, func(w *World) { w.disk.FailDir = true }},
	{"write", func(o *odds) *int { return &o.write }, func(w *World) { w.disk.FailWrite = true }},
	{"read", func(o *odds) *int { return &o.read }, func(w *World) { w.disk.FailRead = true }},
	{"full", func(o *odds) *int { return &o.full }, func(w *World) {
		if w.disk.Full = !w.disk.Full; !w.disk.Full {
			w.disk.Leave(plenty)
		}
	}},
	{"tight", func(o *odds) *int { return &o.full }, func(w *World) { w.disk.Leave(int64(w.c.Choose("fault/left", 3000))) }},
	{"reserve", func(o *odds) *int { return &o.full }, func(w *World) { w.step(event.DiskFree{Bytes: uint64(w.c.Choose("fault/free", 2)) << 20}) }},
	{"slow", func(o *odds) *int { return &o.slow }, (*World).slow},
	{"pause", func(o *odds) *int { return &o.pause }, (*World).pause},
	{"drain", func(o *odds) *int { return &o.drain }, (*World).drains},
	{"clock", func(o *odds) *int { return &o.clock }, (*World).clocks},
}

// trouble is a move of nobody's friend.
func (w *World) trouble() {
	if w.odd("crash", 12, w.odds.crash) {
		if w.c.Choose("crash/kill", 2) == 1 {
			w.Saw["killed"]++ // the process goes, what was written stays
			w.tell(decider, nobody, trouble, "killed")
			w.disk.Fuse = -1
			w.stops(true)
			w.boot()
			return
		}
		w.disk.Fuse = w.c.Choose("crash/fuse", 10)
		w.tell(disk, nobody, trouble, "power for %d operations more", w.disk.Fuse)
		if w.disk.Dead() {
			w.powerLoss()
		}
		return
	}
	t := troubles[w.c.Choose("fault/which", len(troubles))]
	if w.odd("fault", 8, *t.odds(&w.odds)) {
		w.tell(disk, nobody, trouble, "trouble: %s", t.name)
		t.do(w)
	}
}

func (w *World) powerLoss() {
	w.Saw["power lost"]++
	w.tell(disk, nobody, trouble, "the power is lost")
	w.stops(false)
	w.disk.Crash(w.c)
	w.kept.Crash(w.c)
	w.boot()
}

// slow: the disk has what was written, and takes its time. The node ticks on.
func (w *World) slow() {
	w.write()
	for range 1 + w.c.Choose("slow/ticks", 4) {
		w.pass(time.Duration(1+w.c.Choose("slow/gone", 3000)) * time.Millisecond)
	}
}

// drains: somebody tells the node to end, while all go on asking. Who starts it again comes
// when it has ended.
func (w *World) drains() {
	w.Saw["told to end while all ask"]++
	w.draining = true
	w.step(event.Signal{Kind: []event.SignalKind{event.Drain, event.Drain, event.Abort}[w.c.Choose("drain/how", 3)]})
}

// ended starts a node again that has ended.
func (w *World) ended() {
	var s event.Status
	if w.node.Status(&s); s.Phase == types.Stopped {
		w.Saw["ended and started again"]++
		w.boot()
	}
}

// pause: the process stands still, and does not know. Whoever waits has waited too long
// when it wakes.
func (w *World) pause() {
	w.gone(time.Duration(w.c.Choose("pause/gone", 30_000)) * time.Millisecond)
	w.asleep = true
}

// hurt counts what the disk has done.
func (w *World) hurt(how, name string) {
	w.Saw["disk: "+how]++
	if w.stop.hurts != nil {
		w.stop.hurts[how]++
	}
	w.tell(disk, nobody, trouble, "%s %s", how, name)
}
