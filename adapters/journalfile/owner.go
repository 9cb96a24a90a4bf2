package journalfile

import (
	"slices"

	"macronode/adapters/fs"
	"macronode/core/types"
)

// A claim is a segment with the journal that it names.
type claim struct {
	part
	whose  types.JournalID // 0: its start is damaged, and its first frame does not name it
	inside bool            // whose is 0, and the first frame is whole: the journal is that of the segment before
}

// A lineage decides which segments lead to the end of a journal. A node reads a segment only then, and an inspection reports the others.
type lineage struct {
	fs    fs.FS
	id    types.JournalID // at the end
	proof Proof           // decides of the segment that has its frame
	older []Proof         // decide of segments that do not lead to it
	row   interface {
		known(n int) (c claim, exists bool, err error)
		owns(n int, whose types.JournalID) (ours bool, err error) // what leads returns for it, decided once
	}
}

// owner returns the journal of a segment whose start is damaged, and whose first frame does not name it: that of the segments
// around it, if they agree or a whole first frame shows that none begins there; 0: unknown.
func (l lineage) owner(n int) (types.JournalID, error) {
	before, _, err := l.nearest(n, -1)
	if err != nil {
		return 0, err
	}
	after, next, err := l.nearest(n, 1)
	if err != nil {
		return 0, err
	}
	at, _, err := l.row.known(n)
	if err != nil {
		return 0, err
	}
	switch {
	case before == after, before != 0 && at.inside:
		return before, nil
	case before != 0:
		return 0, nil
	}
	if next.whole {
		if restored, err := next.reborn(l.fs); restored || err != nil {
			return 0, err
		}
	}
	return after, nil
}

// nearest returns the journal of the nearest segment before (step -1) or after (1) the n-th that has one, and that segment. Behind
// the last one, it is that at the end; before the first one, none.
func (l lineage) nearest(n, step int) (whose types.JournalID, p part, err error) {
	for n += step; n >= 0; n += step {
		at, exists, err := l.row.known(n)
		switch {
		case err != nil:
			return 0, p, err
		case !exists:
			return l.id, part{}, nil
		case at.whose != 0:
			return at.whose, at.part, at.survey(l.fs)
		}
	}
	return 0, p, nil
}

// leads reports whether the n-th segment, of the journal whose, leads to the end, or why not: the next segment does, and begins with the root
// with which this one ends. A segment of another node, or of a copy of this one that went on otherwise, has the right name and is whole,
// too. Where the root cannot be seen because something is damaged or missing, the IDs of the journals decide.
func (l lineage) leads(n int, whose types.JournalID) (ours bool, why string, err error) {
	at, _, err := l.row.known(n)
	if err != nil {
		return false, "", err
	}
	switch is, err := l.proves(n, l.proof); {
	case err != nil || is == linked:
		return is == linked, "", err
	case is == apart:
		return false, l.proof.contradiction(), nil
	}
	isUnproven := false // it leads to a foreign one of the same journal: nothing but a root shows where that parts
	isAgainst := false  // and a proof contradicts that one
	isApart := false    // it does not lead to the first foreign one
	for m := n + 1; ; m++ {
		next, exists, err := l.row.known(m)
		switch {
		case err != nil:
			return false, "", err
		case !exists && isUnproven:
			return l.proven(n)
		case !exists:
			if why, err := l.strays(n); why != "" || err != nil {
				return false, why, err
			}
			return decide(whose == l.id, Unproven)
		case next.whose == 0:
			continue
		}
		is, err := l.row.owns(m, next.whose)
		if err != nil {
			return false, "", err
		}
		found, err := at.link(l.fs, &next.part)
		if err != nil {
			return false, "", err
		}
		switch {
		case is && found == apart:
			return false, whyApart, nil
		case is && found == short:
			return false, whyShort, nil
		case is && found != unseen:
			return true, "", nil
		case is && (isUnproven || isAgainst):
			return l.proven(n)
		case is && next.whose != whose && next.whole && next.number == at.number+1: // else a restore may have begun between them
			if ours, err = next.reborn(l.fs); err != nil {
				return false, "", err
			}
			return decide(ours, Unproven)
		case is:
			return true, "", nil
		case next.whose != whose, isUnproven, isAgainst, isApart:
		case found == apart, found == short, found == twice:
			isApart = true
		default:
			against, err := l.proves(m, append(l.older, l.proof)...)
			if err != nil {
				return false, "", err
			}
			isAgainst = against == apart
			isUnproven = !isAgainst
		}
	}
}

