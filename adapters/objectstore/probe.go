package objectstore

import (
	"fmt"

	"macronode/adapters/provider"
)

// Probe tries the i-th provider. It checks the identity of the directory, and returns why the directory cannot be read and why it
// takes no upload; nil if it can. A directory that cannot be read takes no upload either. A failed provider must also sync, and is
// then used again; a provider without space for uploads is not failed. If the node has too many open files, the provider stays as it is.
// Probe is not safe for concurrent use.
func (s *Store) Probe(i int) (unreadable, unwritable error) {
	p := s.providers[i]
	defer func() {
		if !IsShortage(unwritable) {
			p.noteSpace(unwritable)
		}
	}()
	if err := s.reclaim(p); err != nil {
		err = fmt.Errorf("probe objects: %w", err)
		if !IsShortage(err) { // else it is claimed, or has failed already
			p.fail(err)
		}
		return err, err
	}
	effort := provider.Routine
	if p.failed.Load() != nil { // its files may not have been read at the start
		effort = provider.Thorough
		names, err := p.Port.List()
		if err != nil {
			return err, err
		}
		s.reserveAll(names)
	}
	unreadable, unwritable = p.Port.Probe(effort)
	switch {
	case unwritable == nil:
		p.left.clear(p.Port) // before repairs look for copies
		p.failed.Store(nil)
		unwritable = s.checkSpace(p, 0)
	case unreadable != nil && !IsShortage(unreadable):
		p.fail(unreadable)
	default:
		_ = p.note(unwritable) // a full disk is no fault
	}
	return unreadable, unwritable
}

// reclaim checks the identity of the directory of p, after Claim.
func (s *Store) reclaim(p *member) error {
	if s.owner.Journal == 0 {
		return nil
	}
	return s.claim(p)
}
