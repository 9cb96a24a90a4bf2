package fs

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

// Dir is a directory of the operating system, by its path.
type Dir string

// file keeps the errors of os.File: they name the operation and the path.
type file struct{ *os.File }

// Make returns a directory that exists durably. Missing parts of the path are created with access
// for the owner only.
func Make(path string) (Dir, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("fs: make %s: %w", path, err)
	}
	return Dir(abs), grow(abs)
}

// grow creates the missing parts of path. The root exists.
func grow(path string) error {
	switch at, err := os.Stat(path); {
	case err == nil && !at.IsDir():
		return fmt.Errorf("fs: make %s: %w", path, syscall.ENOTDIR)
	case err == nil:
		return nil
	case !errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("fs: make %s: %w", path, err)
	}
	parent := filepath.Dir(path)
	if err := grow(parent); err != nil {
		return err
	}
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("fs: make %s: %w", path, err)
	}
	return Dir(parent).SyncDir()
}

func (d Dir) path(name string) string { return filepath.Join(string(d), name) }

// Create creates a file with access for the owner only.
func (d Dir) Create(name string) (File, error) {
	return opened(os.OpenFile(d.path(name), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600))
}

// Open opens a regular file for reading.
func (d Dir) Open(name string) (File, error) { return opened(OpenRegular(d.path(name))) }

func opened(f *os.File, err error) (File, error) {
	if err != nil {
		return nil, err
	}
	return file{f}, nil
}

// Rename renames a file.
func (d Dir) Rename(from, to string) error { return os.Rename(d.path(from), d.path(to)) }

// renameChecked is Rename to a name that is not there.
func (d Dir) renameChecked(from, to string) error {
	switch _, err := os.Lstat(d.path(to)); {
	case err == nil:
		return &os.LinkError{Op: "rename", Old: d.path(from), New: d.path(to), Err: os.ErrExist}
	case !errors.Is(err, os.ErrNotExist):
		return err
	}
	return d.Rename(from, to)
}

// Remove removes a name.
func (d Dir) Remove(name string) error { return os.Remove(d.path(name)) }

// SyncDir makes all names durable.
func (d Dir) SyncDir() error {
	f, err := os.Open(string(d))
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// List returns the names of all files, sorted.
func (d Dir) List() ([]string, error) { return d.ListBy(func() {}) }

// listStep is how many names are read at once.
const listStep = 1024

// ListBy is List. It calls advance after each step.
func (d Dir) ListBy(advance func()) (names []string, err error) {
	f, err := os.Open(string(d))
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	for err == nil {
		var some []os.DirEntry
		some, err = f.ReadDir(listStep)
		for _, e := range some {
			if !e.IsDir() {
				names = append(names, e.Name())
			}
		}
		advance()
	}
	slices.Sort(names)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return names, err
}

// Free returns the free bytes of the file system for users other than root.
func (d Dir) Free() (uint64, error) {
	var st syscall.Statfs_t
	if err := again(func() error { return syscall.Statfs(string(d), &st) }); err != nil {
		return 0, &os.PathError{Op: "statfs", Path: string(d), Err: err}
	}
	return uint64(st.Bavail) * uint64(st.Bsize), nil
}

func (f file) Size() (int64, error) {
	at, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return at.Size(), nil
}

// again repeats a system call that a signal interrupted.
func again(call func() error) error {
	for {
		if err := call(); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}
