package provider

import (
	"errors"
	"fmt"
	"os"

	"macronode/adapters/fs"
)

// Dir is a Port to one directory. The directory of a provider is on a disk of its own at best.
type Dir struct{ fs.FS }

// CreateFile begins a file under its name.
func (d Dir) CreateFile(name string) (fs.File, error) { return d.Create(name) }

// ListBy is List. It calls advance after each step, if the directory is one of the operating system.
func (d Dir) ListBy(advance func()) ([]string, error) {
	if dir, ok := d.Local(); ok {
		return dir.ListBy(advance)
	}
	return d.List()
}

// Put makes a file of a draft.
func (d Dir) Put(draft, name string) error {
	if r, ok := d.FS.(interface{ RenameNew(from, to string) error }); ok {
		return r.RenameNew(draft, name)
	}
	switch _, err := d.Stat(name); {
	case err == nil:
		return &os.PathError{Op: "put", Path: name, Err: os.ErrExist}
	case !errors.Is(err, os.ErrNotExist):
		return err
	}
	return d.Rename(draft, name)
}

// Replace makes a file of a draft.
func (d Dir) Replace(draft, name string) error { return d.Rename(draft, name) }

// Stat returns the size of a file.
func (d Dir) Stat(name string) (int64, error) {
	f, err := d.Open(name)
	if err != nil {
		return 0, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	return f.Size()
}

// Flush makes the names of files durable.
func (d Dir) Flush() error { return d.SyncDir() }

// Local returns the directory, if it is one of the operating system.
func (d Dir) Local() (fs.Dir, bool) {
	dir, ok := d.FS.(fs.Dir)
	return dir, ok
}

// ProbeName is a file that exists during Probe of a directory only. It is no name of an object, so the collector keeps away from it.
const ProbeName = ".probe"

// Probe writes a file, reads it and removes it. A directory that cannot be read cannot be written either.
func (d Dir) Probe(e Effort) (unreadable, unwritable error) {
	if _, err := d.Free(); err != nil { // the directory is not there, or its file system does not answer
		err = fmt.Errorf("probe objects: %w", err)
		return err, err
	}
	if err := d.Remove(ProbeName); err != nil && !errors.Is(err, os.ErrNotExist) { // left by a crash
		return nil, fmt.Errorf("probe objects: %w", err)
	}
	text := []byte("probe")
	if err := d.writeProbe(text, e); err != nil {
		return nil, fmt.Errorf("probe objects: %w", err)
	}
	unreadable = d.readProbe(text)
	err := d.Remove(ProbeName)
	if err == nil && e == Thorough {
		err = d.SyncDir()
	}
	if err != nil {
		unwritable = fmt.Errorf("probe objects: %w", err)
	}
	return unreadable, errors.Join(unreadable, unwritable)
}

func (d Dir) writeProbe(text []byte, e Effort) error {
	f, err := d.Create(ProbeName)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(text, 0)
	if err == nil && e == Thorough {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

func (d Dir) readProbe(want []byte) error {
	f, err := d.Open(ProbeName)
	if err != nil {
		return fmt.Errorf("probe objects: %w", err)
	}
	defer f.Close() //nolint:errcheck // it was only read
	got := make([]byte, len(want))
	if _, err := f.ReadAt(got, 0); err != nil || string(got) != string(want) {
		return fmt.Errorf("probe objects: %w", errors.Join(ErrProbe, err))
	}
	return nil
}
