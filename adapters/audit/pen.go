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

// name is what the file is called; older ones are called name.1, the youngest, and on.
const name = "audit.log"

// ErrFile says that something stands in the file's place.
var ErrFile = errors.New("audit: no plain file")

// file is where lines go. It is written at its end.
type file interface {
	io.Writer
	Sync() error
	Close() error
	// Here reports that it is still what its name stands for.
	Here() bool
}

// opened is a file, and what is in it: so many bytes, the last of which does not end
// a line when torn.
type opened struct {
	file
	size int64
	torn bool
}

// pen writes whole lines, and begins another file where one is full. After an error it
// opens anew: what is in the file is then as the disk says.
type pen struct {
	dir    string
	limits Limits
	open   func(path string) (opened, error)
	at     opened // no file: to be opened
}

// write adds lines, and says how many bytes of them are in the file.
func (p *pen) write(lines []byte) (n int, err error) {
	if n, err = p.add(lines); err != nil && p.at.file != nil {
		err = errors.Join(err, p.at.Close())
		p.at = opened{}
	}
	return n, err
}

func (p *pen) add(lines []byte) (n int, err error) {
	if p.at.file != nil && !p.at.Here() { // somebody moved it, or took it away
		err = p.at.Close()
		p.at = opened{}
		if err != nil {
			return 0, fmt.Errorf("close the audit file of before: %w", err)
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
			return 0, fmt.Errorf("begin another audit file: %w", err)
		}
	}
	if p.at.torn {
		if _, err := p.at.Write([]byte{'\n'}); err != nil {
			return 0, fmt.Errorf("end a torn audit line: %w", err)
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

// turn puts the full file aside and begins another.
func (p *pen) turn() error {
	if err := p.lay(); err != nil {
		return err
	}
	path := filepath.Join(p.dir, name)
	old := func(i int) string { return path + "." + strconv.Itoa(i) }
	gap := 1 // a try that failed half way has left one: nothing is moved twice
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

// lay puts the pen down: all that was written is on the disk.
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

// disk is a plain file of ours.
type disk struct {
	*os.File
	path string
}

func (d disk) Here() bool {
	is, err := d.Stat()
	at, also := os.Lstat(d.path)
	return err == nil && also == nil && os.SameFile(is, at)
}

// open opens the file at path, or makes one that its owner alone may read. What is no
// plain file is not followed, and not waited for.
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
		err = syncDir(filepath.Dir(path)) // it may be new
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
