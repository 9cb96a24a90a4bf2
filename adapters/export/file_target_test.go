package export

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"macronode/adapters/fs"
)

// fileTarget is a directory on a disk with faults.
type fileTarget struct {
	disk
	t     testing.TB
	dir   string
	fault string
}

func (f *fileTarget) sink() Sink { return newFile(&Config{Name: "test", Dir: f.dir}, 150, f) }

func (f *fileTarget) arm(fault string, _ uint64) { f.fault = fault }

// seqs reads the files in their order, and checks that every line is whole.
func (f *fileTarget) seqs() (all []uint64) {
	names, err := filepath.Glob(filepath.Join(f.dir, "usage-*.ndjson"))
	if err != nil {
		f.t.Fatal(err)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			f.t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			var at struct{ Seq uint64 }
			if err := json.Unmarshal([]byte(line), &at); err != nil || !strings.HasSuffix(line, "\n") {
				f.t.Fatalf("%s has the line %q: %v", name, line, err)
			}
			all = append(all, at.Seq)
		}
	}
	return all
}

func (f *fileTarget) lock(dir fs.Dir, holder string) (*fs.Held, error) {
	if f.fault == "cannot lock" {
		return nil, syscall.EBADF // as NFS returns
	}
	return f.disk.lock(dir, holder)
}

func (f *fileTarget) open(path string) (file, error) {
	of, err := f.disk.open(path)
	if err != nil {
		return nil, err
	}
	return &faultyFile{file: of, of: f}, nil
}

type faultyFile struct {
	file
	of    *fileTarget
	wrote bool
}

var errFault = errors.New("the disk is broken")

func (f *faultyFile) WriteAt(b []byte, at int64) (int, error) {
	if size, err := f.Size(); err != nil || at < size { // the last line, when the file is opened
		return f.file.WriteAt(b, at)
	}
	f.wrote = true
	switch f.of.fault {
	case "torn write":
		n, _ := f.file.WriteAt(b[:len(b)/2], at)
		f.of.fault = ""
		return n, syscall.ENOSPC
	case "no truncate": // the torn line stays until the file is opened again
		n, _ := f.file.WriteAt(b[:len(b)/2], at)
		return n, errFault
	case "no write":
		f.of.fault = ""
		return 0, errFault
	case "stale":
		return 0, syscall.ESTALE
	}
	return f.file.WriteAt(b, at)
}

func (f *faultyFile) Sync() error {
	switch {
	case f.of.fault == "no sync":
		f.of.fault = ""
		return errFault
	case f.of.fault == "kept" && f.wrote: // the line is whole and durable, and stays until the file is opened again
		return errors.Join(errFault, f.file.Sync())
	}
	return f.file.Sync()
}

func (f *faultyFile) Truncate(size int64) error {
	is, err := f.Size()
	shorter := err == nil && size < is
	if f.of.fault == "stale" || shorter && (f.of.fault == "no truncate" || f.of.fault == "kept") {
		f.of.fault = ""
		return errFault
	}
	return f.file.Truncate(size)
}
