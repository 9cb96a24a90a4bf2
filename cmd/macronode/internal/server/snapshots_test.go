package server

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"macronode/adapters/archive"
	"macronode/adapters/fs"
	"macronode/adapters/journalfile"
	"macronode/cmd/macronode/internal/datadir"
	"macronode/cmd/macronode/internal/offline"
	"macronode/cmd/macronode/internal/testkit"
	"macronode/cmd/macronode/internal/testkit/journaldir"
	"macronode/core/event"
	"macronode/core/types"
	"macronode/core/wallet/receipt"
)

// TestKeeps: a journal that has grown gets snapshots, segments that no start needs are archived, and the next
// start, reads and a verification find everything.
func TestKeeps(t *testing.T) {
	d := journaldir.Payments(t, 60)
	d.Config.Journal.Archive = filepath.Join(t.TempDir(), "archive")
	d.Config.Journal.Snapshot = 1000
	for _, want := range []types.LSN{60, 160} {
		l := storeOn(d)
		if _, _, err := l.recover(); err != nil {
			t.Fatal(err)
		}
		l.journal.Roll = 1000
		for lsn := l.journal.Durable() + 1; lsn <= want; lsn++ {
			journaldir.Pay(t, l.journal, lsn)
		}
		m := snapshotKeeper{l, l.start, l.inbox, l.log}.maker(t.Context())
		if !m.Due() {
			t.Fatalf("nothing is due, with %d bytes more", l.journal.Grown())
		}
		testkit.Must(t, m.Make(t.Context()))
		testkit.Must(t, l.journal.Close())
	}
	live, err := fs.Dir(d.Journal()).List()
	testkit.Must(t, err)
	kept, err := filepath.Glob(filepath.Join(d.Config.Journal.Archive, "*.seg.zst"))
	testkit.Must(t, err)
	if len(kept) < 8 || len(live) > 20 {
		t.Fatalf("live %q, archive %q", live, kept)
	}
	report, err := offline.Env{}.Verify(t.Context(), d.Config, true, false)
	if err != nil || !report.OK || report.Frames != 160 || len(report.Snapshots) != 2 || report.Segments != len(kept)+len(live) {
		t.Fatalf("%v, %+v", err, report)
	}
	l := storeOn(d)
	if st, _, err := l.recover(); err != nil || st.LSN != 160 {
		t.Fatalf("%v, %v", st.LSN, err)
	}
	for lsn := types.LSN(1); lsn <= 160; lsn++ {
		if s, err := l.readFrame(lsn); err != nil || s.LSN != lsn {
			t.Fatalf("reading %v: %v", lsn, err)
		}
	}
	testkit.Must(t, l.journal.Close())
	// A start from the older snapshot needs no segment of the archive, whose disk may be absent.
	damageSnapshot(t, d.Snapshots(), 160)
	d.Config.Journal.Archive = ""
	if st, found, err := storeOn(d).recoverAndClose(t); err != nil || st.LSN != 160 || found.Damaged {
		t.Errorf("from the older snapshot: %v, %+v, %v", st.LSN, found, err)
	}
}

// TestArchiveOfAnotherJournal: nothing is moved into an archive that has segments of another journal, also where no name is taken.
func TestArchiveOfAnotherJournal(t *testing.T) {
	d := journaldir.Payments(t, 60, 30, 50)
	d.Config.Journal.Archive = t.TempDir()
	other := t.TempDir()
	j, _, err := journalfile.Recover(fs.Dir(other), 8, nil)
	testkit.Must(t, err)
	journaldir.Pay(t, j, 1)
	testkit.Must(t, j.Close())
	theirs, err := archive.New(fs.Dir(other), fs.Dir(d.Config.Journal.Archive))
	testkit.Must(t, err)
	testkit.Must(t, theirs.Move([]string{"00000001.seg"}, nil, func(archive.Moved) {}))
	kept := filepath.Join(d.Config.Journal.Archive, "00000001.seg.zst")
	testkit.Must(t, os.Rename(kept, filepath.Join(filepath.Dir(kept), "00000100.seg.zst")))

	l := storeOn(d)
	live, err := fs.Dir(d.Journal()).List()
	testkit.Must(t, err)
	var log bytes.Buffer
	l.log = slog.New(slog.NewTextHandler(&log, nil))
	if l.segments, err = datadir.OpenSegments(fs.Dir(d.Config.Data), d.Config.Journal.Archive); err != nil {
		t.Fatal(err)
	}
	snapshotKeeper{l, l.start, l.inbox, l.log}.archive(t.Context())
	if now, err := fs.Dir(d.Journal()).List(); err != nil || !slices.Equal(now, live) {
		t.Errorf("%q were moved to %q, %v", live, now, err)
	}
	if !slices.Equal(l.inbox.early, []event.Event{event.SegmentsArchived{Failed: true}}) {
		t.Errorf("the core gets %v", l.inbox.early)
	}
	if !strings.Contains(log.String(), "is of journal 0000000000000008, this is journal 0000000000000007") {
		t.Errorf("the log gives no reason:\n%s", &log)
	}
}

// archiveOnce starts a keeper on a directory and ends it. It returns whether segments could be archived, and the log.
func archiveOnce(t *testing.T, d journaldir.Directory) (failed bool, log string) {
	t.Helper()
	l := storeOn(d)
	var text bytes.Buffer
	l.log = slog.New(slog.NewTextHandler(&text, nil))
	var err error
	l.segments, err = datadir.OpenSegments(fs.Dir(d.Config.Data), d.Config.Journal.Archive)
	testkit.Must(t, err)
	_, err = fs.Make(d.Snapshots())
	testkit.Must(t, err)
	snapshotKeeper{l, l.start, l.inbox, l.log}.archive(t.Context())
	return slices.Equal(l.inbox.early, []event.Event{event.SegmentsArchived{Failed: true}}), text.String()
}