// proven is leads of a segment of which nothing but a proof shows whether it is of the journal.
func (l lineage) proven(n int) (ours bool, why string, err error) {
	is, err := l.proves(n, l.older...)
	if err != nil {
		return false, "", err
	}
	return decide(is == linked, Unproven)
}

// strays returns why the n-th segment, which seems to be the end, is not of the journal: it continues one that the latest proof contradicts,
// or it does not continue the one that has its frame.
func (l lineage) strays(n int) (why string, err error) {
	isChained := true
	for m := n - 1; m >= 0 && l.proof.LSN > 0; m-- {
		at, _, err := l.row.known(m)
		if err != nil {
			return "", err
		}
		next, _, err := l.row.known(m + 1)
		if err != nil {
			return "", err
		}
		if isChained {
			is, err := at.link(l.fs, &next.part)
			if err != nil || is != linked && is != same && is != apart {
				return "", err
			}
			isChained = is != apart
		}
		switch is, err := l.proves(m, l.proof); {
		case err != nil || isChained && is == linked || !isChained && is == apart:
			return "", err
		case is == apart:
			return l.proof.contradiction(), nil
		case is == linked:
			return whyUnfit, nil
		}
	}
	return "", nil
}

// proves returns what the latest of proofs that are of frames of the n-th segment says about it.
func (l lineage) proves(n int, proofs ...Proof) (is linkage, err error) {
	at, _, err := l.row.known(n)
	if err != nil {
		return unseen, err
	}
	next, _, err := l.row.known(n + 1)
	if err != nil {
		return unseen, err
	}
	for _, p := range slices.Backward(proofs) {
		if is, err = p.of(l.fs, at.part, next.part); is != unseen || err != nil {
			return is, err
		}
	}
	return unseen, nil
}

// decide returns what leads does, with the reason only if it is not ours.
func decide(ours bool, why string) (bool, string, error) {
	if ours {
		why = ""
	}
	return ours, why, nil
}

// lineage returns that of the segments of an open journal, which are read when they are asked for.
func (j *Journal) lineage() lineage { return lineage{j.fs, j.id, j.proof, j.older, j} }

// owns reports whether the n-th segment, of the journal whose, leads to the end of the open journal.
func (j *Journal) owns(n int, whose types.JournalID) (ours bool, err error) {
	j.table.mu.RLock()
	s := j.table.segments[n]
	j.table.mu.RUnlock()
	if s.owned {
		return s.ours, nil
	}
	if ours, _, err = j.lineage().leads(n, whose); err != nil {
		return false, err
	}
	j.table.mu.Lock()
	defer j.table.mu.Unlock()
	j.table.segments[n].owned, j.table.segments[n].ours = true, ours
	return ours, nil
}

// known returns the n-th segment, whose start was read; false if there is none.
func (j *Journal) known(n int) (c claim, exists bool, err error) {
	j.table.mu.RLock()
	exists = n < len(j.table.segments)
	j.table.mu.RUnlock()
	if !exists {
		return c, false, nil
	}
	if _, err := j.first(n); err != nil {
		return c, false, err
	}
	j.table.mu.RLock()
	defer j.table.mu.RUnlock()
	s := &j.table.segments[n]
	return claim{part{number: s.number, name: segmentName(s.number), first: s.first}, s.whose, s.inside}, true, nil
}
