package fs

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
)

// ErrHeld says that another process works in the directory.
var ErrHeld = errors.New("fs: the directory is in use")

// LockName is the file that says who works in a directory. It stays there: the lock
// is on it, not in it, and ends with the process however that ends.
const LockName = "LOCK"

const maxHolder = 256 // bytes that are read of what a holder says of itself

// Lock holds a directory for this process until the closer is closed. version is
// what the next one is told, should it come too early.
func Lock(d Dir, version string) (io.Closer, error) {
	f, err := os.OpenFile(d.path(LockName), os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("fs: lock %s: %w", d, err)
	}
	if err = again(func() error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }); err != nil {
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = fmt.Errorf("%w: %s is held by %s", ErrHeld, d, holder(f))
		} else {
			err = fmt.Errorf("fs: lock %s: %w", d, err)
		}
		return nil, errors.Join(err, f.Close())
	}
	if err := sign(f, version); err != nil {
		return nil, errors.Join(fmt.Errorf("fs: lock %s: %w", d, err), f.Close())
	}
	return f, nil
}

// Hold is Lock for who only reads. Where a disk takes no writes nobody can be kept out, and
// nobody has to be: but one who works in the directory by another way to it is not read beside.
func Hold(d Dir, version string) (io.Closer, error) {
	held, err := Lock(d, version)
	if !errors.Is(err, syscall.EROFS) {
		return held, err
	}
	if who := Holder(d); who != "" {
		return nil, fmt.Errorf("%w: %s is held by %s", ErrHeld, d, who)
	}
	return io.NopCloser(nil), nil
}

// Holder is who works in a directory right now; empty: nobody, as far as can be told. Whoever
// looks stands in nobody's way: the lock is tried only where the process that signed last is there.
func Holder(d Dir) (who string) {
	f, err := os.OpenFile(d.path(LockName), os.O_RDONLY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return ""
	}
	defer f.Close() //nolint:errcheck // it was read; a lock on it ends with it
	pid, who := 0, holder(f)
	if n, _ := fmt.Sscanf(who, "process %d,", &pid); n != 1 || errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return ""
	}
	if err := again(func() error { return syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB) }); !errors.Is(err, syscall.EWOULDBLOCK) {
		return ""
	}
	return who
}

// sign says in the file who has the lock.
func sign(f *os.File, version string) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := f.WriteAt(fmt.Appendf(nil, "process %d, %s\n", os.Getpid(), version), 0)
	return err
}

// holder is what the file says of who has the lock: nothing yet, if that one has
// only just got it.
func holder(f *os.File) string {
	var said [maxHolder]byte
	n, _ := f.ReadAt(said[:], 0) // what cannot be read is not said
	if who := strings.TrimSpace(string(said[:n])); who != "" {
		return who
	}
	return "a process that is just starting"
}
