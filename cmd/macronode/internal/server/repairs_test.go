package server

import (
	"strings"
	"syscall"
	"testing"

	"macronode/adapters/adminapi"
	"macronode/adapters/objectstore"
	"macronode/adapters/provider"
	"macronode/chaos/world"
	"macronode/cmd/macronode/internal/testkit"
	"macronode/core/coding"
	"macronode/core/digest"
	"macronode/core/placement"
	"macronode/core/repair"
	"macronode/core/storage"
)

// TestRepairWaitsForProvider: a repair that finds no copy while a provider has failed waits: the object is not lost, and the next inventory
// plans it again. When the provider answers, the object is lost.
func TestRepairWaitsForProvider(t *testing.T) {
	m := newMetered(t)
	m.put(1, "photos") // its file is nowhere
	r := m.objects.repairs
	r.machine.BeginInventory()
	address := storage.Address(digest.Sum([]byte("1")))
	o := storage.Stored{Address: address, Object: storage.Object{Size: 7, File: 1}}
	count := func(outcome string) float64 {
		return m.values()[testkit.Series("repair_copies_total", "outcome", outcome)]
	}
	m.objects.files.MarkFailed(0, syscall.EIO)
	if again := r.restore(t.Context(), o, true); !again || count("waiting") != 1 || count("lost") != 0 || r.lostObjects() != 0 {
		t.Errorf("failed provider: again %v, %v waiting, %v lost, %d objects", again, count("waiting"), count("lost"), r.lostObjects())
	}
	if _, err := m.objects.files.Probe(0); err != nil {
		t.Fatal(err)
	}
	if again := r.restore(t.Context(), o, true); again || count("waiting") != 1 || count("lost") != 1 || r.lostObjects() != 1 {
		t.Errorf("all answer: again %v, %v waiting, %v lost, %d objects", again, count("waiting"), count("lost"), r.lostObjects())
	}
}

// TestScrubWithTooManyOpenFiles: a scrub counts a copy as not read if the node has too many open files. It is not damaged, and is not repaired.
func TestScrubWithTooManyOpenFiles(t *testing.T) {
	m := newMetered(t)
	up, err := m.objects.files.Begin(1)
	testkit.Must(t, err)
	_, err = up.Write([]byte("1"))
	testkit.Must(t, err)
	address, err := up.Sum()
	testkit.Must(t, err)
	testkit.Must(t, up.Store(address))
	up.Done()
	o := storage.Stored{Address: address, Object: storage.Object{Size: 1, File: up.File()}}
	r, found := m.objects.repairs, make([]adminapi.ScrubOfProvider, 1)
	r.machine = repair.New(0, r.settings.Limits)
	copies := r.files.NewParts(coding.Scheme{}, objectstore.Part{})
	var limit syscall.Rlimit
	testkit.Must(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	none := limit
	none.Cur = 0
	testkit.Must(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &none))
	err = r.scrubObject(t.Context(), o, copies, r.files.Moved(), found)
	testkit.Must(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit))
	if want := (adminapi.ScrubOfProvider{Unread: 1, UnreadBytes: 1}); err != nil || found[0] != want || r.machine.Waiting() > 0 {
		t.Errorf("%v, %+v, %d repairs", err, found[0], r.machine.Waiting())
	}
	if s := r.status().Scrub; s.Unread != 1 || s.Damaged != 0 {
		t.Errorf("%+v", s)
	}
}

