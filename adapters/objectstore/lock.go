package objectstore

import (
	"errors"
	"fmt"

	"macronode/adapters/fs"
	"macronode/adapters/provider"
)

// lockName is the name of the file that a running node, or a restore, locks in the directory of a provider.
const lockName = "provider.lock"

// lock locks the directory of p for this process; fs.ErrHeld if another process holds it. A directory in the data directory is locked with
// that one. Buckets have no lock, nor have directories of a file system without locks.
func (s *Store) lock(p *member) error {
	if p.Far || p.Own || s.owner.Holder == "" {
		return nil
	}
	if p.lock.Load() != nil {
		if err := p.checkLock(); !errors.Is(err, fs.ErrLost) {
			return err
		}
		p.release()
	}
	held, ok, err := provider.Change(p.Port, func(dir fs.Dir) (*fs.HeldFile, error) { return fs.LockFile(dir, lockName, s.owner.Holder) },
		func(late *fs.HeldFile) { _ = late.Close() }) // the next probe locks it
	if !ok {
		return nil
	}
	if errors.Is(err, provider.ErrUnavailable) {
		return err
	}
	if errors.Is(err, fs.ErrHeld) {
		return fmt.Errorf("provider %s: %w; two processes must not use one provider: end that one, or correct storage.providers", p.Name, err)
	}
	if err == nil {
		p.lock.Store(held)
	}
	return nil
}

// checkLock returns fs.ErrLost if the directory of p is not the one that was locked, or another error if that cannot be known now.
func (m *member) checkLock() error {
	held := m.lock.Load()
	if held == nil {
		return nil
	}
	_, _, err := provider.Call(m.Port, func(fs.Dir) (struct{}, error) { return struct{}{}, held.Check() }, func(struct{}) {})
	return err
}

// release unlocks the directory of p.
func (m *member) release() {
	if held := m.lock.Swap(nil); held != nil {
		_, _, _ = provider.Change(m.Port, func(fs.Dir) (struct{}, error) { return struct{}{}, held.Close() }, func(struct{}) {}) // it was only locked
	}
}

// Release unlocks the directories that Claim and Probe have locked. The store is not used afterwards.
func (s *Store) Release() {
	for _, p := range s.providers {
		p.release()
	}
}
