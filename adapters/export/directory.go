package export

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"

	"macronode/adapters/fs"
)

// ErrDirectory is why a file sink may not use its directory: the node itself, another sink or another process has it.
var ErrDirectory = errors.New("export: a file sink needs a directory of its own")

// A Reserved is a directory in which the node keeps something else. No file sink may use it.
type Reserved struct {
	Path string
	What string // for people, such as: the journal
	Only bool   // directories in it are free
}

// directory is the directory of a file sink. While it is locked, no other sink and no other process writes into it.
type directory struct {
	path     string
	holder   string // shown to others that try
	reserved []Reserved
	disk     disker
	lock     *fs.Held // nil: not locked, or the file system cannot lock
	is       atomic.Pointer[os.FileInfo]
}

// open creates and locks the directory. It returns ErrDirectory if it is not free. If it was replaced since then, it is locked anew. If it
// was removed since then, it is not created again: its file system may be unmounted.
func (d *directory) open() error {
	if d.lock != nil && d.lock.Check() == nil {
		return nil
	}
	if err := d.close(); err != nil {
		return err
	}
	at, err := d.make()
	if err != nil {
		return err
	}
	if err := d.checkReserved(); err != nil {
		return err
	}
	is, err := os.Stat(d.path)
	if err != nil {
		return err
	}
	d.is.Store(&is)
	lock, err := d.disk.lock(at, d.holder)
	switch {
	case errors.Is(err, fs.ErrHeld):
		return fmt.Errorf("%w: %w", ErrDirectory, err)
	case errors.Is(err, syscall.EBADF), errors.Is(err, syscall.ENOLCK), errors.Is(err, syscall.ENOTSUP): // such as NFS
		return nil
	}
	d.lock = lock
	return err
}

// make creates the directory when it is opened for the first time.
func (d *directory) make() (fs.Dir, error) {
	if d.is.Load() == nil {
		return fs.Make(d.path)
	}
	at, err := filepath.Abs(d.path)
	if err == nil {
		_, err = os.Stat(at)
	}
	if errors.Is(err, os.ErrNotExist) {
		err = fmt.Errorf("%s was removed: mount its disk, bring it back or create it", d.path)
	}
	return fs.Dir(at), err
}

// checkReserved returns ErrDirectory if the directory, or one that it is in, is a reserved one. It compares what the paths lead to.
func (d *directory) checkReserved() error {
	at, err := filepath.EvalSymlinks(d.path)
	if err != nil {
		return err
	}
	for own := true; ; own = false {
		is, err := os.Stat(at)
		if err != nil {
			return err
		}
		for _, r := range d.reserved {
			if other, err := os.Stat(r.Path); err == nil && os.SameFile(is, other) && (own || !r.Only) {
				return fmt.Errorf("%w: %s is or is in %s, %s", ErrDirectory, d.path, r.Path, r.What)
			}
		}
		if at == filepath.Dir(at) {
			return nil
		}
		at = filepath.Dir(at)
	}
}

// release unlocks the directory if it is no longer at its path.
func (d *directory) release() error {
	if d.lock == nil || d.lock.Check() == nil {
		return nil
	}
	return d.close()
}

// close unlocks the directory.
func (d *directory) close() error {
	if d.lock == nil {
		return nil
	}
	err := d.lock.Close()
	d.lock = nil
	return err
}

// Directory returns the identity of the directory of a file sink, as its last attempt or claim has found it; nil: there was none yet, or
// the sink is of another kind. It reads no disk, which may hang. Unlike the lock, it is there for a sink that fails.
func Directory(s Sink) os.FileInfo {
	if f, ok := s.(*fileSink); ok {
		if is := f.dir.is.Load(); is != nil {
			return *is
		}
	}
	return nil
}

// Claim locks the directory of a file sink for this process, until the sink is closed. It returns ErrDirectory if the directory is
// not free. Other errors are left to the first attempt, which tries again. Other kinds of sinks need no claim.
func Claim(s Sink) error {
	f, ok := s.(*fileSink)
	if !ok {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.dir.open(); errors.Is(err, ErrDirectory) {
		return err
	}
	return nil
}
