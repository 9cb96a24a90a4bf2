package server

import (
	"bytes"
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
	kept, err := fs.Dir(d.Config.Journal.Archive).List()
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
	testkit.Must(t, os.Rename(kept, filepath.Join(filepath.Dir(kept), "00000000.seg.zst")))

	l := storeOn(d)
	live, err := fs.Dir(d.Journal()).List()
	testkit.Must(t, err)
	var log bytes.Buffer
	l.log = slog.New(slog.NewTextHandler(&log, nil))
	if l.segments, err = datadir.OpenSegments(d.Config.Journal.Archive, fs.Dir(d.Journal())); err != nil {
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
