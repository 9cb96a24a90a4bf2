package sim

import "macronode/chaos/world"

// odds are drawn once per run, so that some runs are stormy and some nearly calm, and each kind
// of trouble is sometimes the only one. Each is a number of chances; 0 means never.
type odds struct {
	crash, leave, clock             int // out of a few chances
	sync, dir, write, read, full    int
	slow, pause, duplicate, reorder int
	drain                           int
	gate                            int // narrowPermits, smallQuotas
	snapshot                        int
	busy                            int // no trouble and much work
	storage                         int // storageFree, storagePaid
	usage                           int // 1: the run has usage
	prepaid                         int // 1: and a tenant that pays for it
	charges                         int // 1: or one whose slices are charged
	exports                         int // 1: and exports
	restore                         int // 1: the machine is replaced, and a backup restored
}

func (o *odds) draw(c world.Chooser) {
	for _, kind := range []struct {
		site string
		n    int
		to   *int
	}{
		{"odds/crash", 4, &o.crash}, {"odds/leave", 4, &o.leave}, {"odds/clock", 4, &o.clock},
		{"odds/sync", 3, &o.sync}, {"odds/dir", 3, &o.dir}, {"odds/write", 3, &o.write}, {"odds/read", 3, &o.read}, {"odds/full", 3, &o.full},
		{"odds/slow", 3, &o.slow}, {"odds/pause", 3, &o.pause}, {"odds/twin", 4, &o.duplicate}, {"odds/reorder", 4, &o.reorder}, {"odds/snapshot", 4, &o.snapshot}, {"odds/drain", 3, &o.drain}, {"odds/gate", 4, &o.gate},
	} {
		*kind.to = c.Choose(kind.site, kind.n)
	}
	if c.Choose("odds/busy", 4) == 1 {
		*o = odds{busy: 1, reorder: o.reorder, duplicate: o.duplicate}
	}
}

// odd happens odds times in n. The default is that it does not.
func (w *World) odd(site string, n, odds int) bool {
	got := w.c.Choose(site, n)
	return got > 0 && got <= odds
}

// around is 0, 1, -1, 2, -2 and so on, so that the default is 0.
func around(got int) int {
	if got%2 == 1 {
		return got/2 + 1
	}
	return -got / 2
}

// drawWorkloads draws what a run has beside the wallet and its gate.
func (o *odds) drawWorkloads(c world.Chooser) {
	o.storage = c.Choose("odds/storage", 3)
	o.usage = c.Choose("odds/usage", 2)
	o.prepaid = c.Choose("odds/prepaid", 2)
	if o.usage > 0 && o.prepaid > 0 {
		o.storage = 0 // the prepaid tenant stores objects itself
	}
	o.charges = c.Choose("odds/charges", 2)
	o.exports = c.Choose("odds/exports", 2)
	o.restore = c.Choose("odds/restore", 2)
}
