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

// boot recovers, as often as needed, and compares the result with everything that was promised.
func (w *World) boot() {
	if w.node != nil {
		w.leavesBehind()
	}
	if w.node != nil && w.odd("clock/away", 12, w.odds.clock) {
		w.skew = 1000 * around(w.c.Choose("clock/far", 20_000))
		w.jump("clock moved between two runs,", w.skew)
	}
	if w.node != nil {
		w.replaced()
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
			w.tell(journal, noLane, trouble, "the power is lost in recovery")
			w.disk.Crash(w.c)
		case errors.Is(err, world.ErrSync), errors.Is(err, world.ErrFull), errors.Is(err, world.ErrRead), errors.Is(err, world.ErrWrite):
			w.tell(journal, noLane, trouble, "recovery: %v", err)
			w.Saw["recovery failed"]++ // the next start tries again with what it can read
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

// atDir counts failures because the directory was not synced.
func (w *World) atDir(what string, err error) {
	if strings.Contains(err.Error(), "directory") {
		w.Saw[what+" failed at the directory"]++
	}
}

// reason returns the kind of a disk failure.
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
	var frames []record.Sealed
	r, err := w.open(func(st *state.State, all []record.Sealed) error {
		for _, s := range all {
			if err := st.Fold(s.Body, nil); err != nil {
				return err
			}
		}
		frames = append(frames, all...)
		return nil
	})
	st, found := r.State, r.Found
	if err != nil {
		return found, err
	}
	if frames, err = w.whole(r.Head.LSN, frames); err != nil {
		return found, err
	}
	w.jour.Roll = 2048
	if st.Hash() != w.promise.hashes[st.LSN] {
		w.fail("state-never-seen", "recovered %v, but its hash was never seen", st.LSN)
	}
	w.comesUpon(st, frames)
	followed := state.New(w.limits, 1)
	st.CopyTo(&followed)
	w.fol = readmodel.New(followed, 8, 4, w.jour.Read)
	w.trace = trace.New(w.config)
	w.trace.Notes(func(what string) { w.Saw[what]++ })
	if last := int(w.audit.last); last == 0 || last > len(frames) || frames[last-1].Root != w.audit.root {
		w.audit, w.testified.frames = newAudit(w.limits.Ledger), nil // otherwise all frames up to there are unchanged
	}
	for _, s := range frames[w.audit.last:] {
		w.audit.frame(w, s)
	}
	for _, s := range frames {
		if err := w.trace.Fold(s.Body); err != nil {
			w.untraced(err)
		}
	}
	for _, p := range w.planes {
		p.recovers(w, st, frames)
	}
	if w.exports != nil {
		w.exports.recovers(w, st)
	}
	dice := types.NewRand(uint64(w.c.Choose("dice", 1000)))
	w.node = node.New(w.config, *st, w.now.Mono, dice)
	if w.copied == nil {
		w.copied = node.New(w.config, state.New(w.limits, 0), 0, dice)
	}
	return found, nil
}

// whole returns all frames. Those before from, which the start did not read, come from memory if
// the chain continues from them, otherwise from the journal.
func (w *World) whole(from types.LSN, frames []record.Sealed) ([]record.Sealed, error) {
	if seen := w.testified.frames; !w.unlawful && from > 0 && int(from) <= len(seen) && len(frames) > 0 && frames[0].Prev == seen[from-1].Root {
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

// rot ends a run with an event that a correct disk never has: a bit flips in durable data. The
// damage is reported, or no acknowledged frame is lost: the last frame is a heartbeat, so all
// before it are proved durable.
func (w *World) rot() {
	name, at := w.disk.Rot(w.c)
	w.tell(disk, noLane, trouble, "%s rots at %d", name, at)
	found, err := w.recover()
	switch {
	case errors.Is(err, journalfile.ErrDamaged):
		w.Saw["damage reported"]++
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

// lie ends a run with an event that a correct disk never has: a sync succeeds without effect. If
// later data proves the loss, damage is reported; otherwise everything that was really synced is
// there.
func (w *World) lie() {
	w.disk.LoseSync = true
	w.tell(disk, noLane, trouble, "the next sync lies")
	for range 1 + w.c.Choose("lie/syncs", 4) {
		for _, c := range w.clients {
			c.move(w)
		}
		w.turn(4)
		w.write()
		if w.disk.LoseSync && w.inSync != nil {
			w.promise.durable = w.inSync[0].LSN - 1 // the real durable frame
		}
		truth := w.promise.durable
		if w.sync(); truth < w.promise.durable {
			w.promise.durable = truth
		}
	}
	w.disk.Crash(w.c)
	w.tell(disk, noLane, trouble, "the power is lost")
	found, err := w.recover()
	switch {
	case errors.Is(err, journalfile.ErrDamaged):
		w.Saw["lie found out"]++
	case err != nil:
		w.fail("lie", "after a lie: %v", err)
	case found.Last < w.promise.durable:
		w.fail("lie-loses", "after a lie: recovered %v, durable in truth %v", found.Last, w.promise.durable)
	default:
		w.Saw["a false sync without a trace"]++
	}
}

// astray ends a run with an event that a correct disk never has: a write goes to the wrong place.
// What is missing or overwritten is reported as damage, or was never acknowledged.
func (w *World) astray() {
	truth := w.promise.durable - 1 // the last frame is a heartbeat: those before it are proved durable
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
	w.tell(disk, noLane, trouble, "the power is lost")
	found, err := w.recover()
	switch {
	case errors.Is(err, journalfile.ErrDamaged):
		w.Saw["write that went astray found out"]++
	case err != nil:
		w.fail("astray", "after a write that went astray: %v", err)
	case found.Last < truth:
		w.fail("astray-loses", "after a write that went astray: recovered %v, durable in truth %v", found.Last, truth)
	default:
		w.Saw["a misdirected write without a trace"]++
	}
}

// endLost ends a run, after a clean end, by cutting or removing the last segment, which a correct
// disk never does. The mark of durable frames shows that frames are missing.
func (w *World) endLost() {
	w.known = w.promise.durable
	name, at := w.disk.Cut(w.c)
	w.tell(disk, noLane, trouble, "%s is cut at %d", name, at)
	found, err := w.recover()
	switch {
	case errors.Is(err, journalfile.ErrDamaged):
		w.Saw["lost end found out"]++
	case err != nil:
		w.fail("end-lost", "%s cut at %d: %v", name, at, err)
	case found.Last < w.known:
		w.fail("end-lost-unnoticed", "%s cut at %d: recovered %v, durable were %v", name, at, found.Last, w.known)
	default:
		w.Saw["the lost end was never written"]++
	}
}

// begin starts the node after recovery.
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
	w.testified.open = map[types.Ticket]history.Key{}
	w.asked, w.copies, w.childs = map[types.Ticket]*client{}, map[types.Ticket]second{}, [types.NumServices]bool{}
	w.clerk.reset()
	for _, p := range w.planes {
		p.crashed(w)
	}
	if w.exports != nil {
		w.exports.crashed(w)
	}
	w.clerk.held(w)
	w.opens()
	for _, c := range w.clients {
		c.doubts, c.out, c.asking, c.pass = c.doubts || c.out != 0, 0, nil, pass{}
		if _, next := w.balance(c.account, "EUR/2"); next < c.answered {
			w.fail("nonce-goes-back", "%s was told nonce %d, now %d", c.account, c.answered, next)
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

// own returns a ticket of the node itself, whose reply is ignored.
func (w *World) own() types.Ticket {
	w.ticket++
	t := types.NewTicket(w.ticket%8, w.ticket)
	w.promise.left[t] = true
	return t
}
