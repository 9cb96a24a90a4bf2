package export

import (
	"errors"
	"io"
	"os"

	"macronode/adapters/fs"
)

// disker is the disk of a file sink. A test replaces it to make it fail.
type disker interface {
	open(path string) (file, error) // to read and write; the file is created if there is none
	read(path string) (file, error) // to read only
	has(path string) bool
	list(dir string) (names []string, err error)
	syncDir(dir string) error // makes the names durable
	lock(dir fs.Dir, holder string) (*fs.Held, error)
}

type file interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Size() (int64, error)
	Truncate(size int64) error
	Sync() error
	isAt(path string) bool // the path refers to this file
}

// disk is the disk of the operating system.
type disk struct{}

var errRegular = errors.New("a file of the export is not a regular file")

func (disk) open(path string) (file, error) { return openRegular(path, os.O_RDWR|os.O_CREATE) }

func (disk) read(path string) (file, error) { return openRegular(path, os.O_RDONLY) }

func openRegular(path string, flags int) (file, error) {
	if is, err := os.Lstat(path); err == nil && !is.Mode().IsRegular() {
		return nil, errRegular
	} else if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	f, err := os.OpenFile(path, flags, 0o600)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

func (disk) has(path string) bool {
	is, err := os.Lstat(path)
	return err == nil && is.Mode().IsRegular()
}

func (disk) list(dir string) (names []string, err error) {
	all, err := os.ReadDir(dir)
	for _, e := range all {
		names = append(names, e.Name())
	}
	return names, err
}

func (disk) syncDir(dir string) error { return fs.Dir(dir).SyncDir() }

func (disk) lock(dir fs.Dir, holder string) (*fs.Held, error) { return fs.Lock(dir, holder) }

// osFile is a file of the operating system.
type osFile struct{ *os.File }

func (f osFile) Size() (int64, error) {
	is, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return is.Size(), nil
}

func (f osFile) isAt(path string) bool {
	is, err := f.Stat()
	at, also := os.Lstat(path)
	return err == nil && also == nil && os.SameFile(is, at)
}
