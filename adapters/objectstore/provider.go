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
	"macronode/core/coding"
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

// Copies is how many copies an object has, and whether larger objects have shards instead.
type Copies struct {
	Count    int           // that an upload writes and a repair restores
	Required int           // that must be durable before an upload succeeds; of an object with shards, those of data and as many more
	Coding   coding.Scheme // of objects that are larger than a stripe; zero: all objects have copies
}

// Losses returns how many failure domains an object with all its copies or shards can lose.
func (c *Copies) Losses() int {
	if c.Coding.IsSet() {
		return min(c.Count-1, int(c.Coding.Parity))
	}
	return c.Count - 1
}

// Domains returns in how many failure domains an upload must be durable.
func (c *Copies) Domains() int {
	if c.Coding.IsSet() {
		return max(c.Required, c.requiredShards())
	}
	return c.Required
}

// requiredShards returns how many shards of an object must be durable before its upload succeeds: with fewer than those of data it cannot be
// read, and each one more is a provider that it can lose.
func (c *Copies) requiredShards() int {
	return min(c.Coding.Shards(), int(c.Coding.Data)+c.Required)
}

// Margin returns how many failure domains an object can lose that lacks nothing.
func (s *Store) Margin(o storage.Stored) int {
	if s.copies.Coding.Applies(o.Size) {
		return int(s.copies.Coding.Parity)
	}
	return s.copies.Count - 1
}

// member is a Provider of a store, with its health.
type member struct {
	Provider
	failed  atomic.Pointer[string] // why it is not used for uploads; nil: it is healthy
	full    atomic.Pointer[string] // why it had no space for uploads at the last probe, or at a write since; nil: it had
	claimed bool                   // since the start
	absent  atomic.Bool            // another directory, or none, is in the place of its directory: nothing is read or written there
	errors  atomic.Uint64          // failures of its files since the start
	lock    atomic.Pointer[fs.HeldFile]
	left    leftovers
	refused string // the last file that a bucket has forbidden to remove in a collection; empty: none
}

// note records an error of a file of m, and returns it. A fault of the device makes m failed until a probe succeeds, a lack of space full.
func (m *member) note(err error) error {
	switch {
	case isFault(err):
		m.fail(err)
	case isFull(err) && !errors.Is(err, ErrNoSpace): // whose bytes are counted each time
		m.noteSpace(err)
	}
	return err
}

// remove removes a file. A file that is not there is no error. If only this file cannot be removed, for example because it is immutable, m
// does not fail: its files can still be read.
func (m *member) remove(name string) error {
	err := m.Port.Remove(name)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case isOfDevice(err):
		return m.note(err)
	}
	return err
}

// isOfDevice reports whether the error of a removal is about the whole device. A bucket that forbids one removal cannot be reached for it only.
func isOfDevice(err error) bool {
	return !errors.Is(err, os.ErrPermission) && isAny(err, syscall.EIO, syscall.EROFS, syscall.ENODEV, syscall.ENXIO, syscall.ENOTCONN, syscall.ESTALE, ErrUnavailable)
}

// isForbidden reports whether the error of a removal is that a bucket forbids it.
func isForbidden(err error) bool {
	return errors.Is(err, os.ErrPermission) && errors.Is(err, ErrUnavailable)
}

// fail makes m failed until a probe succeeds.
func (m *member) fail(err error) {
	m.errors.Add(1)
	why := oneLine(err.Error())
	m.failed.Store(&why)
}

// isFault reports whether an error is a fault of the device: one that other files will meet as well.
func isFault(err error) bool {
	return err != nil && !isFull(err) && !IsShortage(err) && !isAny(err, ErrDamaged, ErrGone, ErrAbsent, ErrTooLong, fs.ErrNotRegular, provider.ErrBusy, os.ErrExist)
}

// IsShortage reports whether an error of a file says nothing about it, because the node has too many open files or too little memory.
func IsShortage(err error) bool { return provider.IsShortage(err) }

// isFull reports whether an error is a lack of space.
func isFull(err error) bool { return isAny(err, ErrNoSpace, syscall.ENOSPC, syscall.EDQUOT) }

func isAny(err error, known ...error) bool {
	return slices.ContainsFunc(known, func(k error) bool { return errors.Is(err, k) })
}

// noteSpace notes what a probe or a write has found.
func (m *member) noteSpace(unwritable error) {
	if !isFull(unwritable) {
		m.full.Store(nil)
		return
	}
	why := oneLine(unwritable.Error())
	m.full.Store(&why)
}

// away returns ErrUnavailable or ErrAbsent if an error of a file of m says nothing about the file, because m cannot be reached or has
// failed, or the node lacks a resource; nil: the file is damaged or gone.
func (m *member) away(err error) error {
	switch {
	case errors.Is(err, ErrUnavailable), errors.Is(err, ErrAbsent):
		return err
	case isFault(err), IsShortage(err), errors.Is(err, ErrGone) && m.failed.Load() != nil:
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return nil
}

// join returns why something cannot be read, of which a part is away and another one has an error; nil: none has.
func join(away, err error) error {
	if errors.Is(away, err) {
		return away
	}
	return errors.Join(away, err)
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
	Full         string // why it had no space for uploads at the last probe, or at a write since; empty: it had
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
		if why := p.full.Load(); why != nil {
			all[i].Full = *why
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

// Files are the names of all files of each provider at a time.
type Files struct {
	Names  [][]string    // of each provider, sorted
	Listed placement.Set // the providers that could be listed
	table  *placement.Table
}

// Files lists the files. It does not read them. A provider that cannot be listed has none; it is an error if no other one can be
// listed.
func (s *Store) Files() (Files, error) {
	files := Files{Names: make([][]string, len(s.providers)), table: &s.table}
	var failed error
	for i, p := range s.providers {
		names, err := p.list()
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("list objects: %w", p.note(err)))
			continue
		}
		s.noteSchemes(names)
		files.Names[i], files.Listed = names, files.Listed.With(i)
	}
	if files.Listed == 0 {
		return Files{}, failed
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
	return slices.ContainsFunc(f.Names, func(names []string) bool {
		return slices.ContainsFunc(names, func(n string) bool { _, ok := parseName(n); return ok })
	})
}

// Has reports whether an object can be read, as far as the names of its files say it.
func (f Files) Has(o storage.Stored) bool {
	parts := f.Parts(o)
	return parts.AreEnough()
}
