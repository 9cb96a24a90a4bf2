package fs

import (
	"errors"
	"io"
	"os"
	"syscall"
)

// ErrNotRegular reports a name of a directory, named pipe, socket or device where a file is expected.
var ErrNotRegular = errors.New("is not a regular file")

// OpenRegular opens a regular file for reading; symbolic links are followed. It never waits: opening a named pipe
// would otherwise wait for a writer. Its error is a *os.PathError.
func OpenRegular(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, syscall.ENXIO) { // a socket
		return nil, &os.PathError{Op: "open", Path: path, Err: ErrNotRegular}
	}
	if err != nil {
		return nil, err
	}
	is, err := f.Stat()
	if err == nil && !is.Mode().IsRegular() {
		err = &os.PathError{Op: "open", Path: path, Err: ErrNotRegular}
	}
	if err != nil {
		_ = f.Close() // it was not read
		return nil, err
	}
	return f, nil
}

// ReadRegular reads a whole regular file.
func ReadRegular(path string) ([]byte, error) {
	f, err := OpenRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	return io.ReadAll(f)
}
