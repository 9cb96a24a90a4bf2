package audit

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// name is the name of the file. Rotated files are called name.1 (the newest), name.2 and so on.
const name = "audit.log"

// ErrFile is returned if the path is not a regular file.
var ErrFile = errors.New("audit: not a regular file")

// file is an open audit file. Writes append to it.
type file interface {
	io.Writer
	Sync() error
	Close() error
	// Here reports whether the path still refers to this file.
	Here() bool
}

// opened is an open file with its size. torn states that its last line has no newline.
type opened struct {
	file
	size int64
	torn bool
}

// pen writes whole lines and rotates the file when it is full. After an error it opens the file
// again, so that size and torn come from the disk.
type pen struct {
	dir    string
	limits Limits
	open   func(path string) (opened, error)
	at     opened // without a file: to be opened
}

// write appends lines and returns how many of their bytes are in the file.
func (p *pen) write(lines []byte) (n int, err error) {
	if n, err = p.add(lines); err != nil && p.at.file != nil {
		err = errors.Join(err, p.at.Close())
		p.at = opened{}
	}
	return n, err
}

func (p *pen) add(lines []byte) (n int, err error) {
	if p.at.file != nil && !p.at.Here() { // the file was moved or removed
		err = p.at.Close()
		p.at = opened{}
		if err != nil {
			return 0, fmt.Errorf("close the previous audit file: %w", err)
		}
	}
	if p.at.file == nil {
		if p.at, err = p.open(filepath.Join(p.dir, name)); err != nil {
			return 0, fmt.Errorf("open the audit file: %w", err)
		}
	}
	if len(lines) == 0 {
		return 0, nil
	}
	if p.at.size > 0 && p.at.size+int64(len(lines)) > p.limits.Size {
		if err := p.turn(); err != nil {
			return 0, fmt.Errorf("rotate the audit file: %w", err)
		}
	}
	if p.at.torn {
		if _, err := p.at.Write([]byte{'\n'}); err != nil {
			return 0, fmt.Errorf("terminate a torn audit line: %w", err)
		}
		p.at.torn = false
		p.at.size++
	}
	n, err = p.at.Write(lines)
	p.at.size += int64(n)
	if err != nil {
		return n, fmt.Errorf("write the audit file: %w", err)
	}
	return n, nil
}

// turn rotates the full file and opens a new one.
func (p *pen) turn() error {
	if err := p.lay(); err != nil {
		return err
	}
	path := filepath.Join(p.dir, name)
	old := func(i int) string { return path + "." + strconv.Itoa(i) }
	gap := 1 // an earlier rotation that failed may have left a gap; no file is moved twice
	for gap < p.limits.Keep {
		if _, err := os.Lstat(old(gap)); errors.Is(err, fs.ErrNotExist) {
			break
		}
		gap++
	}
	for ; gap > 1; gap-- {
		if err := os.Rename(old(gap-1), old(gap)); err != nil {
			return err
		}
	}
	if err := os.Rename(path, old(1)); err != nil {
		return err
	}
	var err error
	p.at, err = p.open(path)
	return err
}

// lay syncs and closes the file.
func (p *pen) lay() error {
	if p.at.file == nil {
		return nil
	}
	err := errors.Join(p.at.Sync(), p.at.Close())
	p.at = opened{}
	if err != nil {
		return fmt.Errorf("close the audit file: %w", err)
	}
	return nil
}

// disk is a regular file of the operating system.
type disk struct {
	*os.File
	path string
}

func (d disk) Here() bool {
	is, err := d.Stat()
	at, also := os.Lstat(d.path)
	return err == nil && also == nil && os.SameFile(is, at)
}

// open opens the file at path, or creates it with mode 0600. It returns an error for anything other
// than a regular file: it follows no symbolic link and does not block on a pipe.
func open(path string) (opened, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return opened{}, err
	}
	at := opened{file: disk{f, path}}
	is, err := f.Stat()
	if err == nil && !is.Mode().IsRegular() {
		err = ErrFile
	}
	switch {
	case err != nil:
	case is.Size() == 0:
		err = syncDir(filepath.Dir(path)) // the file may be new
	default:
		var last [1]byte
		_, err = f.ReadAt(last[:], is.Size()-1)
		at.size, at.torn = is.Size(), last[0] != '\n'
	}
	if err != nil {
		return opened{}, errors.Join(err, f.Close())
	}
	return at, nil
}

func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
