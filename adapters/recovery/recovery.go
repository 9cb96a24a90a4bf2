// Package recovery finds the newest state of a journal at a start, and says which files a start needs.
//
//	snapshots ──Heads──► where a start may begin, the newest first
//	head ──Load──► state ──Fold, the frames after it──► newest state
//	       └─ invalid, or the journal does not continue from it: the next head
package recovery

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"macronode/adapters/fs"
	"macronode/adapters/journalfile"
	"macronode/adapters/snapshot"
	"macronode/core/record"
	"macronode/core/state"
	"macronode/core/types"
)

// Heads returns where a start may begin, in the order of preference: at each snapshot of the journal, the newest first, and at
// the first frame, which is the zero head. A snapshot that is not usable is passed to skipped.
func Heads(segments, snapshots fs.FS, skipped func(error)) (all []snapshot.Head, err error) {
	id, err := journalfile.ID(segments)
	if err != nil {
		return nil, err
	}
	names, err := snapshot.List(snapshots)
	if err != nil {
		return nil, err
	}
	for _, lsn := range names {
		switch h, err := snapshot.Look(snapshots, lsn); {
		case err != nil:
			skipped(err)
		case id != 0 && h.Journal != id:
			skipped(fmt.Errorf("%s belongs to journal %016x, the segments to %016x", snapshot.Name(lsn), uint64(h.Journal), uint64(id)))
		default:
			all = append(all, h)
		}
	}
	return append(all, snapshot.Head{}), nil
}

// Fold is a replay of frames onto a state.
type Fold interface {
	Add([]record.Sealed) error // the next frames; none: all were added
	End() error                // ends the replay in any case, and returns its error
}

// Start is what a start reads, and its callbacks.
type Start struct {
	Segments, Snapshots fs.FS
	Fresh               types.JournalID     // the ID of the journal if there is none
	Reading             journalfile.Reading // what is known about the journal; From, Each and the proofs are set here
	Proofs              []journalfile.Proof // beside those of snapshots
	Doubt               journalfile.Doubt   // see journalfile.Judge
	Empty               func() state.State  // before the first frame
	Fold                func(*state.State) Fold
	Step                func() error // nil, or called between slices of work; its error ends the start
	Skipped             func(error)  // gets why a snapshot is not used
}

// Result is the newest state and its journal, which is open for writing.
type Result struct {
	State   *state.State
	Head    snapshot.Head // where it began
	Journal *journalfile.Journal
	Found   journalfile.Found
	Damage  error // nil, or journalfile.ErrDamaged: the state is that before the damage
}

// Recover begins at the first of the heads that is usable. If frames cannot be folded, nothing is written.
func (s Start) Recover(heads []snapshot.Head) (Result, error) {
	var err error
	proofs := Proofs(s.Proofs, heads)
	if s.Reading.Verdict, err = journalfile.Judge(s.Segments, proofs, s.Doubt); err != nil {
		return Result{}, err
	}
	for _, p := range proofs {
		s.Reading.Known = max(s.Reading.Known, p.LSN)
	}
	for _, h := range heads {
		r, err := s.from(h)
		if errors.Is(err, snapshot.ErrDoubt) || errors.Is(err, journalfile.ErrApart) && h.LSN > 0 {
			s.Skipped(err)
			continue
		}
		return r, err
	}
	types.Assert(false, "recovery: no head to begin at")
	return Result{}, nil
}

// Proofs returns proofs with those of snapshots, in ascending order of their frames.
func Proofs(beside []journalfile.Proof, heads []snapshot.Head) []journalfile.Proof {
	all := slices.Clone(beside)
	for _, h := range heads {
		if h.LSN > 0 {
			all = append(all, journalfile.Proof{LSN: h.LSN, Root: h.Root, Source: snapshot.Name(h.LSN)})
		}
	}
	slices.SortStableFunc(all, func(a, b journalfile.Proof) int { return cmp.Compare(a.LSN, b.LSN) })
	return all
}

// from loads the snapshot of a head, and folds the frames after it.
func (s Start) from(h snapshot.Head) (Result, error) {
	empty := s.Empty()
	r := Result{State: &empty, Head: h}
	if h.LSN > 0 {
		if _, err := snapshot.Load(s.Snapshots, h.LSN, r.State, s.Step); err != nil {
			return r, err
		}
	}
	fold := s.Fold(r.State)
	s.Reading.From = From(h)
	s.Reading.Each = func(frames []record.Sealed) error {
		if s.Step != nil {
			if err := s.Step(); err != nil {
				return err
			}
		}
		return fold.Add(frames)
	}
	var err error
	r.Journal, r.Found, err = s.Reading.Recover(s.Segments, s.Fresh)
	if errors.Is(err, journalfile.ErrDamaged) {
		r.Damage, err = err, nil
	}
	return r, errors.Join(err, fold.End())
}

// From returns where a reading goes on after a snapshot.
func From(h snapshot.Head) journalfile.From {
	return journalfile.From{LSN: h.LSN, Root: h.Root, Journal: h.Journal}
}

// FramesAfter returns a function that reads the frames between a snapshot and an LSN. The journal may be
// written meanwhile.
func FramesAfter(segments fs.FS) func(snapshot.Head, types.LSN, func([]record.Sealed) error) error {
	return func(h snapshot.Head, upto types.LSN, each func([]record.Sealed) error) error {
		_, err := journalfile.Reading{From: From(h), Upto: upto, Each: each}.Scan(segments)
		if errors.Is(err, journalfile.ErrApart) {
			err = errors.Join(snapshot.ErrApart, err)
		}
		return err
	}
}

// Unneeded returns the segments that no start needs: those before the older of the two newest snapshots. There are none
// with fewer snapshots.
func Unneeded(segments, snapshots fs.FS) ([]string, error) {
	all, err := snapshot.List(snapshots)
	if err != nil || len(all) < 2 {
		return nil, err
	}
	return journalfile.Behind(segments, all[1])
}
