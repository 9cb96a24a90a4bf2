package sim

import (
	"bytes"
	"context"
	"errors"

	"macronode/adapters/backup"
	"macronode/adapters/journalfile"
	"macronode/chaos/world"
	"macronode/core/record"
	"macronode/core/state"
	"macronode/core/types"
)

// firstRestored is the ID of the journal of the first restore of a run.
const firstRestored = types.JournalID(100)

// backups are the backup of a run and its restores.
type backups struct {
	disk  *world.Disk     // of the backup
	next  types.JournalID // of the next restored journal
	mixed bool            // the backup may have frames of the journal that was restored from its own: a copy failed
	heir  bool            // the backup is of the journal that the present one was restored from
}

func newBackups() backups {
	return backups{disk: world.NewDisk(), next: firstRestored}
}

// backedUp brings the backup up to date beside the node, in some runs. Its disk may fail.
func (w *World) backedUp() {
	if w.odds.restore == 0 || w.c.Choose("backup/now", 3) != 1 || w.promise.durable == 0 {
		return
	}
	if err := w.backUp(w.promise.durable); err != nil {
		w.Saw["backup failed"]++
	}
}

// backUp copies the frames up to one that is durable; 0: to the end of a journal that is not written.
func (w *World) backUp(upto types.LSN) error {
	b, d := &w.backups, w.backups.disk
	heir := b.heir && (b.mixed || w.c.Choose("backup/heir", 2) == 0)
	b.mixed = heir
	w.harm(d, "backup")
	done, err := backup.Copy(context.Background(), w.vault.segments, d, backup.Bounds{Upto: upto, Heir: heir}, nil)
	w.heal(d)
	switch {
	case b.heir && !heir && (err == nil || errors.Is(err, backup.ErrHeir)):
		if w.Saw["backup of the journal before"]++; err == nil {
			w.fail("backup-of-another", "a backup of the journal before was continued to %v", done.LSN)
		}
	case err == nil:
		w.Saw["backup made"]++
		b.heir, b.mixed = false, false
		if upto > 0 && done.LSN != upto {
			w.fail("backup-short", "a backup to %v, asked for %v", done.LSN, upto)
		}
	case errors.Is(err, backup.ErrNone) && w.promise.durable == 0:
		w.Saw["no frame to back up"]++
	case !ofDisk(err):
		w.fail("backup", "backup: %v", err)
	}
	return err
}

// harm lets an operation of another disk fail, sometimes; heal ends that.
func (w *World) harm(d *world.Disk, site string) {
	switch w.c.Choose(site+"/fault", 16) {
	case 1:
		d.Fuse = w.c.Choose(site+"/fuse", 30)
	case 2:
		d.FailSync = true
	case 3:
		d.FailWrite = true
	case 4:
		d.FailDir = true
	case 5:
		d.FailRead = true
	}
}

func (w *World) heal(d *world.Disk) {
	if d.Dead() {
		d.Crash(w.c)
	}
	d.Fuse, d.FailSync, d.FailWrite, d.FailDir, d.FailRead = -1, false, false, false, false
}

// ofDisk reports whether an error is one of a failing disk.
func ofDisk(err error) bool {
	for _, of := range [...]error{world.ErrDead, world.ErrSync, world.ErrFull, world.ErrRead, world.ErrWrite} {
		if errors.Is(err, of) {
			return true
		}
	}
	return false
}

// replaced replaces the machine of a node that has ended, in some runs: what its disk has is backed up, and restored as
// another journal on an empty disk. All frames are kept, so every promise still holds.
func (w *World) replaced() {
	if w.odds.restore == 0 || w.c.Choose("restore/now", 4) != 1 {
		return
	}
	w.disk.Fuse, w.disk.FailRead, w.disk.FailWrite, w.disk.FailSync, w.disk.FailDir = -1, false, false, false, false
	for range 100 {
		if err := w.backUp(0); w.err != nil || errors.Is(err, backup.ErrNone) {
			return
		} else if err == nil {
			w.restore()
			return
		}
	}
	w.fail("backup-without-end", "a backup without end")
}

