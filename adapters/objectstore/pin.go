package objectstore

import (
	"errors"
	"io"

	"macronode/adapters/fs"
)

// Pin makes Unpinned report fs.ErrHeld until Close. It waits for a caller that holds the directories by Unpinned. A
// directory that cannot be opened is left out if another one can be opened.
func (s *Store) Pin() (io.Closer, error) { return s.hold(fs.Pin) }

// Unpinned holds the directories of all providers, so that Pin waits until Close; fs.ErrHeld if one is pinned. A
// directory that cannot be opened is left out if another one can be opened.
func (s *Store) Unpinned() (io.Closer, error) { return s.hold(fs.Unpinned) }

// closers closes several at once.
type closers []io.Closer

// Close closes all.
func (c closers) Close() (err error) {
	for _, one := range c {
		err = errors.Join(err, one.Close())
	}
	return err
}

func (s *Store) hold(how func(fs.Dir) (io.Closer, error)) (io.Closer, error) {
	var held closers
	var failed error
	for _, p := range s.providers {
		dir, ok := p.Port.Local()
		if !ok {
			continue
		}
		c, err := how(dir)
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
