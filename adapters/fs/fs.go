// Package fs is the port to one directory of files, and its implementation on the operating
// system. Written data is durable after Sync, a name after SyncDir. The tests of fstest.FS define
// the behaviour, and every FS runs them.
package fs

import (
	"errors"
	"io"
	"os"
)

// FS is one directory without subdirectories. A missing name is os.ErrNotExist; a name that must
// be new and exists is os.ErrExist.
type FS interface {
	Create(name string) (File, error) // for reading and writing; the name must be new
	Open(name string) (File, error)   // for reading only: nothing is changed in place
	Rename(from, to string) error     // replaces an existing file; an open file stays open
	Remove(name string) error
	SyncDir() error
	List() ([]string, error) // of files, sorted
	Free() (uint64, error)   // free bytes for this process
}

// File is read and written at offsets, by several goroutines if needed.
type File interface {
	ReadAt(p []byte, off int64) (int, error)  // io.EOF at a short read
	WriteAt(p []byte, off int64) (int, error) // past the end: the gap is zeros
	Sync() error                              // data and size, not the name
	Size() (int64, error)
	Close() error
}

// ReadAll reads a whole file.
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

// Replace replaces a file of that name, or makes one. If it returns nil, the text survives a power loss; otherwise the file has this text or the
// previous one.
func Replace(fsys FS, name, text string) error {
	part := name + ".new"
	if err := fsys.Remove(part); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	f, err := fsys.Create(part)
	if err != nil {
		return err
	}
	_, err = f.WriteAt([]byte(text), 0)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return errors.Join(fsys.Rename(part, name), fsys.SyncDir())
}
