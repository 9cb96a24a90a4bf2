package offline

import (
	"fmt"
	"io"
	"slices"
)

// WriteText describes the journal.
func (v *JournalReport) WriteText(to io.Writer) error {
	w := lines{w: to}
	switch {
	case len(v.Damage) > 0:
		w.printf("journal %s is damaged in %d places: %d frames of %d are unreadable; all others are intact", v.Journal, len(v.Damage), v.Lost, v.Known)
	case v.Error != "":
		w.printf("journal %s is invalid: %s", v.Journal, v.Error)
	case len(v.Repaired) > 0:
		w.printf("journal %s has all %d frames; %d places are damaged that cost no frame: each start repairs them from the others", v.Journal, v.Frames, len(v.Repaired))
	case len(v.Others) > 0:
		w.printf("journal %s has all %d frames that are known to be durable, and segments that are not of it", v.Journal, v.Frames)
	default:
		w.printf("journal %s is intact: %d frames in %d segments (%d bytes), %d movements, %d stored rejections, %d accounts; root %s",
			v.Journal, v.Frames, v.Segments, v.Bytes, v.Moved, v.Refused, v.Accounts, v.Root)
	}
	if v.MarkError != "" {
		w.printf("the mark of durable frames is damaged: %s", v.MarkError)
	}
	if v.NoEnd != "" {
		w.printf("durable frames after @%d are missing: %s", v.Frames, v.NoEnd)
	}
	if v.NoMark && v.Frames > 0 {
		w.printf("the mark of durable frames (durable) is missing: a loss at the end of the journal cannot be detected")
	}
	for _, d := range slices.Concat(v.Repaired, v.Damage) {
		w.printf("%s, byte %d: %s: %s", d.Segment, d.Offset, d.lost(), d.Why)
	}
	if v.Cut > 0 {
		w.printf("the last %d bytes are an incomplete write that was never acknowledged; the next start discards them", v.Cut)
	}
	v.writeOthers(&w)
	v.writeSnapshots(&w)
	v.writeObjects(&w)
	v.writeAdvice(&w)
	return w.err
}

// writeSnapshots describes the snapshots.
func (v *JournalReport) writeSnapshots(w *lines) {
	for _, s := range v.Snapshots {
		switch {
		case !s.OK:
			w.printf("snapshot %s is invalid: %s", s.File, s.Why)
		case !s.Held:
			w.printf("snapshot %s is intact; it could not be compared with the journal, which is damaged before it", s.File)
		default:
			w.printf("snapshot %s is intact and matches the journal", s.File)
		}
	}
}

// writeObjects describes the files of the objects.
func (v *JournalReport) writeObjects(w *lines) {
	for _, why := range v.Foreign {
		w.printf("a directory of objects is refused: %s", why)
	}
	switch o := v.Objects; {
	case o == nil:
	case o.Bad == 0 && o.Contents:
		w.printf("%d objects (%d bytes) are intact", o.Objects, o.Bytes)
	case o.Bad == 0:
		w.printf("%d objects (%d bytes) have their files; contents were not read", o.Objects, o.Bytes)
	default:
		w.printf("%d of %d objects are unreadable: put their files back, or upload the same content again", o.Bad, o.Objects)
		o.writeText(w)
	}
	if v.Objects == nil {
		return
	}
	for _, p := range v.Objects.Providers {
		w.printf("provider %s: %d copies intact, %d missing, %d damaged", p.Provider, p.Intact, p.Missing, p.Damaged)
	}
	if v.Objects.badCopies() > 0 {
		w.printf("a running node restores copies from good ones: macronode storage repair, macronode storage scrub")
	}
}

func (d *Damage) lost() string {
	switch {
	case d.To < d.From:
		return "no frame is affected"
	case d.To == d.From:
		return fmt.Sprintf("frame @%d is unreadable", d.From)
	default:
		return fmt.Sprintf("frames @%d to @%d are unreadable", d.From, d.To)
	}
}

