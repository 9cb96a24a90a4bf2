package objectstore

import (
	"errors"
	"fmt"

	"macronode/core/coding"
	"macronode/core/placement"
	"macronode/core/storage"
)

// SourceError is why an object could not be read from the store that it is copied from.
type SourceError struct{ Err error }

func (e *SourceError) Error() string { return e.Err.Error() }

// Unwrap returns the reason: ErrGone, ErrDamaged or the error of a read.
func (e *SourceError) Unwrap() error { return e.Err }

// Copy copies an object from another store, under the same number. Every byte is verified. A file that is there
// is replaced when the copy is complete. The copy is durable after Flush. The error is a *SourceError if the object cannot be read. Copy is not safe for concurrent use.
func (s *Store) Copy(from *Store, o storage.Stored) error {
	x, err := from.Get(o.Address, o.Object)
	if err != nil {
		return &SourceError{err}
	}
	defer x.Close()
	s.Reserve(o.File)
	u := &Upload{store: s, file: o.File, expected: o.Size, silent: true, replaces: true}
	u.chooseOnly()
	return u.copy(x, o, false)
}

// copy writes an object into u, and ends u. Every part was verified when it was read, and their sum is compared with the address.
func (u *Upload) copy(x *Object, o storage.Stored, syncDir bool) error {
	defer u.Done()
	err := x.WriteRange(0, o.Size, func(part []byte) error {
		_, err := u.Write(part)
		return err
	})
	switch {
	case err != nil && x.limits().paced != nil:
		return x.limits().paced
	case err != nil && u.err == nil:
		return &SourceError{err}
	}
	a, err := u.Sum()
	if err == nil && a != o.Address {
		err = ErrDamaged
	}
	if err == nil {
		err = u.commit(a, syncDir)
	}
	if err != nil {
		u.err = err
		return fmt.Errorf("write object %s: %w", o.Address, err)
	}
	return nil
}

// Flush makes the names of all copies durable.
func (s *Store) Flush() (err error) {
	for _, p := range s.providers {
		err = errors.Join(err, p.Port.Flush())
	}
	return err
}

// Repair writes copies or shards of an object from the other ones, in one pass, and reads them back. It returns an error for each part, nil if
// it is good now: a *SourceError if the object cannot be read. pace is called before each read with the number of its bytes; its error
// ends the repair. The file that was there is replaced when the new one is durable. The parts are of one scheme. At most one repair of an
// object may run at a time.
func (s *Store) Repair(o storage.Stored, parts []Part, pace func(bytes int) error) []error {
	s.setRepairs(o.File, true)
	defer s.setRepairs(o.File, false)
	failed := make([]error, len(parts))
	targets, err := s.writeParts(o, parts, pace)
	for i, part := range parts {
		switch {
		case targets != nil && targets[i].err != nil:
			failed[i] = targets[i].err
		case err != nil:
			failed[i] = err
		default:
			failed[i] = s.VerifyPart(o, part, pace)
		}
	}
	return failed
}

// writeParts writes parts of an object. It returns an error if all have failed.
func (s *Store) writeParts(o storage.Stored, parts []Part, pace func(bytes int) error) ([]target, error) {
	u := &Upload{store: s, file: o.File, expected: o.Size, scheme: parts[0].Scheme, silent: true, replaces: true, repairs: true}
	x := &Object{store: s, order: s.order(o.File)}
	for _, part := range parts {
		u.targets = append(u.targets, target{member: s.providers[part.Provider], shard: part.Shard})
		x.order = x.order.Last(part.Provider) // what is left of a damaged part may be needed: others may be damaged elsewhere
	}
	if err := x.open(o); err != nil {
		return nil, &SourceError{err}
	}
	defer x.Close()
	x.limits().pace = pace
	for _, t := range u.targets {
		for _, draft := range [...]string{partSuffix, nodesSuffix + partSuffix} { // of an upload that a crash ended
			if err := t.remove(number(o.File) + draft); err != nil {
				return nil, err
			}
		}
	}
	return u.targets, u.copy(x, o, true)
}

func (s *Store) setRepairs(f storage.File, runs bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if runs {
		s.repairs[f] = true
	} else {
		delete(s.repairs, f)
	}
}

// VerifyPart reads a copy or a shard of an object and returns why it cannot be read as a whole: ErrGone, ErrDamaged, the error of a read
// or that of pace, which is called before each read; nil: no limit.
func (s *Store) VerifyPart(o storage.Stored, part Part, pace func(bytes int) error) error {
	p, limit := s.providers[part.Provider], &pacing{pace: pace}
	var err error
	if part.Scheme.IsSet() {
		var f *shardFile
		if f, err = s.openShard(o, part, limit); err != nil {
			return err
		}
		defer f.close()
		err = f.verify()
	} else {
		var c *content
		if c, err = p.open(o); err != nil {
			return err
		}
		defer c.close()
		c.pacing = limit
		err = c.writeRange(0, o.Size, func([]byte) error { return nil })
	}
	if limit.paced != nil {
		return limit.paced
	}
	return p.note(err)
}

// RemovePart removes a copy or a shard of an object. The caller knows that the object has enough others.
func (s *Store) RemovePart(o storage.Stored, part Part) error {
	p, base := s.providers[part.Provider], name(o.Address, o.File)
	names := []string{base, base + objectSuffix, base + nodesSuffix} // without its content a copy is gone
	if part.Scheme.IsSet() {
		shard := base + shardSuffix(part.Scheme, part.Shard)
		names = []string{shard, shard + nodesSuffix}
	}
	for _, n := range names {
		if err := p.remove(n); err != nil {
			return fmt.Errorf("remove a copy: %w", err)
		}
	}
	return nil
}

// RemoveReplaced removes what an object had before it was copied, if that is of another scheme than an upload of its size has now.
func (s *Store) RemoveReplaced(o storage.Stored, before Files) (err error) {
	is := coding.Scheme{}
	if s.copies.Coding.Applies(o.Size) {
		is = s.copies.Coding
	}
	for _, had := range before.partsOf(o) {
		if had.Scheme == is {
			continue
		}
		for _, part := range had.List() {
			err = errors.Join(err, s.RemovePart(o, part))
		}
	}
	return err
}

// CheckPart returns why a copy or a shard of an object cannot be read, as far as the names and sizes of its files say it.
func (s *Store) CheckPart(o storage.Stored, part Part) error {
	if part.Scheme.IsSet() {
		f, err := s.openShard(o, part, nil)
		if err == nil {
			f.close()
		}
		return err
	}
	c, err := s.providers[part.Provider].open(o)
	if err == nil {
		c.close()
	}
	return err
}

// Verify reads an object and returns why it cannot be read as a whole: ErrGone, ErrDamaged or the error of a read.
func (s *Store) Verify(o storage.Stored) error {
	x, err := s.Get(o.Address, o.Object)
	if err != nil {
		return err
	}
	defer x.Close()
	return x.WriteRange(0, o.Size, func([]byte) error { return nil })
}

// Check returns why an object cannot be read, as far as the names and sizes of its files say it.
func (s *Store) Check(o storage.Stored) error {
	x, err := s.Get(o.Address, o.Object)
	if err == nil {
		x.Close()
	}
	return err
}

// Table returns the places of copies, and Copies how many an object has.
func (s *Store) Table() *placement.Table { return &s.table }
func (s *Store) Copies() Copies          { return s.copies }
