package fs

import (
	"os"
	"syscall"
)

// Sync calls fdatasync, which makes data and size durable without timestamps.
func (f file) Sync() error {
	if err := again(func() error { return syscall.Fdatasync(int(f.Fd())) }); err != nil {
		return &os.PathError{Op: "fdatasync", Path: f.Name(), Err: err}
	}
	return nil
}
