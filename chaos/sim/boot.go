package sim

import (
	"errors"

	"macronode/adapters/follower"
	"macronode/adapters/journalfile"
	"macronode/adapters/loop"
	"macronode/chaos/world"
	"macronode/core/event"
	"macronode/core/node"
	"macronode/core/record"
	"macronode/core/state"
	"macronode/core/words"
)

// boot recovers, as often as it takes, and holds what it finds against all that was
// ever said.
func (w *World) boot() {
	for range 100 {
		if w.c.Choose("crash in recovery", 4) < w.odds.crash {
			w.disk.Fuse = w.c.Choose("recovery fuse", 20)
		}
		found, err := w.recover()
		switch {
		case err == nil && !w.disk.Dead():
			w.disk.Fuse = -1
			w.begin(found)
			return
		case w.disk.Dead():
			w.Saw["crash in recovery"]++
			w.disk.Crash(w.c)
		case errors.Is(err, world.ErrSync), errors.Is(err, world.ErrFull):
			w.Saw["recovery failed"]++ // the next start tries again, on what it can read
			w.disk.Full = false
		default:
			w.fail("recovery: %v", err)
			return
		}
	}
	w.fail("a recovery without end")
}

func (w *World) recover() (found journalfile.Found, err error) {
	st := state.New(limits(), words.Hash64(w.c.Choose("seed", 100)))
	var frames []record.Sealed
	w.jour, found, err = journalfile.Recover(w.disk, 9, func(all []record.Sealed) error {
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
	w.jour.Roll = 2048
	if st.Hash() != w.promise.hashes[st.LSN] {
		w.fail("recovered %v, but its hash was never seen", st.LSN)
	}
	followed := state.New(limits(), 1)
	st.CopyTo(&followed)
	w.fol = follower.New(followed, 8, 4, w.jour.Read)
	w.audit = newAudit()
	for _, s := range frames {
		w.audit.frame(w, s)
	}
	dice := words.NewDice(uint64(w.c.Choose("dice", 1000)))
	w.node = node.New(config(), st, w.now.Mono, dice)
	w.copied = node.New(config(), state.New(limits(), 0), 0, dice)
	return found, nil
}

// rot ends a world against the law of disks: a bit flips in what was durable. Damage
// is said, or nothing that anybody was told is lost: the last frame is a time frame,
// so that all before it are vouched for.
func (w *World) rot() {
	name, at := w.disk.Rot(w.c)
	found, err := w.recover()
	switch {
	case errors.Is(err, journalfile.ErrDamaged):
		w.Saw["damage said"]++
		for lsn := range found.Last {
			if s, err := w.jour.Read(lsn + 1); err != nil || s.LSN != lsn+1 {
				w.fail("%s damaged at %d: frame %v of %v cannot be read: %v", name, at, lsn+1, found.Last, err)
			}
		}
	case err != nil:
		w.fail("%s rotten at %d: %v", name, at, err)
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
	for range 1 + w.c.Choose("syncs after a lie", 4) {
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
	found, err := w.recover()
	switch {
	case errors.Is(err, journalfile.ErrDamaged):
		w.Saw["lie found out"]++
	case err != nil:
		w.fail("after a lie: %v", err)
	case found.Last < w.promise.durable:
		w.fail("after a lie: recovered %v, durable in truth %v", found.Last, w.promise.durable)
	default:
		w.Saw["lie that nobody can know"]++
	}
}

// begin is a life after what was found.
func (w *World) begin(found journalfile.Found) {
	if w.Saw["frames beyond the durable"] += int(found.Recovery.Tail); found.Recovery.Cut > 0 {
		w.Saw["tail cut"]++
	}
	last := w.node.LSN()
	w.promise.hold(w, last)
	w.next, w.inSync, w.synced, w.late, w.enter = loop.Batch{}, nil, nil, nil, nil
	w.asked, w.childs = map[words.Ticket]*client{}, [words.Children]bool{}
	for _, c := range w.clients {
		c.out = 0
		if _, next := w.balance(c.account, "EUR/2"); next < c.told {
			w.fail("%s was told nonce %d, now %d", c.account, c.told, next)
		}
	}
	w.now.Mono++
	w.step(event.Boot{Found: found.Recovery})
	if !w.fol.Bootstrapped() {
		w.step(&event.Enrol{Ticket: w.own(), Key: boss})
	}
	if w.c.Choose("slow start", 4) == 0 {
		return
	}
	for c := range words.Children {
		w.step(event.ChildUp{Child: c})
	}
	w.settle()
}

// own is a ticket of the node's own: nobody is asked about its reply.
func (w *World) own() words.Ticket {
	w.ticket++
	t := words.NewTicket(w.ticket%8, w.ticket)
	w.promise.left[t] = true
	return t
}
