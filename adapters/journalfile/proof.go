package journalfile

import (
	"errors"
	"os"

	"macronode/adapters/fs"
	"macronode/core/types"
)

// A Proof is the root after a durable frame, as a file outside of the segments has it. The zero value is none.
type Proof struct {
	LSN    types.LSN
	Root   types.Root
	Source string // the file
	IsWeak bool   // the file came with the segments, and confirms nothing
}

// A Doubt is why the segments may be of another past, although they name the journal. The zero value is none.
type Doubt struct {
	Why   string
	IsGap bool // else what is behind the last confirmed frame is only in doubt if the frame of the latest proof is missing
}

// A Verdict is what proofs say about the segments. The zero value says nothing: all is read.
type Verdict struct {
	Against   Proof     // its frame has another root in the segments: they are of a copy of the journal that went on otherwise, or its file is
	Confirmed types.LSN // the last frame that a proof confirms, before that of Against; 0: none
	doubt     Doubt
	isLacking bool // the frame of the latest proof is missing: what is behind Confirmed and behind damage may be of another past
}

// Judge compares proofs, in ascending order, with the segments. Nothing is known of a proof whose frame the segments lack.
func Judge(fsys fs.FS, proofs []Proof, doubt Doubt) (Verdict, error) {
	row, _, err := list(fsys)
	if err != nil {
		return Verdict{}, err
	}
	v, tries := Verdict{doubt: doubt}, 2 // the last segment may have begun and not have a frame
	if doubt.Why != "" {
		tries = 1 // or it hides one of another past
	}
	for _, p := range proofs {
		root, has, err := rootOf(fsys, row, p.LSN, tries)
		switch {
		case err != nil:
			return Verdict{}, err
		case p.IsWeak && (!has || root == p.Root):
		case !has:
			v.isLacking = true
		case root != p.Root:
			v.Against = p
			return v, nil
		default:
			v.Confirmed, v.isLacking = p.LSN, false
		}
	}
	return v, nil
}

// Has reports whether the segments have a frame, as far as it can be read.
func Has(fsys fs.FS, lsn types.LSN) (bool, error) {
	row, _, err := list(fsys)
	if err != nil {
		return false, err
	}
	_, has, err := rootOf(fsys, row, lsn, 2)
	return has, err
}

// unproved is why what is behind damage is not read.
const unproved = "it is behind damage, and the frame of no later record is there: nothing shows that it is of this journal"

// hides returns why a frame is not read; empty if it is.
func (v Verdict) hides(lsn types.LSN, behindDamage bool) string {
	switch {
	case lsn <= v.Confirmed:
		return ""
	case v.Against.LSN > 0:
		return v.contradiction()
	case v.doubt.Why != "" && (v.doubt.IsGap || v.isLacking):
		return v.doubt.Why
	case behindDamage && v.isLacking:
		return unproved
	default:
		return ""
	}
}

// IsReason reports whether err is the damage that frames are not read because they may be of another past.
func (v Verdict) IsReason(err error) bool {
	d, ok := errors.AsType[*Damage](err)
	return ok && d.From > v.Confirmed && (v.Against.LSN > 0 && d.Why == v.contradiction() || v.doubt.Why != "" && d.Why == v.doubt.Why)
}

func (v Verdict) contradiction() string {
	p := v.Against
	return p.Source + " has another root for frame " + p.LSN.String() + ": the segments are of a copy of the journal that went on otherwise, or " + p.Source + " is"
}

// rootOf returns the root after a frame, if one of the last segments has it that begin before.
func rootOf(fsys fs.FS, row []part, lsn types.LSN, tries int) (root types.Root, has bool, err error) {
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
	if _, has, err = pane.before(l.off, l.it); has && err == nil {
		has, err = pane.isOf(p.start.epoch, p.first, l)
	}
	return types.Root(l.it.root), has, err
}

// unlessGone returns an error unless it says that a file is not there.
func unlessGone(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}
