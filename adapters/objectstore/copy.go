package objectstore

import (
	"errors"
	"fmt"
	"os"

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
	u := &Upload{store: s, file: o.File, silent: true, replaces: true}
	u.choose()
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
	case err != nil && x.paced != nil:
		return x.paced
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

// Repair writes a copy of an object into the i-th provider from the other ones, and reads it back. The error is a *SourceError if no
// other copy can be read. pace is called before each read with the number of its bytes; its error ends the repair. The copy that was
// there is replaced when the new one is durable. At most one repair of an object may run at a time.
func (s *Store) Repair(o storage.Stored, i int, pace func(bytes int) error) error {
	s.setRepairs(o.File, true)
	defer s.setRepairs(o.File, false)
	order := s.order(o.File)
	x := &Object{store: s, order: order.Without(i)}
	if err := x.open(o); err != nil {
		return &SourceError{err}
	}
	defer x.Close()
	x.pace = pace
	u := &Upload{store: s, file: o.File, silent: true, replaces: true}
	u.one[0].member = s.providers[i]
	u.targets = u.one[:]
	for _, part := range [...]string{partSuffix, nodesSuffix + partSuffix} { // of an upload that a crash ended
		if err := s.providers[i].Port.Remove(number(o.File) + part); err != nil && !errors.Is(err, os.ErrNotExist) {
			return s.providers[i].note(err)
		}
	}
	if err := u.copy(x, o, true); err != nil {
		return err
	}
	return s.VerifyCopy(o, i, pace)
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

// VerifyCopy reads the copy of an object in the i-th provider and returns why it cannot be read as a whole: ErrGone, ErrDamaged, the
// error of a read or that of pace, which is called before each read; nil: no limit.
func (s *Store) VerifyCopy(o storage.Stored, i int, pace func(bytes int) error) error {
	p := s.providers[i]
	c, err := p.open(o)
	if err != nil {
		return err
	}
	defer c.close()
	c.pace = pace
	if err = c.writeRange(0, o.Size, func([]byte) error { return nil }); c.paced != nil {
		return c.paced
	}
	return p.note(err)
}

// CheckCopy returns why the copy of an object in the i-th provider cannot be read, as far as the names and sizes of its files say it.
func (s *Store) CheckCopy(o storage.Stored, i int) error {
	c, err := s.providers[i].open(o)
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
