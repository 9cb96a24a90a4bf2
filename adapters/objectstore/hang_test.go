package objectstore_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"macronode/adapters/objectstore"
	"macronode/adapters/provider"
	"macronode/chaos/world"
	"macronode/core/coding"
	"macronode/core/placement"
	"macronode/core/storage"
)

// TestReadSurvivesHangingDisk: while one disk does not answer, an object is read from the others, as copies and as shards. The provider has
// failed and is asked nothing more, also by probes. Once the disk answers, a probe makes it healthy.
func TestReadSurvivesHangingDisk(t *testing.T) {
	for name, copies := range map[string]objectstore.Copies{"copies": {Count: 2, Required: 2}, "shards": {Count: 3, Required: 1, Coding: coding.Scheme{Data: 2, Parity: 1}}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var disks []*world.Hanging
				var list []objectstore.Provider
				for i := range 3 {
					disk, name := &world.Hanging{FS: world.NewDisk()}, fmt.Sprintf("p%d", i)
					disks = append(disks, disk)
					list = append(list, objectstore.Provider{Provider: placement.Provider{Name: name, Domain: name, Weight: 1},
						Port: provider.NewTimed(provider.Dir{FS: disk}, provider.Answer)})
				}
				s, b := objectstore.NewCopies(list, copies, limits), random(700_000)
				u, a, err := put(s, b, 50_000)
				if err != nil {
					t.Fatal(err)
				}
				u.Done()
				row := storage.Object{Size: uint64(len(b)), File: u.File()}
				whole := func(when string) {
					t.Helper()
					if got, err := read(s, a, row, 0, row.Size); err != nil || !bytes.Equal(got, b) {
						t.Errorf("%s: %d bytes, %v", when, len(got), err)
					}
				}
				for i, disk := range disks {
					answer := disk.Hang()
					whole("while a disk hangs")
					waiting := disk.Waiting()
					if failed := s.Health()[i].Failed != ""; failed != (waiting > 0) || waiting > 1 {
						t.Errorf("disk %d: failed %v, %d calls wait", i, failed, waiting)
					}
					if unreadable, unwritable := s.Probe(i); unreadable == nil || unwritable == nil || s.Health()[i].Failed == "" {
						t.Errorf("disk %d: a probe while it hangs: %v, %v", i, unreadable, unwritable)
					}
					if waiting > 0 && disk.Waiting() != waiting {
						t.Errorf("disk %d: it was asked again: %d calls wait", i, disk.Waiting())
					}
					whole("after it has failed")
					answer()
					synctest.Wait()
					if unreadable, unwritable := s.Probe(i); unreadable != nil || unwritable != nil || s.Health()[i].Failed != "" || disk.Waiting() != 0 {
						t.Errorf("disk %d: a probe afterwards: %v, %v, %d calls wait", i, unreadable, unwritable, disk.Waiting())
					}
				}
			})
		})
	}
}

// hangingStore returns a store of copies in disks that may hang.
func hangingStore(n int, copies objectstore.Copies) (*objectstore.Store, []*world.Hanging) {
	var disks []*world.Hanging
	var list []objectstore.Provider
	for i := range n {
		disk, name := &world.Hanging{FS: world.NewDisk()}, fmt.Sprintf("p%d", i)
		disks = append(disks, disk)
		list = append(list, objectstore.Provider{Provider: placement.Provider{Name: name, Domain: name, Weight: 1},
			Port: provider.NewTimed(provider.Dir{FS: disk}, provider.Answer)})
	}
	return objectstore.NewCopies(list, copies, limits), disks
}

// TestStartSurvivesHangingDisk: directories are claimed and listed while a disk does not answer, before and after it was claimed once. Its provider
// has failed, in one line, until a probe finds that it answers. While all hang, no provider can be used.
func TestStartSurvivesHangingDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all, disks := hangingStore(2, objectstore.Copies{Count: 2, Required: 1})
		both := []func(){disks[0].Hang(), disks[1].Hang()}
		if err := all.Claim(objectstore.Owner{Journal: 1}); !errors.Is(err, objectstore.ErrNoProvider) {
			t.Errorf("while all hang: %v", err)
		}
		for _, answer := range both {
			answer()
		}
		synctest.Wait()
		s, disks := hangingStore(2, objectstore.Copies{Count: 2, Required: 1})
		for range 2 {
			answer := disks[0].Hang()
			err := s.Claim(objectstore.Owner{Journal: 1})
			if err == nil {
				err = s.Recover()
			}
			if is := s.Health(); err != nil || is[0].Failed != "the disk does not answer: the provider cannot be reached (i/o timeout)" || is[1].Failed != "" {
				t.Errorf("claimed: %v, %+v", err, is)
			}
			answer()
			synctest.Wait()
			if unreadable, unwritable := s.Probe(0); unreadable != nil || unwritable != nil || s.Health()[0].Failed != "" {
				t.Errorf("a probe afterwards: %v, %v", unreadable, unwritable)
			}
		}
	})
}

// bareNames lets a crash keep all names, and lose all data that was not synced.
type bareNames struct{}

func (bareNames) Choose(site string, n int) int {
	if site == "disk/names" {
		return n - 1
	}
	return 0
}

