package fs

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
)

// Why a directory cannot be locked, or is no longer locked.
var (
	ErrHeld = errors.New("fs: the directory is in use")
	ErrLost = errors.New("fs: the locked directory is not there any more")
)

// LockName is the file with the name of the holder. The lock is on the directory itself, so
// removing the file does not unlock it. The file is never removed.
const LockName = "LOCK"

const maxHolder = 256 // most bytes of a holder's name

// A Held is a directory that is locked for this process. The lock ends with Close, or with the
// process.
type Held struct {
	dir  Dir
	lock *os.File
}

// Lock locks a directory for this process; ErrHeld if another process holds it. version is shown
// to other processes that try.
func Lock(d Dir, version string) (*Held, error) {
	h, err := lockDir(d)
	if err != nil {
		return nil, err
	}
	if err := sign(d, version); err != nil {
		return nil, errors.Join(fmt.Errorf("fs: lock %s: %w", d, err), h.Close())
	}
	return h, nil
}

// Hold is Lock for a process that only reads: if the disk is read-only, the holder is not named.
func Hold(d Dir, version string) (*Held, error) {
	h, err := lockDir(d)
	if err != nil {
		return nil, err
	}
	if err := sign(d, version); err != nil && !errors.Is(err, syscall.EROFS) {
		return nil, errors.Join(fmt.Errorf("fs: lock %s: %w", d, err), h.Close())
	}
	return h, nil
}

// lockDir locks a directory without waiting.
func lockDir(d Dir) (*Held, error) {
	f, err := os.OpenFile(string(d), os.O_RDONLY|syscall.O_DIRECTORY, 0)
	if err != nil {
		return nil, fmt.Errorf("fs: lock %s: %w", d, err)
	}
	err = again(func() error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) })
	switch {
	case err == nil:
		return &Held{dir: d, lock: f}, nil
	case errors.Is(err, syscall.EWOULDBLOCK):
		err = fmt.Errorf("%w: %s is held by %s", ErrHeld, d, named(d))
	default:
		err = fmt.Errorf("fs: lock %s: %w", d, err)
	}
	return nil, errors.Join(err, f.Close())
}

// Close unlocks the directory.
func (h *Held) Close() error { return h.lock.Close() }

// Check returns ErrLost if the path now leads to another directory: it was removed, renamed or
// mounted over. Another process can lock that one, so the holder must stop writing. Check takes
// at most two stat calls.
func (h *Held) Check() error {
	locked, err := h.lock.Stat()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrLost, err)
	}
	there, err := os.Stat(string(h.dir))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrLost, err)
	}
	if !os.SameFile(locked, there) {
		return fmt.Errorf("%w: another directory is at %s", ErrLost, h.dir)
	}
	return nil
}

// Holder returns the process that holds a directory, or "" if none does as far as is known. It
// tries the lock only if the named process exists, so that it does not disturb a process that is
// locking.
func Holder(d Dir) (holder string) {
	holder = named(d)
	pid := pidOf(holder)
	if pid == 0 || errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return ""
	}
	if held, err := isHeld(d); err != nil || !held {
		return ""
	}
	return holder
}

// HeldBy reports whether a process holds a directory. A holder that left no name may be any process. HeldBy tries the lock, so it is
// only for a process that exists: see Holder.
func HeldBy(d Dir, pid int) (bool, error) {
	holder := pidOf(named(d))
	held, err := isHeld(d)
	return held && (holder == 0 || holder == pid), err
}

// isHeld reports whether a process holds a directory. For an instant, it locks a directory that none holds.
func isHeld(d Dir) (bool, error) {
	f, err := flock(d, syscall.LOCK_SH|syscall.LOCK_NB)
	if err == nil {
		return false, f.Close()
	}
	if errors.Is(err, ErrHeld) {
		return true, nil
	}
	return false, err
}

// pidOf returns the process of a holder's name; 0: it has none.
func pidOf(holder string) (pid int) {
	if n, _ := fmt.Sscanf(holder, "process %d,", &pid); n != 1 {
		return 0
	}
	return pid
}

// sign writes the name of this process to the directory.
func sign(d Dir, version string) error {
	f, err := os.OpenFile(d.path(LockName), os.O_WRONLY|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return err
	}
	err = f.Truncate(0)
	if err == nil {
		_, err = f.WriteAt(fmt.Appendf(nil, "process %d, %s\n", os.Getpid(), version), 0)
	}
	return errors.Join(err, f.Close())
}

// named returns the name that the holder left; a general one if it has just locked, or if its file was removed.
func named(d Dir) string {
	const unnamed = "a process that left no name in " + LockName + ": it is just starting, or the file was removed or emptied while it runs (fuser -v shows the process)"
	f, err := os.OpenFile(d.path(LockName), os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return unnamed
	}
	defer f.Close() //nolint:errcheck // it was only read
	var buf [maxHolder]byte
	n, _ := f.ReadAt(buf[:], 0) // an unreadable name is empty
	if holder := strings.TrimSpace(string(buf[:n])); holder != "" {
		return holder
	}
	return unnamed
}
