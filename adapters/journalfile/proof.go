package journalfile

import (
	"errors"
	"os"
	"slices"

	"macronode/adapters/fs"
	"macronode/core/types"
)

// A Proof is the root after a durable frame, as a file outside of the segments has it. The zero value is none.
type Proof struct {
	LSN    types.LSN
	Root   types.Root
	Source string // the file
}

// A Contradiction is a proof whose frame has another root in the segments: they are of a copy of the journal that went on otherwise, or the
// file with the proof is. The frames behind Upto may be of that copy, and are not read. The zero value is none.
type Contradiction struct {
	Proof
	Upto types.LSN // the last frame before it that another proof confirms; 0: none
}

// Contradicted compares proofs, in ascending order, with the segments. A proof of a later frame decides: its root covers all frames before it.
// Nothing is known of proofs whose frames the segments lack.
func Contradicted(fsys fs.FS, proofs []Proof) (Contradiction, error) {
	row, _, err := list(fsys)
	if err != nil {
		return Contradiction{}, err
	}
	var c Contradiction
	for _, p := range slices.Backward(proofs) {
		root, has, err := rootOf(fsys, row, p.LSN)
		switch {
		case err != nil:
			return Contradiction{}, err
		case !has:
			continue
		case root != p.Root:
			c.Proof = p
			continue
		case c.LSN > 0:
			c.Upto = p.LSN
		}
		break
	}
	return c, nil
}

// Has reports whether the segments have a frame, as far as it can be read.
func Has(fsys fs.FS, lsn types.LSN) (bool, error) {
	row, _, err := list(fsys)
	if err != nil {
		return false, err
	}
	_, has, err := rootOf(fsys, row, lsn)
	return has, err
}

// hides returns why a frame is not read; empty if it is.
func (c Contradiction) hides(lsn types.LSN) string {
	if c.LSN == 0 || lsn <= c.Upto {
		return ""
	}
	return c.why()
}

// IsReason reports whether err is the damage that frames are not read because of the contradiction.
func (c Contradiction) IsReason(err error) bool {
	d, ok := errors.AsType[*Damage](err)
	return ok && c.LSN > 0 && d.Why == c.why()
}

func (c Contradiction) why() string {
	return c.Source + " has another root for frame " + c.LSN.String() + ": the segments are of a copy of the journal that went on otherwise, or " + c.Source + " is"
}

// rootOf returns the root after a frame, if a segment has it.
func rootOf(fsys fs.FS, row []part, lsn types.LSN) (root types.Root, has bool, err error) {
	tries := 2 // the last segment may have begun and not have it, or be in the wrong place
	for n := len(row) - 1; n >= 0 && tries > 0 && lsn > 0; n-- {
		p := row[n]
		if err := p.survey(fsys); unlessGone(err) != nil {
			return root, false, err
		}
		if p.first == 0 || p.first > lsn {
			continue
		}
		tries--
		if root, has, err = p.rootAt(fsys, lsn); has || err != nil {
			return root, has, err
		}
	}
	return root, false, nil
}

// rootAt returns the root after a frame of a segment, if the frame is whole.
func (p part) rootAt(fsys fs.FS, lsn types.LSN) (root types.Root, has bool, err error) {
	pane, err := openRepaired(fsys, p.number, sparse)
	if err != nil {
		return root, false, unlessGone(err)
	}
	defer pane.file.Close() //nolint:errcheck // it was only read
	w := walk{off: startItem, last: p.first - 1}
	near, err := pane.seek(seeking{lo: startItem, first: p.first, lsn: lsn})
	if err != nil {
		return root, false, err
	}
	if w.off = near.off; near.lsn > 0 {
		w.last = near.lsn - 1
	}
	l, err := w.to(pane, lsn, pane.size)
	switch {
	case errors.Is(err, ErrDamaged):
		return root, false, nil
	case err != nil || l.it.size == 0:
		return root, false, err
	}
	_, has, err = pane.before(l.off, l.it)
	return types.Root(l.it.root), has, err
}

// unlessGone returns an error unless it says that a file is not there.
func unlessGone(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}
