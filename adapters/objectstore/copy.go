package objectstore

import (
	"fmt"

	"macronode/core/storage"
)

// SourceError is why an object could not be read from the store that it is copied from.
type SourceError struct{ Err error }

func (e *SourceError) Error() string { return e.Err.Error() }

// Unwrap returns the reason: ErrGone, ErrDamaged or the error of a read.
func (e *SourceError) Unwrap() error { return e.Err }

// Copy copies an object from another store, under the same number. Every byte is verified. The copy is durable after
// Flush. The error is a *SourceError if the object cannot be read. Copy is not safe for concurrent use.
func (s *Store) Copy(from *Store, o storage.Stored) error {
	x, err := from.Get(o.Address, o.Object)
	if err != nil {
		return &SourceError{err}
	}
	defer x.Close()
	s.Reserve(o.File)
	u := &Upload{store: s, file: o.File}
	defer u.Done()
	err = x.WriteRange(0, o.Size, func(part []byte) error {
		_, err := u.Write(part)
		return err
	})
	if err != nil && u.err == nil {
		return &SourceError{err}
	}
	if _, err = u.Sum(); err == nil {
		err = u.finish(o.Address) // the parts were verified against the address
	}
	if err != nil {
		return fmt.Errorf("write object %s: %w", o.Address, err)
	}
	return nil
}

// Flush makes the names of all copies durable.
func (s *Store) Flush() error { return s.dir.SyncDir() }

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
