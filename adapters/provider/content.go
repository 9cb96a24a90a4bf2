package provider

import "macronode/adapters/fs"

// OpenContent opens a file with the content of an object. It is opened and read like any other file, except in the only directory of
// objects: there is no other copy to read, and BenchmarkRead shows what a time limit costs, so a call may wait as long as the disk. Once the
// disk is known to answer no read, the file cannot be opened, and its further reads fail at once.
func OpenContent(p Port, name string) (fs.File, error) {
	t, ok := p.(*Timed)
	if !ok || !t.isOnly() {
		return p.Open(name)
	}
	if err := t.reads.hangs(); err != nil {
		return nil, err
	}
	f, err := t.Port.Open(name)
	if err != nil {
		return nil, err
	}
	return &contentFile{f, t.reads}, nil
}

// A contentFile is an open file of the only directory.
type contentFile struct {
	fs.File
	reads *gate
}

// ReadAt reads, unless the disk answers no read.
func (f *contentFile) ReadAt(p []byte, off int64) (int, error) {
	if err := f.reads.hangs(); err != nil {
		return 0, err
	}
	return f.File.ReadAt(p, off)
}
