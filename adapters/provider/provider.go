// Package provider is the port to the files of one provider of objects, and its implementation by a directory:
//
//	Create ──► draft ──► WriteAt ──► Sync ──► Put ──► file ──► Open, Stat, Remove
//	                                          Flush: its name is durable
//	CreateFile ──────────► WriteAt ──► Sync ──► file
//
// A draft is a file that is being written. Its name ends with DraftSuffix. The content of a file never changes: it is replaced or
// removed as a whole. The port verifies nothing: callers verify what they read. The tests of fstest.Provider define the
// behaviour, and every Port runs them.
package provider

import (
	"errors"
	"fmt"
	"slices"
	"syscall"

	"macronode/adapters/fs"
)

// DraftSuffix is the end of the names of drafts.
const DraftSuffix = ".part"

// ErrUnsuitable reports a provider that can never keep objects safely. A start is refused.
var ErrUnsuitable = errors.New("the provider is not suitable")

// ErrProbe reports a probe that reads other bytes than it has written.
var ErrProbe = errors.New("a probe reads other bytes than it has written")

// ErrUnavailable reports that a provider cannot be reached now. Its files may be good.
var ErrUnavailable = errors.New("the provider cannot be reached")

// ErrBusy reports that a provider has too many requests of this process. It has not failed.
var ErrBusy = fmt.Errorf("too many requests: %w", ErrUnavailable)

// shortages are what calls return if this machine lacks a resource.
var shortages = []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM}

// IsShortage reports whether a call failed because the node has too many open files, or too little memory. It says nothing about the provider
// or the file.
func IsShortage(err error) bool {
	return slices.ContainsFunc(shortages, func(s error) bool { return errors.Is(err, s) })
}

// A Port keeps the files of one provider. A missing name is os.ErrNotExist. Every call ends within a time that does not depend on the
// provider, except for calls to a directory of the operating system: see Timed.
type Port interface {
	// Create begins a draft. Its name must be new, else the error is os.ErrExist.
	Create(draft string) (fs.File, error)
	// Put makes a file of a draft that was synced. The name must be new, else the error is os.ErrExist and the draft stays. If the
	// outcome is unknown, the error is another one. Put may be repeated.
	Put(draft, name string) error
	// Replace is Put with a name that may exist. Readers see the old or the new content as a whole.
	Replace(draft, name string) error
	// Open opens a file for reads at any offset.
	Open(name string) (fs.File, error)
	// Stat returns the size of a file in bytes.
	Stat(name string) (int64, error)
	// Remove removes a file or a draft. A missing name may be reported.
	Remove(name string) error
	// List returns the names of all files and drafts, sorted.
	List() ([]string, error)
	// Flush makes the names of files durable.
	Flush() error
	// Free returns how many bytes drafts can take.
	Free() (uint64, error)
	// Probe tries the provider. It returns why files cannot be read, and why they cannot be written.
	Probe(e Effort) (unreadable, unwritable error)
	// Local returns the directory on this machine that the port uses. It is made at a start, and backups pin it.
	Local() (dir fs.Dir, ok bool)
}

// A Direct is a Port that also makes files without drafts.
type Direct interface {
	// CreateFile begins a file under its name, which must be new, else the error is os.ErrExist. The content is durable after Sync, the
	// name after Flush. A crash before both leaves any part of the file, so the name alone proves nothing.
	CreateFile(name string) (fs.File, error)
}

// Effort says how much a probe tries.
type Effort uint8

// The efforts of a probe.
const (
	Routine  Effort = iota // of a provider that works
	Thorough               // of a provider that has failed: what is written must be durable
)

// A Sequential is a file that reads a range faster if it is announced.
type Sequential interface {
	// Expect announces that the bytes from off up to end will be read in order.
	Expect(off, end uint64)
}
