package objectstore

import (
	"errors"
	"fmt"
	"os"

	"macronode/adapters/fs"
)

// probeName is a file that exists during Probe only. It is no name of an object, so the collector keeps away from it.
const probeName = ".probe"

// Probe tries the i-th provider. It checks the identity of the directory, writes a file, reads it and removes it, and returns why the directory cannot be read
// and why it cannot be written; nil if it can. A directory that cannot be read cannot be written either. If both are nil,
// the provider is healthy; a failed provider must also sync. Probe is not safe for concurrent use.
func (s *Store) Probe(i int) (unreadable, unwritable error) {
	p := s.providers[i]
	if err := s.reclaim(p); err != nil {
		err = fmt.Errorf("probe objects: %w", err)
		p.fail(err)
		return err, err
	}
	if p.failed.Load() != nil { // its files may not have been read at the start
		names, err := p.Dir.List()
		if err != nil {
			return err, err
		}
		s.reserveAll(names)
	}
	unreadable, unwritable = probe(p.Dir, p.failed.Load() != nil)
	switch {
	case unwritable == nil:
		p.failed.Store(nil)
	case unreadable != nil:
		p.fail(unreadable)
	default:
		_ = p.note(unwritable) // a full disk is no fault
	}
	return unreadable, unwritable
}

// reclaim checks the identity of the directory of p, after Claim.
func (s *Store) reclaim(p *provider) error {
	if s.owner.Journal == 0 {
		return nil
	}
	return s.claim(p, 0)
}

func probe(dir fs.FS, sync bool) (unreadable, unwritable error) {
	if _, err := dir.Free(); err != nil { // the directory is not there, or its file system does not answer
		err = fmt.Errorf("probe objects: %w", err)
		return err, err
	}
	if err := dir.Remove(probeName); err != nil && !errors.Is(err, os.ErrNotExist) { // left by a crash
		return nil, fmt.Errorf("probe objects: %w", err)
	}
	text := []byte("probe")
	if err := writeProbe(dir, text, sync); err != nil {
		return nil, fmt.Errorf("probe objects: %w", err)
	}
	unreadable = readProbe(dir, text)
	err := dir.Remove(probeName)
	if err == nil && sync {
		err = dir.SyncDir()
	}
	if err != nil {
		unwritable = fmt.Errorf("probe objects: %w", err)
	}
	return unreadable, errors.Join(unreadable, unwritable)
}

func writeProbe(dir fs.FS, text []byte, sync bool) error {
	f, err := dir.Create(probeName)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(text, 0)
	if err == nil && sync {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

func readProbe(dir fs.FS, want []byte) error {
	f, err := dir.Open(probeName)
	if err != nil {
		return fmt.Errorf("probe objects: %w", err)
	}
	defer f.Close() //nolint:errcheck // it was only read
	got := make([]byte, len(want))
	if _, err := f.ReadAt(got, 0); err != nil || string(got) != string(want) {
		return fmt.Errorf("probe objects: %w", errors.Join(ErrDamaged, err))
	}
	return nil
}
