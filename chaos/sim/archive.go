package sim

import (
	"macronode/adapters/archive"
	"macronode/adapters/fs"
	"macronode/adapters/recovery"
	"macronode/chaos/world"
	"macronode/core/event"
)

// vault is the archive of the segments of a run, on a disk of its own.
type vault struct {
	disk     *world.Disk
	segments fs.FS            // of the process: live ones, and those in the archive
	archive  *archive.Archive // nil: the run has none
	failing  bool             // the node heard last that segments could not be moved
}

// mount shows the segments to a new process.
func (w *World) mount() {
	v := &w.vault
	v.failing = false
	if v.segments, v.archive = w.disk, nil; !w.hasArchive {
		return
	}
	a, err := archive.New(w.disk, v.disk)
	if err != nil {
		w.fail("archive", "archive: %v", err)
		return
	}
	v.segments, v.archive = a, a
}

// archived moves the segments that no start needs, in the runs with an archive. Its disk may fail.
func (w *World) archived() {
	if w.vault.archive == nil || w.c.Choose("archive/now", 3) == 1 {
		return
	}
	w.harm(w.vault.disk, "archive")
	names, err := recovery.Unneeded(w.disk, w.kept)
	if err == nil {
		err = w.vault.archive.Move(names, nil, func(archive.Moved) { w.Saw["segment archived"]++ })
	}
	w.heal(w.vault.disk)
	if failed := err != nil; failed != w.vault.failing {
		w.vault.failing = failed
		w.step(event.SegmentsArchived{Failed: failed})
	}
	switch {
	case err == nil:
	case ofDisk(err):
		w.Saw["archiving failed"]++
	default:
		w.fail("archive", "archive: %v", err)
	}
}