// writeAdvice describes what can be done.
func (v *JournalReport) writeAdvice(w *lines) {
	if n := len(v.Damage); n > 0 {
		last := v.Damage[n-1]
		if v.ends() {
			w.printf("according to %s, frames up to @%d were durable, but the journal ends at @%d: restore the data after byte %d of %s and the later segments",
				v.KnownFrom, v.Known, last.From-1, last.Offset, last.Segment)
		}
		if last.To < last.From && last.From > v.Known {
			w.printf("no frame behind @%d is known to be durable: if %s does not belong here, move it away, and the node starts as usual", v.Known, last.Segment)
		}
		w.printf("restore the named files from an archive: a finished segment never changes")
		if v.against != "" {
			w.printf("or, if the segments are the right ones, move %s away", v.against)
		}
		w.printf("or use a backup: run macronode backup to add the newer frames, then replace this directory journal with that of the backup")
		if v.CanAccept() && (v.Start == nil || !v.Start.Writes) {
			w.printf("or accept the loss: macronode restore DIR --accept-loss --data NEW creates a new journal from the intact part, to @%d; receipts of later frames are not valid in it", v.Frames)
		}
	}
	if len(v.Repaired) > 0 {
		w.printf("the node runs normally, and backup and restore copy all frames; check the disk, and replace the named files from an archive or with those of a backup")
	}
	if v.MarkError != "" {
		w.printf("the node starts read-only, because the journal may lack durable frames after @%d: compare it with a backup or with receipts", v.Frames)
		w.printf("if none are missing, remove that file and start the node; if some are, bring the missing segments back, or accept the loss with macronode restore DIR --accept-loss --data NEW")
	}
	if v.NoEnd != "" && len(v.Damage) == 0 {
		w.printf("no node accepts writes on it: mount the disk of the data directory, or restore a backup")
		w.printf("or accept the loss: macronode backup COPY, then macronode restore COPY --accept-loss --data NEW with another journal.archive")
	}
	v.writeStart(w)
	if v.IntactSnapshots() < len(v.Snapshots) && len(v.Damage) == 0 {
		w.printf("an invalid snapshot is harmless: the next start skips it, and the node creates new ones")
	}
}

// writeStart describes the next start on a damaged journal.
func (v *JournalReport) writeStart(w *lines) {
	switch s := v.Start; {
	case s == nil:
	case s.Writes && s.Snapshot == 0:
		w.printf("until then the node can run: it starts from the first frame and continues after @%d", s.Upto)
	case s.Writes:
		w.printf("until then the node can run: it starts from the snapshot @%d and continues after @%d; requests for receipts in unreadable frames get record_unreadable", s.Snapshot, s.Upto)
		w.printf("until then keep the directories snapshots and index: without that snapshot the node is read-only, with an older state, and a damaged journal cannot rebuild the index")
	default:
		w.printf("until then the node starts read-only, with the state at @%d", s.Upto)
		if s.Upto < v.Known {
			w.printf("the frames @%d to @%d do not count in that state, even those that are readable", s.Upto+1, v.Known)
		}
		w.printf("until then keep the directories snapshots and index: a damaged journal may not be able to rebuild them")
	}
}

// writeOthers describes the segments that are not read.
func (v *JournalReport) writeOthers(w *lines) {
	for _, o := range v.Others {
		w.printf("%s is not of this journal, and is not read: %s", o.Name, o.Why)
	}
	switch {
	case len(v.Others) == 0:
	case v.NoList != "":
		w.printf("do not move it away before the list is there again, or the missing or damaged segment: it may be of this journal")
	default:
		w.printf("move it away; if it is in the place of a segment of this journal, bring that one back")
	}
	if v.list != "" {
		w.printf("if they are of this journal, the list %s lacks their process: remove that file, and the next start or backup makes it again", v.list)
	}
	if v.NoList != "" && len(v.Damage)+len(v.Others) > 0 {
		w.printf("nothing records which segments are of this journal (%s): what follows a missing or damaged one is not read", v.NoList)
	}
}

// ends reports whether frames are missing at the end of the journal, so that only files beside the segments show
// it.
func (v *JournalReport) ends() bool {
	n := len(v.Damage)
	return n > 0 && v.KnownFrom != "" && v.Damage[n-1].To == v.Known && v.Damage[n-1].From <= v.Known
}

// CanAccept reports whether the part before the first damage is usable. Objects may be missing.
func (v *JournalReport) CanAccept() bool {
	return v.Error == "" && (len(v.Damage) == 0 || v.Frames > 0)
}
