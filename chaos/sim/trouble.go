package sim

import (
	"time"

	"macronode/core/event"
	"macronode/core/types"
)

// troubles are the faults, each with its odds in this run. Their effects are counted by probes.
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
	{"reserve", func(o *odds) *int { return &o.full }, func(w *World) { w.step(event.DiskFree{Bytes: []uint64{0, 1 << 20, 512}[w.c.Choose("fault/free", 3)]}) }},
	{"objects", func(o *odds) *int { return &o.read }, func(w *World) {
		is := w.c.Choose("fault/objects", 4) // none, unreadable, unwritable, or both
		w.step(event.ObjectFiles{Unreadable: is&1 == 1, Unwritable: is&2 == 2})
	}},
	{"provider", func(o *odds) *int { return &o.read }, func(w *World) {
		n := w.c.Choose("fault/providers", 3)
		w.step(event.ProviderHealth{Failed: n, Lacking: n > 1, Lost: n > 1})
	}},
	{"slow", func(o *odds) *int { return &o.slow }, (*World).slow},
	{"pause", func(o *odds) *int { return &o.pause }, (*World).pause},
	{"drain", func(o *odds) *int { return &o.drain }, (*World).drains},
	{"clock", func(o *odds) *int { return &o.clock }, (*World).clocks},
}

// trouble is a move that causes a fault.
func (w *World) trouble() {
	if w.odd("crash", 12, w.odds.crash) {
		if w.c.Choose("crash/kill", 2) == 1 {
			w.Saw["killed"]++ // the process ends, written data stays
			w.tell(decider, noLane, trouble, "killed")
			w.disk.Fuse = -1
			w.stops(true)
			w.boot()
			return
		}
		w.disk.Fuse = w.c.Choose("crash/fuse", 10)
		w.tell(disk, noLane, trouble, "power for %d operations more", w.disk.Fuse)
		if w.disk.Dead() {
			w.powerLoss()
		}
		return
	}
	t := troubles[w.c.Choose("fault/which", len(troubles))]
	if w.odd("fault", 8, *t.odds(&w.odds)) {
		w.tell(disk, noLane, trouble, "trouble: %s", t.name)
		t.do(w)
	}
}

func (w *World) powerLoss() {
	if w.defers {
		return
	}
	w.Saw["power lost"]++
	w.tell(disk, noLane, trouble, "the power is lost")
	w.stops(false)
	w.disk.Crash(w.c)
	w.kept.Crash(w.c)
	w.vault.disk.Crash(w.c)
	if s := w.storage; s != nil && s.files != nil {
		s.files.loses(w.c)
	}
	w.boot()
}

// slow: the disk has the data and delays the sync. The node ticks on.
func (w *World) slow() {
	w.write()
	for range 1 + w.c.Choose("slow/ticks", 4) {
		w.pass(time.Duration(1+w.c.Choose("slow/gone", 3000)) * time.Millisecond)
	}
}

// drains begins a drain while clients continue. The node is restarted when it has ended.
func (w *World) drains() {
	w.Saw["drain while clients send requests"]++
	w.draining = true
	w.step(event.Signal{Kind: []event.SignalKind{event.Drain, event.Drain, event.Abort}[w.c.Choose("drain/how", 3)]})
}

// ended restarts a node that has ended.
func (w *World) ended() {
	var s event.Status
	if w.node.Status(&s); s.Phase == types.Stopped {
		w.Saw["ended and started again"]++
		w.boot()
	}
}

// pause stops the process without its knowledge. All waiting requests time out when it continues.
func (w *World) pause() {
	w.gone(time.Duration(w.c.Choose("pause/gone", 30_000)) * time.Millisecond)
	w.asleep = true
}

// hurt counts a fault of the disk.
func (w *World) hurt(how, name string) {
	w.Saw["disk: "+how]++
	if w.stop.hurts != nil {
		w.stop.hurts[how]++
	}
	w.tell(disk, noLane, trouble, "%s %s", how, name)
}
