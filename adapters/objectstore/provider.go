package objectstore

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync/atomic"
	"syscall"

	"macronode/adapters/fs"
	"macronode/adapters/provider"
	"macronode/core/placement"
	"macronode/core/storage"
)

// A Provider keeps copies of objects. What it returns is verified by the store.
type Provider struct {
	placement.Provider
	Port provider.Port
	Own  bool // the directory is in the data directory of the node
	Far  bool // it is reached over a network: it is read after the others, and tried thoroughly when it is claimed
}

// Copies is how many copies an object has.
type Copies struct {
	Count    int // that an upload writes and a repair restores
	Required int // that must be durable before an upload succeeds
}

// member is a Provider of a store, with its health.
type member struct {
	Provider
	failed atomic.Pointer[string] // why it is not used for uploads; nil: it is healthy
	absent atomic.Bool            // another directory, or none, is in the place of its directory: nothing is read or written there
	errors atomic.Uint64          // failures of its files since the start
}

// note records an error of a file of m, and returns it. A fault of the device makes m failed until a probe succeeds.
func (m *member) note(err error) error {
	if isFault(err) {
		m.fail(err)
	}
	return err
}

// fail makes m failed until a probe succeeds.
func (m *member) fail(err error) {
	m.errors.Add(1)
	why := err.Error()
	m.failed.Store(&why)
}

// isFault reports whether an error is a fault of the device: one that other files will meet as well.
func isFault(err error) bool {
	return err != nil && !slices.ContainsFunc([]error{ErrDamaged, ErrGone, ErrAbsent, ErrTooLong, ErrNoSpace, fs.ErrNotRegular, provider.ErrBusy, os.ErrExist, syscall.ENOSPC, syscall.EDQUOT},
		func(known error) bool { return errors.Is(err, known) })
}

// size returns the size of a file, or 0.
func (m *member) size(name string) uint64 {
	n, _ := m.Port.Stat(name)
	return uint64(max(n, 0))
}

// Health is the state of a provider.
type Health struct {
	Name, Domain string
	Far          bool
	Failed       string // why it is not used for uploads; empty: it is healthy
	Errors       uint64 // failures of its files since the start
}

// Health returns the state of all providers, in the order of the configuration.
func (s *Store) Health() []Health {
	all := make([]Health, len(s.providers))
	for i, p := range s.providers {
		all[i] = Health{Name: p.Name, Domain: p.Domain, Far: p.Far, Errors: p.errors.Load()}
		if why := p.failed.Load(); why != nil {
			all[i].Failed = *why
		}
	}
	return all
}

// healthy returns the providers that have not failed.
func (s *Store) healthy() (set placement.Set) {
	for i, p := range s.providers {
		if p.failed.Load() == nil {
			set = set.With(i)
		}
	}
	return set
}

// order returns the order in which the copies of a file are read: near ones, far ones, then those of failed providers.
func (s *Store) order(f storage.File) placement.Order {
	healthy := s.healthy()
	return s.table.Order(uint64(f), healthy&^s.far, healthy)
}

// MarkFailed makes the i-th provider failed until a probe succeeds.
func (s *Store) MarkFailed(i int, err error) { _ = s.providers[i].note(err) }

// Files are the names of all files of each provider at a time, sorted.
type Files [][]string

// Files lists the files. It does not read them. A provider that cannot be listed has none; it is an error if no other one can be
// listed.
func (s *Store) Files() (Files, error) {
	files, listed := make(Files, len(s.providers)), false
	var failed error
	for i, p := range s.providers {
		names, err := p.list()
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("list objects: %w", p.note(err)))
			continue
		}
		files[i], listed = names, true
	}
	if !listed {
		return nil, failed
	}
	return files, nil
}

// list returns the names of all files.
func (m *member) list() ([]string, error) {
	if m.absent.Load() {
		return nil, ErrAbsent
	}
	return m.Port.List()
}

// HasObjects reports whether there are files of objects.
func (f Files) HasObjects() bool {
	return slices.ContainsFunc(f, func(names []string) bool {
		return slices.ContainsFunc(names, func(n string) bool { _, ok := parseName(n); return ok })
	})
}

// Of returns which providers have a file of an object.
func (f Files) Of(o storage.Stored) (set placement.Set) {
	for i := range f {
		if f.in(i, o) {
			set = set.With(i)
		}
	}
	return set
}

// Has reports whether an object has its file in any provider.
func (f Files) Has(o storage.Stored) bool { return f.Of(o) != 0 }

func (f Files) in(i int, o storage.Stored) bool {
	return slices.ContainsFunc(layouts(o.Size), func(l layout) bool {
		_, ok := slices.BinarySearch(f[i], name(o.Address, o.File)+l.suffix())
		return ok
	})
}
