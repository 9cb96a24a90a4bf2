package objectstore_test

import (
	"bytes"
	"errors"
	"syscall"
	"testing"

	"macronode/adapters/fs"
	"macronode/adapters/objectstore"
	"macronode/chaos/world"
	"macronode/core/coding"
)

// failingReads is a directory whose open files cannot be read while err is set, although they can be opened.
type failingReads struct {
	fs.FS
	err error
}

func (d *failingReads) Open(name string) (fs.File, error) {
	f, err := d.FS.Open(name)
	return &failingFile{f, d}, err
}

type failingFile struct {
	fs.File
	of *failingReads
}

func (f *failingFile) ReadAt(p []byte, off int64) (int, error) {
	if f.of.err != nil {
		return 0, f.of.err
	}
	return f.File.ReadAt(p, off)
}

func (f *failingFile) Size() (int64, error) {
	if f.of.err != nil && errors.Is(f.of.err, syscall.ESTALE) {
		return 0, f.of.err
	}
	return f.File.Size()
}

// TestReadOfFailedProviders: a read that fails because providers have failed may succeed later, whatever the others have. One of files that
// are damaged or gone, in providers that work, does not.
func TestReadOfFailedProviders(t *testing.T) {
	for name, copies := range map[string]objectstore.Copies{"copies": {Count: 3, Required: 3}, "shards": {Count: 3, Required: 1, Coding: coding.Scheme{Data: 2, Parity: 1}}} {
		t.Run(name, func(t *testing.T) {
			w, b := newCopies(3, copies), random(700_000)
			o := w.store(t, b)
			var reads []*failingReads
			for _, d := range w.devices {
				reads = append(reads, &failingReads{FS: d.FS})
				d.FS = reads[len(reads)-1]
			}
			wants := func(when string, away bool) {
				t.Helper()
				if _, err := read(w.Store, o.Address, o.Object, 0, o.Size); err == nil || errors.Is(err, objectstore.ErrUnavailable) != away {
					t.Errorf("%s: %v", when, err)
				}
			}
			whole := func(when string) {
				t.Helper()
				for i, d := range w.devices {
					d.err, reads[i].err = nil, nil
					if unreadable, unwritable := w.Probe(i); unreadable != nil || unwritable != nil {
						t.Fatalf("%s: %v, %v", when, unreadable, unwritable)
					}
				}
				if got, err := read(w.Store, o.Address, o.Object, 0, o.Size); err != nil || !bytes.Equal(got, b) {
					t.Fatalf("%s: %d bytes, %v", when, len(got), err)
				}
			}
			for _, fault := range []syscall.Errno{syscall.EIO, syscall.ENOTDIR} {
				for _, d := range w.devices {
					d.err = fault
				}
				wants("no file can be opened: "+fault.Error(), true)
				whole(fault.Error())
			}
			for _, fault := range []syscall.Errno{syscall.EIO, syscall.ESTALE} {
				for _, d := range reads {
					d.err = fault
				}
				wants("no file can be read: "+fault.Error(), true)
				whole(fault.Error())
			}
			w.damage(t, 0, 100_005)
			w.damage(t, 1, 100_005)
			reads[2].err = world.ErrRead
			wants("two are damaged, one cannot be read", true)
			w.damage(t, 1, 100_005) // as it was
			whole("all can be read")
			w.remove(0)
			w.remove(1)
			w.devices[2].err = world.ErrRead
			wants("two are gone, one cannot be opened", true)
			w.devices[2].err = nil
			probe := func() {
				t.Helper()
				if unreadable, unwritable := w.Probe(2); unreadable != nil || unwritable != nil {
					t.Fatal(unreadable, unwritable)
				}
			}
			probe()
			w.damage(t, 2, 5)
			wants("two are gone, one is damaged", false)
			w.remove(2)
			w.MarkFailed(2, world.ErrRead)
			wants("all are gone, and one provider has failed", true)
			probe()
			wants("all are gone", false)
		})
	}
}
