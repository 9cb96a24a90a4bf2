package objectstore

import (
	"errors"
	"io"

	"macronode/adapters/fs"
	"macronode/adapters/provider"
)

// Pin makes Unpinned report fs.ErrHeld until Close. It waits for a caller that holds the directories by Unpinned. A
// directory that cannot be opened is left out if another one can be opened.
func (s *Store) Pin() (io.Closer, error) {
	held, err := s.hold(fs.Pin)
	if err != nil {
		return nil, err
	}
	return held, nil
}

// Unpinned holds the directories of all providers, so that Pin waits until Close; fs.ErrHeld if one is pinned. A
// directory that cannot be opened is left out if another one can be opened. Unpinned waits for another caller in this process.
func (s *Store) Unpinned() (io.Closer, error) {
	s.removal.Lock()
	held, err := s.hold(fs.Unpinned)
	if err != nil {
		s.removal.Unlock()
		return nil, err
	}
	return append(held, closer(s.removal.Unlock)), nil
}

// A closer is closed by a call.
type closer func()

// Close calls c.
func (c closer) Close() error { c(); return nil }

// closers closes several at once.
type closers []io.Closer

// Close closes all.
func (c closers) Close() (err error) {
	for _, one := range c {
		err = errors.Join(err, one.Close())
	}
	return err
}

// hold holds the directory of m. A pin may wait for another process, so it has no time limit, but a disk that hangs is not waited for.
func (m *member) hold(dir fs.Dir, how func(fs.Dir) (io.Closer, error)) (io.Closer, error) {
	if _, err := m.Port.Stat(identityName); errors.Is(err, provider.ErrUnavailable) {
		return nil, err
	}
	return how(dir)
}

// hold holds the directories that are local.
func (s *Store) hold(how func(fs.Dir) (io.Closer, error)) (held closers, err error) {
	var failed error
	for _, p := range s.providers {
		dir, ok := p.Port.Local()
		if !ok {
			continue
		}
		c, err := p.hold(dir, how)
		if errors.Is(err, fs.ErrHeld) {
			return nil, errors.Join(err, held.Close())
		}
		if err != nil {
			failed = errors.Join(failed, p.note(err))
			continue
		}
		held = append(held, c)
	}
	if len(held) == 0 {
		return nil, failed
	}
	return held, nil
}
