package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"macronode/adapters/journalfile"
)

// tell says it to a person.
func (v *verified) tell(c *console) error {
	w := lines{c: c}
	switch {
	case len(v.Damage) > 0:
		w.say("journal %s is damaged in %d places: %d frames of %d are unreadable; all others are intact", v.Journal, len(v.Damage), v.Lost, v.Known)
	case v.Error != "":
		w.say("journal %s is invalid: %s", v.Journal, v.Error)
	default:
		w.say("journal %s is intact: %d frames in %d segments (%d bytes), %d movements, %d stored rejections, %d accounts; root %s",
			v.Journal, v.Frames, v.Segments, v.Bytes, v.Moved, v.Refused, v.Accounts, v.Root)
	}
	for _, d := range v.Damage {
		w.say("%s, byte %d: %s: %s", d.Segment, d.Offset, d.lost(), d.Why)
	}
	if v.Cut > 0 {
		w.say("the last %d bytes are an incomplete write that was never acknowledged; the next start discards them", v.Cut)
	}
	for _, s := range v.Snapshots {
		switch {
		case !s.OK:
			w.say("snapshot %s is invalid: %s", s.File, s.Why)
		case !s.Held:
			w.say("snapshot %s is intact; it could not be compared with the journal, which is damaged before it", s.File)
		default:
			w.say("snapshot %s is intact and matches the journal", s.File)
		}
	}
	v.tellObjects(&w)
	v.advise(&w)
	return w.err
}

// tellObjects tells of the files of the objects.
func (v *verified) tellObjects(w *lines) {
	switch o := v.Objects; {
	case o == nil:
	case o.Bad == 0 && o.Contents:
		w.say("%d objects (%d bytes) are intact", o.Objects, o.Bytes)
	case o.Bad == 0:
		w.say("%d objects (%d bytes) have their files; contents were not read", o.Objects, o.Bytes)
	default:
		w.say("%d of %d objects are unreadable: put their files back, or upload the same content again", o.Bad, o.Objects)
		o.tell(w)
	}
}

func (d *damage) lost() string {
	switch {
	case d.To < d.From:
		return "no frame is affected"
	case d.To == d.From:
		return fmt.Sprintf("frame @%d is unreadable", d.From)
	default:
		return fmt.Sprintf("frames @%d to @%d are unreadable", d.From, d.To)
	}
}

// advise says what can be done.
func (v *verified) advise(w *lines) {
	if n := len(v.Damage); n > 0 {
		last := v.Damage[n-1]
		if v.ends() {
			w.say("according to %s, frames up to @%d were durable, but the journal ends at @%d: restore the data after byte %d of %s and the later segments",
				v.KnownFrom, v.Known, last.From-1, last.Offset, last.Segment)
		}
		w.say("restore the named files from an archive: a finished segment never changes")
		w.say("or use a backup: run macronode backup to add the newer frames, then replace this directory journal with that of the backup")
		if v.endsEarly() {
			w.say("or accept the loss: macronode restore DIR --accept-loss --data NEW creates a new journal from the intact part; receipts of lost frames are not valid in it")
		}
	}
	switch s := v.Start; {
	case s == nil:
	case s.Writes:
		w.say("until then the node can run: it starts from the snapshot @%d and continues after @%d; requests for receipts in unreadable frames get record_unreadable", s.Snapshot, s.Upto)
	default:
		w.say("until then the node starts read-only, with the state at @%d", s.Upto)
	}
	if v.believed() < len(v.Snapshots) {
		w.say("an invalid snapshot is harmless: the next start skips it, and the node creates new ones")
	}
}

// ends reports that frames are missing at the end of the journal, and that only what lies beside
// the segments knows of them.
func (v *verified) ends() bool {
	n := len(v.Damage)
	return n > 0 && v.KnownFrom != "" && v.Damage[n-1].To == v.Known && v.Damage[n-1].From <= v.Known
}

// endsEarly reports that nothing else is wrong with a journal.
func (v *verified) endsEarly() bool {
	return v.ends() && len(v.Damage) == 1 && v.Error == "" && v.Frames > 0 && v.Damage[0].From == v.Frames+1
}

// canAccept reports that the rest is usable: the end of the journal is missing, or only objects are.
func (v *verified) canAccept() bool { return v.endsEarly() || v.Error == "" && len(v.Damage) == 0 }

// lines are said until one cannot be.
type lines struct {
	c   *console
	err error
}

func (l *lines) say(format string, args ...any) {
	if l.err == nil {
		l.err = l.c.say(format, args...)
	}
}

// progress tells a person who waits how far a reading is; whoever does not, nothing.
func (c *console) progress(asked bool) func(journalfile.Progress) {
	f, ok := c.err.(*os.File)
	live := ok && isTerminal(f)
	if !live && !asked {
		return nil
	}
	return reporter(c.err, live, c.now)
}

// reporter says it once a second at most, and at the end; live, always in one line.
func reporter(to io.Writer, live bool, now func() time.Time) func(journalfile.Progress) {
	last := now()
	return func(p journalfile.Progress) {
		over := p.Done >= p.Total
		if at := now(); !over && at.Sub(last) < time.Second {
			return
		} else {
			last = at
		}
		before, after := "", "\n"
		if live {
			before, after = "\r", map[bool]string{true: "\n", false: ""}[over]
		}
		share := 100 * float64(p.Done) / float64(max(1, p.Total))
		fmt.Fprintf(to, "%sverify: %5.1f %% of %s, %s, %v%s", before, share, megabytes(p.Total), p.Segment, p.Last, after) //nolint:errcheck // nobody needs it
	}
}
