package fs

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
)

// A HeldFile is a file that is locked for this process. The lock ends with Close, or with the process. It does not disturb Pin, which locks
// the directory itself.
type HeldFile struct {
	path string
	lock *os.File
}

// LockFile locks a file of a directory for this process, and makes it if it is not there; ErrHeld if another process holds it. holder is
// shown to other processes that try. If it cannot be written, as on a full disk, the holder is not named. The file is never removed.
func LockFile(d Dir, name, holder string) (*HeldFile, error) {
	path := d.path(name)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
	if errors.Is(err, syscall.EROFS) {
		f, err = os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	}
	if err != nil {
		return nil, fmt.Errorf("fs: lock %s: %w", path, err)
	}
	err = again(func() error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) })
	switch {
	case errors.Is(err, syscall.EWOULDBLOCK):
		err = fmt.Errorf("%w: %s is held by %s", ErrHeld, path, holderIn(f))
	case err != nil:
		err = fmt.Errorf("fs: lock %s: %w", path, err)
	default:
		h := &HeldFile{path, f}
		if err = h.Check(); err == nil {
			_ = f.Truncate(0)                                                              // an old name is shown otherwise
			_, _ = f.WriteAt(fmt.Appendf(nil, "process %d, %s\n", os.Getpid(), holder), 0) // the lock does not depend on it
			return h, nil
		}
	}
	return nil, errors.Join(err, f.Close())
}

// holderIn returns the name that the holder left.
func holderIn(f *os.File) string {
	var buf [4 * maxHolder]byte
	n, _ := f.ReadAt(buf[:], 0) // an unreadable name is empty
	if holder := strings.TrimSpace(string(buf[:n])); holder != "" {
		return holder
	}
	return "a process that left no name (fuser -v shows the process)"
}

// Close unlocks the file.
func (h *HeldFile) Close() error { return h.lock.Close() }

// Check returns ErrLost if the path now leads to another file, or to none. Another process can lock that one.
func (h *HeldFile) Check() error {
	locked, err := h.lock.Stat()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrLost, err)
	}
	there, err := os.Lstat(h.path)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrLost, err)
	}
	if !os.SameFile(locked, there) {
		return fmt.Errorf("%w: another file is at %s", ErrLost, h.path)
	}
	return nil
}
