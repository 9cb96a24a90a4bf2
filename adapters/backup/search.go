package backup

import (
	"errors"
	"fmt"

	"macronode/adapters/fs"
	"macronode/adapters/journalfile"
	"macronode/core/record"
)

// scan copies the frames of a reading. If the reading finds no begin, or ends before a frame that the journal has, it began in the wrong
// segment, and scan reads the whole journal.
func (c *copying) scan(r journalfile.Reading, from fs.FS) error {
	is, err := r.Scan(from)
	if errors.Is(err, journalfile.ErrApart) {
		return c.search(r, from, err)
	}
	isEnd := err == nil || errors.Is(err, journalfile.ErrDamaged)
	if !isEnd || r.From.LSN == 0 || r.Upto > 0 && is.Last >= r.Upto || r.Verdict.IsReason(err) {
		return err
	}
	if has, failed := journalfile.Has(from, is.Last+1); failed != nil || !has {
		return errors.Join(err, failed)
	}
	batch, size, end := c.batch, c.size, c.done.LSN
	c.batch, c.size = nil, 0
	again := c.search(r, from, fmt.Errorf("%w: it ends at %v, and there is a frame behind", journalfile.ErrApart, is.Last))
	if errors.Is(again, journalfile.ErrDamaged) && len(c.batch) == 0 && c.done.LSN == end { // the whole reading ends before
		c.batch, c.size = batch, size
		if err != nil {
			return err
		}
	}
	return again
}

// search copies the missing frames of a journal in which a reading r does not find the last frame of the copy where it looks for it: a
// segment that is not of the journal may be there. why is the error of r. ErrFork reports that the journal does not have the frame; a
// journalfile.Damage that the journal is damaged, so that the frame is hidden, or what follows it cannot be read.
func (c *copying) search(r journalfile.Reading, from fs.FS, why error) error {
	end, found := c.done.Cut, false
	fork := errors.Join(ErrFork, why)
	r.From, r.Each = journalfile.From{}, func(all []record.Sealed) error {
		for _, s := range all {
			switch {
			case s.LSN == end.LSN && (s.Root != end.Root || s.Journal != end.Journal):
				return fork
			case s.LSN == end.LSN:
				found = true
			case s.LSN > end.LSN:
				if err := c.take(s); err != nil {
					return err
				}
			}
		}
		return c.ctx.Err()
	}
	switch is, err := r.Scan(from); {
	case found || err != nil && !errors.Is(err, journalfile.ErrDamaged):
		return err
	case err == nil && is.CutBytes == 0: // the journal ends before the frame
		return fork
	}
	return c.hidden(r, from, fork)
}

// hidden returns the damage that hides the last frame of the copy. If that frame can be read, it is the last damage before it, or the first one;
// or fork, if the frame has another root, or the copy is of another journal.
func (c *copying) hidden(r journalfile.Reading, from fs.FS, fork error) error {
	end, damage := c.done.Cut, (*journalfile.Damage)(nil)
	if is, err := journalfile.ID(from); err != nil || is != end.Journal {
		return errors.Join(err, fork)
	}
	switch is, err := journalfile.Judge(from, []journalfile.Proof{{LSN: end.LSN, Root: end.Root}}, journalfile.Doubt{}); {
	case err != nil:
		return err
	case is.Against.LSN > 0:
		return fork
	}
	r.Known, r.Each = max(r.Known, end.LSN), nil
	_, err := r.Inspect(from, func(d *journalfile.Damage) error {
		if damage == nil || d.From <= end.LSN {
			damage = d
		}
		return c.ctx.Err()
	})
	if err == nil && damage == nil {
		return fork
	}
	if err == nil {
		err = damage
	}
	return err
}
