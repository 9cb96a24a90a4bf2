package objectstore_test

import (
	"bytes"
	"errors"
	"syscall"
	"testing"

	"macronode/adapters/objectstore"
	"macronode/core/coding"
)

// TestShortageFailsNoProvider: if the node has too many open files, or too little memory, reads and uploads fail and may be repeated. No
// provider fails, and nothing is repaired: the files are good.
func TestShortageFailsNoProvider(t *testing.T) {
	for name, copies := range map[string]objectstore.Copies{"copies": {Count: 3, Required: 2}, "shards": {Count: 3, Required: 1, Coding: coding.Scheme{Data: 2, Parity: 1}}} {
		for _, short := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM} {
			t.Run(name+"/"+short.Error(), func(t *testing.T) {
				w, b := newCopies(3, copies), random(700_000)
				o := w.store(t, b)
				var reads []*failingReads
				for _, d := range w.devices {
					reads = append(reads, &failingReads{FS: d.FS})
					d.FS = reads[len(reads)-1]
				}
				healthy := func(when string) {
					t.Helper()
					for _, h := range w.Health() {
						if h.Failed != "" || h.Errors > 0 {
							t.Errorf("%s: %+v", when, h)
						}
					}
					if len(w.defects) > 0 {
						t.Errorf("%s: repairs of %v are planned", when, w.defects)
					}
				}
				for i := range w.devices {
					w.devices[i].err = short
					if unreadable, unwritable := w.Probe(i); !errors.Is(unwritable, short) {
						t.Errorf("probe: %v, %v", unreadable, unwritable)
					}
					if r, err := w.Restore(o, true, free); !errors.Is(err, short) || r.Lost || len(r.Written) > 0 {
						t.Errorf("repair: %+v, %v", r, err)
					}
					got, err := read(w.Store, o.Address, o.Object, 0, o.Size)
					if readable := i+1 < len(w.devices) && (i == 0 || !copies.Coding.IsSet()); readable && !bytes.Equal(got, b) || !readable && !errors.Is(err, objectstore.ErrUnavailable) {
						t.Errorf("%d providers: %d bytes, %v", i+1, len(got), err)
					}
					healthy("no file can be opened")
				}
				if u, _, err := put(w.Store, random(500_000), 50_000); !errors.Is(err, short) {
					t.Errorf("upload: %v", err)
				} else {
					u.Done()
				}
				healthy("an upload")
				for i, d := range w.devices {
					d.err, reads[i].err = nil, short
				}
				if _, err := read(w.Store, o.Address, o.Object, 0, o.Size); !errors.Is(err, objectstore.ErrUnavailable) {
					t.Errorf("no file can be read: %v", err)
				}
				healthy("no file can be read")
				for _, r := range reads {
					r.err = nil
				}
				if got, err := read(w.Store, o.Address, o.Object, 0, o.Size); err != nil || !bytes.Equal(got, b) {
					t.Errorf("later: %d bytes, %v", len(got), err)
				}
				healthy("later")
			})
		}
	}
}

// TestClaimWithoutFilesIsRepeated: a provider whose directory could not be claimed, because the node has too many open files, is not used before
// a probe has claimed it.
func TestClaimWithoutFilesIsRepeated(t *testing.T) {
	w := newCopies(2, two)
	w.devices[0].err = syscall.EMFILE
	if err := w.Claim(objectstore.Owner{Journal: 7}); err != nil {
		t.Fatal(err)
	}
	if h := w.Health(); h[0].Failed == "" || h[1].Failed != "" {
		t.Errorf("%+v", h)
	}
	w.devices[0].err = nil
	if unreadable, unwritable := w.Probe(0); unreadable != nil || unwritable != nil || w.Health()[0].Failed != "" {
		t.Errorf("%v, %v, %+v", unreadable, unwritable, w.Health())
	}
	w.disks[0].Leave(1000)
	if _, unwritable := w.Probe(0); !errors.Is(unwritable, objectstore.ErrNoSpace) {
		t.Error(unwritable)
	}
	full := w.Health()[0]
	w.devices[0].err = syscall.EMFILE
	if _, unwritable := w.Probe(0); !errors.Is(unwritable, syscall.EMFILE) || w.Health()[0] != full {
		t.Errorf("of a claimed one: %v, %+v, was %+v", unwritable, w.Health()[0], full)
	}
}