// restore restores the backup on an empty disk, as often as needed. The snapshots and the index of the old journal may be left
// beside it. It returns the last frame of the backup.
func (w *World) restore() (cut types.LSN) {
	b := &w.backups
	as := backup.As{Journal: b.next, At: types.Time(w.now.Wall), KeepKeys: true}
	for b.next++; w.err == nil; {
		d := world.NewDisk()
		w.harm(d, "restore")
		done, err := backup.Restore(context.Background(), b.disk, d, as, nil)
		w.heal(d)
		w.heal(b.disk)
		if err != nil && !ofDisk(err) {
			w.fail("restore", "restore: %v", err)
		}
		if err != nil {
			w.Saw["restore failed"]++
			continue
		}
		d.Hurt, d.OnOperation = w.disk.Hurt, w.disk.OnOperation
		w.Saw["restored"]++
		w.disk, w.vault.disk, w.known = d, world.NewDisk(), done.Restored.LSN
		w.tell(journal, noLane, again, "restored on another machine: frames to %v, journal %v from %v on", done.LSN, as.Journal, done.Restored.LSN)
		w.restoredAs(as, done)
		b.heir = true
		if w.c.Choose("restore/snapshots", 2) == 1 {
			w.kept = world.NewDisk()
		}
		return done.LSN
	}
	return 0
}

// restoredAs checks a restored journal: every frame that was durable, and one more. The state at the last frame of the old
// journal was seen before.
func (w *World) restoredAs(as backup.As, done backup.Done) {
	st, last := state.New(w.limits, 1), record.Sealed{}
	found, err := journalfile.Reading{Each: func(all []record.Sealed) error {
		for _, s := range all {
			if s.LSN == done.Restored.LSN && st.Hash() != w.promise.hashes[done.LSN] {
				w.fail("restored-never-seen", "restored %v, but its hash was never seen", done.LSN)
			}
			if err := st.Fold(s.Body, nil); err != nil {
				return err
			}
			last = s
		}
		return nil
	}}.Scan(w.disk)
	switch {
	case err != nil:
		w.fail("restored-unreadable", "a restored journal: %v", err)
	case done.LSN < w.promise.durable && !w.unlawful:
		w.fail("restore-loses", "restored %v, durable was %v", done.LSN, w.promise.durable)
	case found.Last != done.LSN+1 || last.Journal != as.Journal || st.Journal != as.Journal || st.At < as.At:
		w.fail("restored-differs", "restored as journal %v at %v behind %v: frame %v of journal %v at %v", as.Journal, as.At, done.LSN, found.Last, last.Journal, st.At)
	}
	w.promise.appended(last.LSN, st.Hash(), 1)
	if w.usage != nil { // the other models read the frames
		w.usage.oracle = w.usage.oracle.upto(w, done.LSN)
		if w.usage.prepaid != nil {
			w.usage.prepaid.upto(w, done.LSN)
		}
	}
	if w.exports != nil {
		w.exports.oracle.cut(done.LSN)
	}
}

// past ends a run with a restore of the backup as it is: what was acknowledged after it is lost, and nothing before. Snapshots of
// the lost frames may be left beside it.
func (w *World) past() {
	made, err := backup.CutOf(w.backups.disk)
	if err != nil || made.LSN == 0 {
		return
	}
	cut := w.restore()
	if w.err != nil {
		return
	}
	if cut < made.LSN { // more than that if the next copy failed
		w.fail("past", "the backup was made to %v, restored %v", made.LSN, cut)
	}
	if _, err := w.recover(); err != nil {
		w.fail("past", "restored to %v: %v", cut, err)
		return
	}
	w.note(w.promise.durable > cut, "restored without the last frames")
	if last := w.node.LSN(); last != cut+1 {
		w.fail("past", "restored to %v: recovered %v", cut, last)
	}
	for _, key := range w.promise.keys {
		for _, a := range w.promise.answers[key] {
			got, _, _, err := w.fol.Render(nil, a.place)
			if same := err == nil && bytes.Equal(got, a.bytes); same != (a.place.LSN <= cut) {
				w.fail("past-differs", "restored to %v: %s was told at %v\n%s, now\n%s: %v", cut, key, a.place, a.bytes, got, err)
			}
		}
	}
}