// TestEmptyArchiveIsNotMounted: an archive that was empty when it was last used is not taken for the directory in its place. Nothing is moved
// until it is back.
func TestEmptyArchiveIsNotMounted(t *testing.T) {
	d := journaldir.Payments(t, 60)
	path := filepath.Join(t.TempDir(), "archive")
	d.Config.Journal.Archive = path
	if failed, log := archiveOnce(t, d); failed {
		t.Fatalf("a new archive is refused:\n%s", log)
	}
	d.Snapshot(t, 30, 50)
	live, err := fs.Dir(d.Journal()).List()
	testkit.Must(t, err)
	testkit.Must(t, os.Rename(path, path+".disk"))
	for range 2 { // the first one makes the directory
		if failed, log := archiveOnce(t, d); !failed || !strings.Contains(log, path+" has no file archive.id: mount its disk; if this is the right directory, remove "+d.Config.Data) {
			t.Errorf("not mounted: %t\n%s", failed, log)
		}
	}
	if now, err := fs.Dir(d.Journal()).List(); err != nil || !slices.Equal(now, live) {
		t.Errorf("%q were moved to %q, %v", live, now, err)
	}
	testkit.Must(t, os.Remove(path))
	testkit.Must(t, os.Rename(path+".disk", path))
	if failed, log := archiveOnce(t, d); failed || !strings.Contains(log, "segment archived") {
		t.Errorf("mounted again: %t\n%s", failed, log)
	}
	testkit.Must(t, os.Remove(filepath.Join(path, "archive.id")))
	testkit.Must(t, os.WriteFile(filepath.Join(d.Config.Data, "archive.id"), nil, 0o600))
	if failed, log := archiveOnce(t, d); failed {
		t.Errorf("an archive with segments needs no file: %s", log)
	}
}

// TestEmptyArchiveOfAnother: another archive in the configuration is used, also one that another journal has claimed and did not use: that of the
// node from whose backup this one was restored. The other node then refuses it.
func TestEmptyArchiveOfAnother(t *testing.T) {
	a, b, one, two := journaldir.Payments(t, 60), journaldir.New(t, testkit.SmallState()...), t.TempDir(), t.TempDir()
	j, _, err := journalfile.Recover(fs.Dir(b.Journal()), 8, nil)
	testkit.Must(t, err)
	journaldir.Pay(t, j, 1)
	testkit.Must(t, j.Close())
	for n, c := range []struct {
		d       journaldir.Directory
		archive string
		refused string
	}{{a, one, ""}, {a, two, ""}, {a, one, ""}, {b, one, ""}, {b, one, ""}, {a, one, "the file archive.id in " + one + " names another journal"}, {a, two, ""}} {
		c.d.Config.Journal.Archive = c.archive
		if failed, log := archiveOnce(t, c.d); failed != (c.refused != "") || !strings.Contains(log, c.refused) {
			t.Errorf("step %d: %t\n%s", n, failed, log)
		}
	}
}

// TestFrameOfMissingSegmentIsUnreadable: a durable frame whose segment is missing has a record that cannot be read. Where no frame is, there is
// no answer.
func TestFrameOfMissingSegmentIsUnreadable(t *testing.T) {
	d := journaldir.Payments(t, 60)
	l := storeOn(d)
	if _, _, err := l.recover(); err != nil {
		t.Fatal(err)
	}
	all, err := fs.Dir(d.Journal()).List()
	testkit.Must(t, err)
	testkit.Must(t, os.Rename(filepath.Join(d.Journal(), all[0]), filepath.Join(d.Journal(), "away")))
	if _, err := l.readFrame(1); !errors.Is(err, receipt.ErrUnreadable) || !l.unreadable.Load() {
		t.Errorf("a frame of a missing segment: %v, reported %t", err, l.unreadable.Load())
	}
	for _, lsn := range []types.LSN{0, 61} {
		if _, err := l.readFrame(lsn); !errors.Is(err, receipt.ErrNoAnswer) {
			t.Errorf("frame %v: %v", lsn, err)
		}
	}
	testkit.Must(t, l.journal.Close())
}

// TestVerifyPredictsStart: a start begins where verify predicts.
func TestVerifyPredictsStart(t *testing.T) {
	for _, c := range []struct {
		snapshots []types.LSN
		segment   int // from the end
		at        int
		damaged   bool
	}{
		{[]types.LSN{10, 30}, 6, 200, false},
		{[]types.LSN{10, 20}, 2, 300, true},
	} {
		d := journaldir.Payments(t, 40, c.snapshots...)
		all, err := fs.Dir(d.Journal()).List()
		testkit.Must(t, err)
		journaldir.FlipBit(t, d.Journal(), all[len(all)-c.segment], c.at)
		report, err := offline.Env{}.Verify(t.Context(), d.Config, false, false)
		if err != nil || report.OK || report.Start == nil || report.Start.Writes == c.damaged {
			t.Fatalf("%v, %+v", err, report)
		}
		if st, found, err := storeOn(d).recoverAndClose(t); err != nil || found.Damaged != c.damaged || uint64(st.LSN) != report.Start.Upto {
			t.Errorf("a start has %v, %+v, %v; verify says %+v", st.LSN, found, err, report.Start)
		}
	}
}
