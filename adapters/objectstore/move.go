package objectstore

import (
	"errors"
	"fmt"

	"macronode/adapters/fs"
	"macronode/core/coding"
	"macronode/core/placement"
	"macronode/core/storage"
)

// ErrProviderFailed reports that nothing is moved, because a provider has failed: its parts may be the only good ones, and the places are others
// when it is back.
var ErrProviderFailed = errors.New("a provider has failed: copies are moved only while all can be used")

// A Moved is what Move did for an object.
type Moved struct {
	Written []Part  // those that its places lacked, or that were damaged there
	Errs    []error // of each that was written; nil: it is good now
	Bytes   uint64  // of good parts in places that had none
	IsHeld  bool    // a backup needs the files, so none was removed
	IsDone  bool    // each part is in its place, and nowhere else
}

// NewMove returns the move of an object that has some parts.
func (s *Store) NewMove(o storage.Stored, has *Parts) placement.Move {
	if has.Scheme.IsSet() {
		return s.table.MoveShards(uint64(o.File), has.Scheme.Shards(), &has.in)
	}
	return s.table.MoveCopies(uint64(o.File), s.copies.Count, has.in[0])
}

// ToMove returns the parts that a move writes, or if there are none to write, whether one is removed.
func (s *Store) ToMove(o storage.Stored, has *Parts) (missing []Part, isNeeded bool) {
	m := s.NewMove(o, has)
	return s.listParts(has.Scheme, m.Missing), m.IsNeeded()
}

// listParts returns the parts of which of is true.
func (s *Store) listParts(scheme coding.Scheme, of func(shard int) placement.Set) (list []Part) {
	for shard := range max(1, scheme.Shards()) {
		for set, i := of(shard), 0; i < s.table.Len(); i++ {
			if set.Has(i) {
				list = append(list, Part{i, scheme, shard})
			}
		}
	}
	return list
}

// Move writes the copies or shards of an object into the providers where an upload would write them now, and then removes those that are
// elsewhere. A part is removed only after each part that replaces it was made durable and read as a whole. A crash at any point leaves
// as many good parts as before. pace is called before each read with the number of its bytes; its error ends Move, and is returned.
// ErrProviderFailed is returned while a provider has failed.
func (s *Store) Move(o storage.Stored, pace func(bytes int) error) (r Moved, err error) {
	if s.Usable() != s.table.All() {
		return r, ErrProviderFailed
	}
	has, err := s.findParts(o)
	if err != nil {
		return r, err
	}
	paced := func(bytes int) error {
		if err == nil {
			err = pace(bytes)
		}
		return err
	}
	m := s.NewMove(o, &has)
	bad, failed := s.confirm(&m, o, s.listParts(has.Scheme, m.Unsure), paced)
	if err == nil {
		err = failed
	}
	if r.Written = append(bad, s.listParts(has.Scheme, m.Missing)...); err == nil && len(r.Written) > 0 {
		r.Errs = s.Repair(o, r.Written, paced)
	}
	if err != nil {
		return r, err
	}
	r.IsDone = true
	for n, part := range r.Written {
		if r.Errs[n] != nil {
			r.IsDone = false
			continue
		}
		m.Confirm(part.Shard, part.Provider)
		if n >= len(bad) {
			r.Bytes += part.Size(o)
		}
	}
	surplus := s.listParts(has.Scheme, m.Surplus)
	switch err := s.removeParts(o, surplus); {
	case errors.Is(err, fs.ErrHeld):
		r.IsHeld, r.IsDone = true, false
	case err != nil:
		return r, err
	}
	return r, nil
}

// confirm reads parts as a whole, confirms those that are good, and returns those that are damaged. The error is that of a part of which nothing
// is known.
func (s *Store) confirm(m *placement.Move, o storage.Stored, list []Part, pace func(int) error) (bad []Part, err error) {
	for _, part := range list {
		switch err := s.VerifyPart(o, part, pace); {
		case err == nil:
			m.Confirm(part.Shard, part.Provider)
		case errors.Is(err, ErrDamaged), errors.Is(err, ErrGone):
			bad = append(bad, part)
		default:
			return bad, fmt.Errorf("verify a copy: %w", err)
		}
	}
	return bad, nil
}

// removeParts removes parts of an object, unless a backup needs the files.
func (s *Store) removeParts(o storage.Stored, list []Part) error {
	if len(list) == 0 {
		return nil
	}
	held, err := s.Unpinned()
	if err != nil {
		return err
	}
	defer held.Close() //nolint:errcheck // nothing was written
	for _, part := range list {
		err = errors.Join(err, s.RemovePart(o, part))
		s.moved.Add(1)
	}
	return err
}

// Moved returns how many parts were removed since the start because others had replaced them. A list of files that is older than the last of them
// may have files that are gone.
func (s *Store) Moved() uint64 { return s.moved.Load() }

// findParts returns the parts of an object that are there, whole or not. It asks each provider for each of them: a move that was interrupted
// may leave a shard in two providers, and two shards in one. If there are parts of several schemes, it returns those that the object can
// be read from.
func (s *Store) findParts(o storage.Stored) (Parts, error) {
	var all []Parts
	for _, scheme := range append([]coding.Scheme{{}}, s.schemesOf(o.Size)...) {
		is := s.NewParts(scheme)
		for _, part := range s.listParts(scheme, func(int) placement.Set { return s.table.All() }) {
			switch err := s.CheckPart(o, part); {
			case err == nil, errors.Is(err, ErrDamaged):
				is.Add(part)
			case !errors.Is(err, ErrGone):
				return is, fmt.Errorf("look for the parts of an object: %w", err)
			}
		}
		all = append(all, is)
	}
	return bestOf(all), nil
}
