package journalfile

import (
	"macronode/adapters/fs"
	"macronode/core/types"
)

// whyRemade is what a rebuilt start reports.
const whyRemade = "the start is damaged; it is rebuilt from its first frame and the segments beside it"

// remake rebuilds the damaged start of a segment whose first batch and frame are whole, if the rest is elsewhere too: the root before the
// frame in what is left of the start or in the segment before, and the journal in the frame or in the segments beside it. The frame proves the
// root.
func (p *part) remake(fsys fs.FS, pane *pane) error {
	if p.start != (start{}) || p.first == 0 {
		return nil
	}
	pane.block = sparse
	head, err := pane.item(startItem)
	if err != nil {
		return err
	}
	first, err := pane.item(startItem + batchItem)
	if err != nil || first.magic != frameMagic {
		return err
	}
	prev, ok, err := pane.before(startItem+batchItem, first)
	if !ok && err == nil {
		prev, ok, err = p.rootBefore(fsys, first)
	}
	if !ok || err != nil {
		return err
	}
	whose, err := p.journalBeside(fsys)
	if whose == 0 || err != nil {
		return err
	}
	h := head.batch()
	p.start = start{version: version, journal: whose, first: h.first, known: h.first - 1, epoch: h.epoch, prev: prev}
	p.whole, p.remade = true, true
	return nil
}

// rootBefore returns the root from which the first frame of a segment follows: one in the segment before, or at its begin.
func (p *part) rootBefore(fsys fs.FS, first item) (prev types.Root, ok bool, err error) {
	before := part{number: p.number - 1, name: segmentName(p.number - 1)}
	if err := before.peek(fsys); err != nil {
		return prev, false, err
	}
	switch {
	case p.first == 1:
	case before.whole && before.first == p.first:
		prev = before.start.prev
	case before.first > 0:
		if prev, ok, err = before.rootAt(fsys, p.first-1); !ok || err != nil {
			return prev, false, err
		}
	}
	return prev, first.follows(prev), nil
}

// journalBeside returns the journal of a segment with a damaged start: that which its first frame names, or that of a segment beside it, if no
// restore is between them; 0: unknown.
func (p *part) journalBeside(fsys fs.FS) (types.JournalID, error) {
	whose, inside, err := p.named(fsys)
	if whose != 0 || !inside || err != nil {
		return whose, err
	}
	before, after := part{name: segmentName(p.number - 1)}, part{name: segmentName(p.number + 1)}
	if err := before.peek(fsys); err != nil || before.whole {
		return before.start.journal, err
	}
	if err := after.peek(fsys); err != nil || !after.whole {
		return 0, err
	}
	if restored, err := after.reborn(fsys); err != nil || restored {
		return 0, err
	}
	return after.start.journal, nil
}

// peek reads the start of a segment, if there is one, and does not rebuild it.
func (p *part) peek(fsys fs.FS) error {
	pane, err := openPane(fsys, p.name, startItem+batchItem)
	if err != nil {
		return unlessGone(err)
	}
	defer pane.file.Close() //nolint:errcheck // it was only read
	p.isThere = true
	return p.look(pane)
}