// TestUploadSurvivesHangingDisk: an upload whose disk hangs from any call on goes on with the other one, and its place is free afterwards. When the
// disk answers, its copy is not there, or is whole, also after a power cut.
func TestUploadSurvivesHangingDisk(t *testing.T) {
	for _, size := range []int{100, 200_000} {
		for calls := range 30 {
			synctest.Test(t, func(t *testing.T) {
				s, disks := hangingStore(2, objectstore.Copies{Count: 2, Required: 1})
				if err := s.Claim(objectstore.Owner{Journal: 1}); err != nil {
					t.Fatal(err)
				}
				answer := disks[0].HangAfter(calls)
				b := random(size)
				u, a, err := put(s, b, 50_000)
				if err != nil {
					t.Fatalf("an upload of %d bytes to a disk that hangs after %d calls: %v", size, calls, err)
				}
				u.Done()
				row := storage.Stored{Address: a, Object: storage.Object{Size: uint64(size), File: u.File()}}
				if got, err := read(s, a, row.Object, 0, row.Size); err != nil || !bytes.Equal(got, b) || s.Uploads() != 0 {
					t.Errorf("after %d calls: read %d of %d bytes: %v; %d uploads", calls, len(got), size, err, s.Uploads())
				}
				answer()
				synctest.Wait()
				if unreadable, unwritable := s.Probe(0); unreadable != nil || unwritable != nil {
					t.Errorf("a probe afterwards: %v, %v", unreadable, unwritable)
				}
				disks[0].FS.(*world.Disk).Crash(bareNames{})
				files, err := s.Files()
				if err != nil {
					t.Fatal(err)
				}
				parts := files.Parts(row)
				for _, part := range parts.List() {
					if err := s.VerifyPart(row, part, func(int) error { return nil }); err != nil {
						t.Errorf("the disk hung after %d calls of an upload of %d bytes: %v", calls, size, err)
					}
				}
			})
		}
	}
}

// TestOnlyDirectoryHangs: an upload into the only directory, whose disk changes nothing from any call on, fails in time and gives its place
// back. Objects are read meanwhile, and a probe finds that only uploads fail. When the disk answers, uploads work, and nothing is left over.
func TestOnlyDirectoryHangs(t *testing.T) {
	for _, size := range []int{100, 200_000} {
		for calls := range 12 {
			synctest.Test(t, func(t *testing.T) {
				disk := &world.Hanging{FS: world.NewDisk()}
				s := objectstore.NewCopies([]objectstore.Provider{{Provider: placement.Provider{Name: "local", Domain: "local", Weight: 1},
					Port: provider.NewOnly(provider.Dir{FS: disk}, provider.Answer)}}, objectstore.Copies{Count: 1, Required: 1}, limits)
				if err := s.Claim(objectstore.Owner{Journal: 1}); err != nil {
					t.Fatal(err)
				}
				b := random(size)
				before, a, err := put(s, b, 50_000)
				if err != nil {
					t.Fatal(err)
				}
				before.Done()
				readable := func(when string) {
					t.Helper()
					began := time.Now()
					if got, err := read(s, a, storage.Object{Size: uint64(size), File: before.File()}, 0, uint64(size)); err != nil || !bytes.Equal(got, b) || time.Since(began) != 0 {
						t.Errorf("%s: %d bytes after %v: %v", when, len(got), time.Since(began), err)
					}
				}
				answer, began := disk.Freeze(calls), time.Now()
				for err == nil { // until a call has hung
					var u *objectstore.Upload
					u, _, err = put(s, random(size), 50_000)
					if u.Done(); err == nil {
						continue
					}
				}
				if took := time.Since(began); !errors.Is(err, objectstore.ErrUnavailable) || took > 120*time.Second || s.Uploads() != 0 {
					t.Errorf("after %d calls: %v after %v, %d uploads", calls, err, took, s.Uploads())
				}
				readable("while changes hang")
				began = time.Now()
				u, _, err := put(s, b, 50_000)
				u.Done()
				if unreadable, unwritable := s.Probe(0); !errors.Is(err, objectstore.ErrUnavailable) || unreadable != nil || !errors.Is(unwritable, objectstore.ErrUnavailable) ||
					time.Since(began) != 0 || disk.Waiting() != 1 || s.Uploads() != 0 {
					t.Errorf("after %d calls: the next upload: %v; a probe: %v, %v; after %v, %d calls wait, %d uploads", calls, err, unreadable, unwritable, time.Since(began), disk.Waiting(), s.Uploads())
				}
				readable("after the probe")
				answer()
				synctest.Wait()
				if unreadable, unwritable := s.Probe(0); unreadable != nil || unwritable != nil || s.Health()[0].Failed != "" {
					t.Errorf("a probe afterwards: %v, %v", unreadable, unwritable)
				}
				u, _, err = put(s, b, 50_000)
				if u.Done(); err != nil {
					t.Errorf("an upload afterwards: %v", err)
				}
				if _, err := s.Collect(func(a storage.Address, f storage.File) bool { return f == before.File() }); err != nil {
					t.Error(err)
				}
				readable("afterwards")
				if names, err := disk.List(); err != nil || len(names) != 2 { // the identity, and the object
					t.Errorf("files afterwards: %q, %v", names, err)
				}
			})
		}
	}
}
