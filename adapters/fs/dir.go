package fs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// Dir is a directory of the operating system: the path of one.
type Dir string

// file keeps os.File's errors: they name the operation and the path.
type file struct{ *os.File }

// Make is a directory that is there, and stays there when the power goes: what is
// missing of the path is made, for us alone.
func Make(path string) (Dir, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("fs: make %s: %w", path, err)
	}
	return Dir(abs), grow(abs)
}

// grow makes path below what there is of it. It ends at the root, which is there.
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

// Create makes a file that only we may read.
func (d Dir) Create(name string) (File, error) {
	return opened(os.OpenFile(d.path(name), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600))
}

// Open opens a file for reading.
func (d Dir) Open(name string) (File, error) { return opened(os.Open(d.path(name))) }

func opened(f *os.File, err error) (File, error) {
	if err != nil {
		return nil, err
	}
	return file{f}, nil
}

// Rename gives a file another name.
func (d Dir) Rename(from, to string) error { return os.Rename(d.path(from), d.path(to)) }

// Remove takes a name away.
func (d Dir) Remove(name string) error { return os.Remove(d.path(name)) }

// SyncDir makes all names durable as they are.
func (d Dir) SyncDir() error {
	f, err := os.Open(string(d))
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// List is the names of all files, sorted.
func (d Dir) List() ([]string, error) {
	all, err := os.ReadDir(string(d))
	names := make([]string, 0, len(all))
	for _, e := range all {
		if !e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// Free is what the file system has left for those who are not root.
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

// again calls a system call that a signal may interrupt until none does.
func again(call func() error) error {
	for {
		if err := call(); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}