// TestScrubReportsUnrestoredCopy: a damaged copy that cannot be restored, because its provider is below its reserve, is reported until another
// scrub begins.
func TestScrubReportsUnrestoredCopy(t *testing.T) {
	m := newMetered(t)
	m.put(1, "photos")
	var list []objectstore.Provider
	var disks []*world.Disk
	for _, name := range []string{"disk1", "disk2"} {
		disks = append(disks, world.NewDisk())
		list = append(list, objectstore.Provider{Provider: placement.Provider{Name: name, Domain: name, Weight: 1}, Port: provider.Dir{FS: disks[len(disks)-1]}})
	}
	r := m.objects.repairs
	r.machine, r.files, r.is.refused = repair.New(0, r.settings.Limits), objectstore.NewCopies(list, objectstore.Copies{Count: 2, Required: 1}, objectstore.Limits{Uploads: 1, Object: 1 << 20}), make([]string, 2)
	up, err := r.files.Begin(1)
	testkit.Must(t, err)
	_, err = up.Write([]byte("1"))
	testkit.Must(t, err)
	address, err := up.Sum()
	testkit.Must(t, err)
	testkit.Must(t, up.Store(address))
	up.Done()
	disks[0].Rot(world.NewSeeded(1))
	disks[0].Leave(1000)
	o := storage.Stored{Address: address, Object: storage.Object{Size: 1, File: up.File()}}
	copies := r.files.NewParts(coding.Scheme{}, objectstore.Part{}, objectstore.Part{Provider: 1})
	scrub := func(want string) {
		t.Helper()
		before := r.is.scrub.Damaged // the next one was requested while this one ran
		r.beginScrub()
		r.requestScrub()
		testkit.Must(t, r.scrubObject(t.Context(), o, copies, r.files.Moved(), make([]adminapi.ScrubOfProvider, 2)))
		r.endScrub(nil, nil)
		task, ok := r.machine.Next()
		if !ok {
			t.Fatal("no repair is planned")
		}
		failed := r.restore(t.Context(), o, task.Verify)
		r.machine.Done(task.File, failed)
		if s := r.status().Scrub; failed != (want != "") || s.Damaged != 1 || s.Before != before || (s.Unrestored == "") != (want == "") || !strings.Contains(s.Unrestored, want) {
			t.Errorf("failed %v, %+v", failed, s)
		}
	}
	scrub("provider disk1: ")
	disks[0].Leave(1 << 30)
	scrub("")
}

// TestScrubCountsDamageSinceRequest: a scrub that is requested while another one runs has what that one finds afterwards, and the results of
// both are kept.
func TestScrubCountsDamageSinceRequest(t *testing.T) {
	r := newMetered(t).objects.repairs
	find := func() { r.setScrub(func(s *adminapi.Scrub) { s.Damaged++; r.scrubs.Found() }) }
	r.beginScrub() // an automatic one
	find()
	if first, second := r.requestScrub(), r.requestScrub(); first != 2 || second != 2 {
		t.Errorf("the numbers of the requests are %d and %d, want 2: scrub 1 has begun before", first, second)
	}
	find()
	r.endScrub(nil, nil)
	if is := r.status(); is.Scrub.Running || is.Scrub.Number != 1 || is.Scrub.Damaged != 2 || !r.isScrubWanted() {
		t.Errorf("%+v", is.Scrub)
	}
	r.beginScrub()
	if is := r.status(); !is.Scrub.Running || is.Scrub.Number != 1 || is.Scrub.Before != 1 || r.isScrubWanted() {
		t.Errorf("%+v", is.Scrub)
	}
	find()
	r.endScrub([]adminapi.ScrubOfProvider{{Damaged: 1}}, nil)
	r.beginScrub()
	r.endScrub(nil, syscall.EIO)
	is := r.status()
	if len(is.Scrubs) != 3 || is.Scrubs[0].Damaged != 2 || is.Scrubs[1].Damaged != 1 || is.Scrubs[1].Before != 1 || is.Scrubs[2].Failure == "" || is.Scrubs[2].Damaged != 0 {
		t.Errorf("%+v", is.Scrubs)
	}
	if is.Providers[0].Damaged != 1 {
		t.Error("what the last scrub found that has read all copies is not shown")
	}
	for range repair.MaxScrubResults {
		r.beginScrub()
		r.endScrub(nil, nil)
	}
	if is := r.status(); len(is.Scrubs) != repair.MaxScrubResults || is.Scrubs[0].Number != 4 || !is.ShowScrub(5) || is.ShowScrub(3) {
		t.Errorf("%+v", is.Scrubs)
	}
}
