package fs

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
)

// Why a directory cannot be locked, or is locked no longer.
var (
	ErrHeld = errors.New("fs: the directory is in use")
	ErrLost = errors.New("fs: the locked directory is not there any more")
)

// LockName is the file in which the holder of a directory is named. The lock is on the
// directory itself, so a removed file unlocks nothing. The file stays there.
const LockName = "LOCK"

const maxHolder = 256 // bytes that are read of what a holder says of itself

// A Held is a directory that is locked for this process. The lock ends with Close, and with the
// process however that ends.
type Held struct {
	dir  Dir
	lock *os.File
}

// Lock locks a directory for this process: ErrHeld where another one has it. version is shown
// to the next one that tries.
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

// Hold is Lock for a process that only reads: on a disk that takes no writes, it is not named.
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

// lockDir takes the lock of a directory. It does not wait.
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

// Close gives the directory back.
func (h *Held) Close() error { return h.lock.Close() }

// Check returns ErrLost if the path of the directory leads elsewhere by now: it was removed,
// renamed or mounted over. Another process can lock what is there then, so the holder must
// write nothing more. It does not block for longer than two looks at the directory.
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

// Holder names the process that holds a directory right now; empty: none does, as far as can be
// told. It disturbs no process that locks: it tries the lock only while the process that is named
// in the directory exists.
func Holder(d Dir) (who string) {
	who = named(d)
	pid := 0
	if n, _ := fmt.Sscanf(who, "process %d,", &pid); n != 1 || errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return ""
	}
	f, err := os.OpenFile(string(d), os.O_RDONLY|syscall.O_DIRECTORY, 0)
	if err != nil {
		return ""
	}
	defer f.Close() //nolint:errcheck // a lock on it ends with it
	if err := again(func() error { return syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB) }); !errors.Is(err, syscall.EWOULDBLOCK) {
		return ""
	}
	return who
}

// sign writes the name of this process into the directory.
func sign(d Dir, version string) error {
	f, err := os.OpenFile(d.path(LockName), os.O_WRONLY|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	err = f.Truncate(0)
	if err == nil {
		_, err = f.WriteAt(fmt.Appendf(nil, "process %d, %s\n", os.Getpid(), version), 0)
	}
	return errors.Join(err, f.Close())
}

// named returns the name that the holder of a directory left there; it is a general one where
// the holder has only just locked.
func named(d Dir) string {
	const unnamed = "a process that is just starting"
	f, err := os.OpenFile(d.path(LockName), os.O_RDONLY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return unnamed
	}
	defer f.Close() //nolint:errcheck // it was only read
	var said [maxHolder]byte
	n, _ := f.ReadAt(said[:], 0) // what cannot be read is not said
	if who := strings.TrimSpace(string(said[:n])); who != "" {
		return who
	}
	return unnamed
}
