// Package fs is the port to one directory of files, and the real directory behind
// it. What was written is durable after Sync; that a name is there, after SyncDir.
// What each call promises is contract.FS, which every FS runs.
package fs

import (
	"errors"
	"io"
)

// FS is one directory without folders in it. A name that is not there is an error
// that is os.ErrNotExist, one that must be new and is not, os.ErrExist.
type FS interface {
	Create(name string) (File, error) // for reading and writing; the name must be new
	Open(name string) (File, error)   // for reading alone: nothing is ever changed in place
	Rename(from, to string) error     // replaces what was called to; an open file stays open
	Remove(name string) error
	SyncDir() error
	List() ([]string, error) // of files, sorted
	Free() (uint64, error)   // bytes that are left to us
}

// File is read and written at offsets, by several goroutines where it must be.
type File interface {
	ReadAt(p []byte, off int64) (int, error)  // io.EOF with less than was asked for
	WriteAt(p []byte, off int64) (int, error) // beyond the end: what lies between is zeros
	Sync() error                              // its bytes and its size; not its name
	Size() (int64, error)
	Close() error
}

// ReadAll is a file as a whole.
func ReadAll(fsys FS, name string) ([]byte, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	all := make([]byte, size)
	if _, err = f.ReadAt(all, 0); errors.Is(err, io.EOF) {
		err = nil
	}
	return all, err
}
