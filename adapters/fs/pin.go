package fs

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

// Pin makes Unpinned report ErrHeld for a directory until Close, or until the process ends. Several processes can pin
// one directory. Pin waits for a caller that holds it by Unpinned.
func Pin(d Dir) (io.Closer, error) { return flock(d, syscall.LOCK_SH) }

// Unpinned holds a directory that no process pins, so that Pin waits until Close; ErrHeld if one pins it.
func Unpinned(d Dir) (io.Closer, error) { return flock(d, syscall.LOCK_EX|syscall.LOCK_NB) }

func flock(d Dir, how int) (io.Closer, error) {
	f, err := os.OpenFile(string(d), os.O_RDONLY|syscall.O_DIRECTORY, 0)
	if err != nil {
		return nil, fmt.Errorf("fs: pin %s: %w", d, err)
	}
	err = again(func() error { return syscall.Flock(int(f.Fd()), how) })
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = ErrHeld
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("fs: pin %s: %w", d, err), f.Close())
	}
	return f, nil
}
