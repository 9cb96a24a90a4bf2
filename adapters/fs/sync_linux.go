package fs

import (
	"os"
	"syscall"
)

// Sync is fdatasync: all that is needed to read the bytes back, without the times
// that fsync would write as well.
func (f file) Sync() error {
	if err := again(func() error { return syscall.Fdatasync(int(f.Fd())) }); err != nil {
		return &os.PathError{Op: "fdatasync", Path: f.Name(), Err: err}
	}
	return nil
}
