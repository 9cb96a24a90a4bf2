package sim

import (
	"errors"
	"slices"
	"strings"

	"macronode/adapters/journalfile"
	"macronode/adapters/loop"
	"macronode/adapters/readmodel"
	"macronode/chaos/trace"
	"macronode/chaos/world"
	"macronode/core/event"
	"macronode/core/node"
	"macronode/core/record"
	"macronode/core/state"
	"macronode/core/types"
	"macronode/models/history"
)

// boot recovers, as often as it takes, and holds what it finds against all that was
// ever said.
func (w *World) boot() {
	if w.node != nil {
		w.leavesBehind()
	}
	if w.node != nil && w.odd("clock/away", 12, w.odds.clock) {
		w.skew = 1000 * around(w.c.Choose("clock/far", 20_000))
		w.jump("clock moved between two lives,", w.skew)
	}
	for range 100 {
		if w.odd("recovery/crash", 4, w.odds.crash) {
			w.disk.Fuse = w.c.Choose("recovery/fuse", 20)
		}
		found, err := w.recover()
		switch {
		case err == nil && !w.disk.Dead():
			w.disk.Fuse, w.disk.FailRead, w.disk.FailWrite, w.disk.FailSync, w.disk.FailDir = -1, false, false, false, false
			w.begin(found)
			return
		case w.disk.Dead():
			w.Saw["crash in recovery"]++
			w.tell(journal, nobody, trouble, "the power is lost in recovery")
			w.disk.Crash(w.c)
		case errors.Is(err, world.ErrSync), errors.Is(err, world.ErrFull), errors.Is(err, world.ErrRead), errors.Is(err, world.ErrWrite):
			w.tell(journal, nobody, trouble, "recovery: %v", err)
			w.Saw["recovery failed"]++ // the next start tries again, on what it can read
			w.Saw["recovery failed: "+reason(err)]++
			w.atDir("recovery", err)
			w.disk.Leave(plenty)
		default:
			w.fail("recovery", "recovery: %v", err)
			return
		}
	}
	w.fail("recovery-without-end", "a recovery without end")
}

// atDir counts what failed because the directory was not synced.
func (w *World) atDir(what string, err error) {
	if strings.Contains(err.Error(), "directory") {
		w.Saw[what+" failed at the directory"]++
	}
}

// reason is how a disk failed, in a word.
func reason(err error) string {
	switch {
	case errors.Is(err, world.ErrRead):
		return "read"
	case errors.Is(err, world.ErrWrite):
		return "write"
	case errors.Is(err, world.ErrFull):
		return "full"
	}
	return "sync"
}

func (w *World) recover() (found journalfile.Found, err error) {
	var st state.State
	var frames []record.Sealed
	from, found, err := w.open(&st, func(all []record.Sealed) error {
		for _, s := range all {
			if err := st.Fold(s.Body, nil); err != nil {
				return err
			}
		}
		frames = append(frames, all...)
		return nil
	})
	if err != nil {
		return found, err
	}
	if frames, err = w.whole(from, frames); err != nil {
		return found, err
	}
	w.jour.Roll = 2048
	if st.Hash() != w.promise.hashes[st.LSN] {
		w.fail("state-never-seen", "recovered %v, but its hash was never seen", st.LSN)
	}
	w.comesUpon(&st, frames)
	followed := state.New(w.limits, 1)
	st.CopyTo(&followed)
	w.fol = readmodel.New(followed, 8, 4, w.jour.Read)
	w.trace = trace.New(w.config)
	w.trace.Notes(func(what string) { w.Saw[what]++ })
	if last := int(w.audit.last); last == 0 || last > len(frames) || frames[last-1].Root != w.audit.root {
		w.audit, w.said.frames = newAudit(), nil // else all up to there are what they were
	}
	for _, s := range frames[w.audit.last:] {
		w.audit.frame(w, s)
	}
	for _, s := range frames {
		if err := w.trace.Fold(s.Body); err != nil {
			w.untraced(err)
		}
	}
	dice := types.NewRand(uint64(w.c.Choose("dice", 1000)))
	w.node = node.New(w.config, st, w.now.Mono, dice)
	if w.copied == nil {
		w.copied = node.New(w.config, state.New(w.limits, 0), 0, dice)
	}
	return found, nil
}

// whole is all frames, with those before from, which the start did not read: as they were
// seen when they became durable, if what was read goes on from there, or else as the journal
// has them.
func (w *World) whole(from types.LSN, frames []record.Sealed) ([]record.Sealed, error) {
	if seen := w.said.frames; !w.unlawful && from > 0 && int(from) <= len(seen) && len(frames) > 0 && frames[0].Prev == seen[from-1].Root {
		return append(slices.Clone(seen[:from]), frames...), nil
	}
	before := make([]record.Sealed, from)
	for lsn := range from {
		var err error
		if before[lsn], err = w.jour.Read(lsn + 1); err != nil {
			return nil, err
		}
	}
	return append(before, frames...), nil
}

// rot ends a world against the law of disks: a bit flips in what was durable. Damage
// is said, or nothing that anybody was told is lost: the last frame is a time frame,
// so that all before it are vouched for.
func (w *World) rot() {
	name, at := w.disk.Rot(w.c)
	w.tell(disk, nobody, trouble, "%s rots at %d", name, at)
	found, err := w.recover()
	switch {
	case errors.Is(err, journalfile.ErrDamaged):
		w.Saw["damage said"]++
		lost := 0
		for lsn := range found.Last {
			s, err := w.jour.Read(lsn + 1)
			if errors.Is(err, journalfile.ErrDamaged) {
				lost++
			} else if err != nil || s.LSN != lsn+1 {
				w.fail("damage-spreads", "%s damaged at %d: frame %v of %v cannot be read: %v", name, at, lsn+1, found.Last, err)
			}
		}
		if lost > 2 {
			w.fail("damage-spreads", "%s damaged at %d: %d frames cannot be read for a bit", name, at, lost)
		}
	case err != nil:
		w.fail("rot", "%s rotten at %d: %v", name, at, err)
	default:
		w.Saw["rot that did no harm"]++
		w.promise.durable--
		w.promise.hold(w, w.node.LSN())
	}
}

// lie ends a world against the law as well: a sync says that it has, and has not.
// What comes after it may vouch for what is lost: then damage is said. Where nothing
// does, what was synced in truth is all there.
func (w *World) lie() {
	w.disk.LoseSync = true
	w.tell(disk, nobody, trouble, "the next sync lies")
	for range 1 + w.c.Choose("lie/syncs", 4) {
		for _, c := range w.clients {
			c.move(w)
		}
		w.turn(4)
		w.write()
		if w.disk.LoseSync && w.inSync != nil {
			w.promise.durable = w.inSync[0].LSN - 1 // in truth
		}
		truth := w.promise.durable
		if w.sync(); truth < w.promise.durable {
			w.promise.durable = truth
		}
	}
	w.disk.Crash(w.c)
	w.tell(disk, nobody, trouble, "the power is lost")
	found, err := w.recover()
	switch {
	case errors.Is(err, journalfile.ErrDamaged):
		w.Saw["lie found out"]++
	case err != nil:
		w.fail("lie", "after a lie: %v", err)
	case found.Last < w.promise.durable:
		w.fail("lie-loses", "after a lie: recovered %v, durable in truth %v", found.Last, w.promise.durable)
	default:
		w.Saw["lie that nobody can know"]++
	}
}

// astray ends a world against the law as well: a write lands where it should not. What is
// not where it should be, and what it fell on, is damage that is said, or was never
// promised.
func (w *World) astray() {
	truth := w.promise.durable - 1 // the last frame is a time frame: those before it are vouched for
	w.harmed, w.disk.Astray = true, []int{400, -400, 1500, -1500, -64, 64}[w.c.Choose("astray/by", 6)]-w.c.Choose("astray/less", 64)
	for range 1 + w.c.Choose("lie/syncs", 4) {
		for _, c := range w.clients {
			c.move(w)
		}
		w.turn(4)
		w.write()
		w.sync()
	}
	w.disk.Crash(w.c)
	w.tell(disk, nobody, trouble, "the power is lost")
	found, err := w.recover()
	switch {
	case errors.Is(err, journalfile.ErrDamaged):
		w.Saw["write that went astray found out"]++
	case err != nil:
		w.fail("astray", "after a write that went astray: %v", err)
	case found.Last < truth:
		w.fail("astray-loses", "after a write that went astray: recovered %v, durable in truth %v", found.Last, truth)
	default:
		w.Saw["write that went astray and nobody can know"]++
	}
}

// endLost ends a world, after its clean end, against the law: the last segment is cut or gone.
// The mark of durable frames was written at that end: that frames are missing is found out.
func (w *World) endLost() {
	w.known = w.promise.durable
	name, at := w.disk.Cut(w.c)
	w.tell(disk, nobody, trouble, "%s is cut at %d", name, at)
	found, err := w.recover()
	switch {
	case errors.Is(err, journalfile.ErrDamaged):
		w.Saw["lost end found out"]++
	case err != nil:
		w.fail("end-lost", "%s cut at %d: %v", name, at, err)
	case found.Last < w.known:
		w.fail("end-lost-unnoticed", "%s cut at %d: recovered %v, durable were %v", name, at, found.Last, w.known)
	default:
		w.Saw["lost end of what was never written"]++
	}
}

// begin is a life after what was found.
func (w *World) begin(found journalfile.Found) {
	if w.Saw["frames beyond the durable"] += int(found.Recovery.TailFrames); found.Recovery.CutBytes > 0 {
		w.Saw["tail cut"]++
	}
	last := w.node.LSN()
	w.recovered(last)
	w.asleep, w.draining = false, false
	w.tell(journal, disk, again, "recovered %v, cut %d bytes", last, found.Recovery.CutBytes)
	w.promise.hold(w, last)
	w.index.crash(w, last)
	w.next, w.inSync, w.synced, w.late, w.enter = loop.Batch{}, nil, nil, nil, nil
	w.said.open = map[types.Ticket]history.Key{}
	w.asked, w.twins, w.childs = map[types.Ticket]*client{}, map[types.Ticket]second{}, [types.NumServices]bool{}
	w.clerk.reset()
	w.clerk.held(w)
	w.opens()
	for _, c := range w.clients {
		c.doubts, c.out, c.asking, c.pass = c.doubts || c.out != 0, 0, nil, pass{}
		if _, next := w.balance(c.account, "EUR/2"); next < c.told {
			w.fail("nonce-goes-back", "%s was told nonce %d, now %d", c.account, c.told, next)
		}
	}
	w.now.Mono++
	w.step(event.Recovered{Recovery: found.Recovery}, event.Indexed{Upto: w.index.mark})
	w.skewed()
	if !w.fol.Bootstrapped() {
		w.step(&event.CreateKey{Ticket: w.own(), Key: boss})
	}
	if w.c.Choose("start/slow", 6) == 1 {
		return
	}
	for c := range types.NumServices {
		w.step(event.ServiceUp{Service: c})
	}
	w.settle()
}

// own is a ticket of the node's own: nobody is asked about its reply.
func (w *World) own() types.Ticket {
	w.ticket++
	t := types.NewTicket(w.ticket%8, w.ticket)
	w.promise.left[t] = true
	return t
}
