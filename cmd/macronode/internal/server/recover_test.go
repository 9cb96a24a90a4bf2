package server

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"macronode/adapters/durable"
	"macronode/adapters/fs"
	"macronode/adapters/journalfile"
	"macronode/adapters/metrics"
	"macronode/adapters/snapshot"
	"macronode/cmd/macronode/internal/settings"
	"macronode/cmd/macronode/internal/testkit"
	"macronode/cmd/macronode/internal/testkit/journaldir"
	"macronode/core/event"
	"macronode/core/state"
	"macronode/core/types"
)

// storeOn returns the journal of a data directory, as a new process has it.
func storeOn(d journaldir.Directory) *journalStore {
	return newJournalStore(fs.Dir(d.Config.Data), nil, settings.NewStart(d.Config), new(eventInbox), metrics.New(func() event.Status { return event.Status{} }), slog.New(slog.DiscardHandler))
}

// newStore returns the journal of a directory in which two accounts were paid.
func newStore(t *testing.T, sets ...string) *journalStore {
	t.Helper()
	return storeOn(journaldir.TwoAccounts(t, sets...))
}

func (l *journalStore) files(t *testing.T) int {
	t.Helper()
	names, err := fs.Dir(l.segmentsDir()).List()
	if err != nil {
		t.Fatal(err)
	}
	return len(names)
}

func TestRecovers(t *testing.T) {
	l := newStore(t)
	st, _, err := l.recover()
	if err != nil || st.LSN != 2 || l.readModel.Mark() != 2 || l.files(t) != 2 {
		t.Fatalf("%v, state at %v, follower at %v, %d files", err, st.LSN, l.readModel.Mark(), l.files(t))
	}
	if err := l.journal.Close(); err != nil {
		t.Fatal(err)
	}
}

// recoverAndClose recovers the journal as the next start would, and closes it.
func (l *journalStore) recoverAndClose(t *testing.T) (state.State, event.Recovery, error) {
	t.Helper()
	again := newJournalStore(l.dir, l.lock, l.start, l.inbox, l.metrics, l.log)
	st, found, err := again.recover()
	if err == nil {
		if err := again.journal.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return st, found, err
}

// storeWithSnapshots returns a journal with snapshots as of its first and its second frame.
func storeWithSnapshots(t *testing.T) *journalStore {
	t.Helper()
	d := journaldir.TwoAccounts(t)
	d.Snapshot(t, 1, 2)
	if all, err := snapshot.List(fs.Dir(d.Snapshots())); err != nil || len(all) != 2 {
		t.Fatalf("%v, %v", all, err)
	}
	return storeOn(d)
}

// TestRecoversFromSnapshot: a start recovers the same state whatever happened to the snapshots.
func TestRecoversFromSnapshot(t *testing.T) {
	whole, _, err := newStore(t).recoverAndClose(t)
	if err != nil {
		t.Fatal(err)
	}
	for what, spoil := range map[string]func(string){
		"both":                    func(string) {},
		"the newest damaged":      func(dir string) { damageSnapshot(t, dir, 2) },
		"both damaged":            func(dir string) { damageSnapshot(t, dir, 1); damageSnapshot(t, dir, 2) },
		"one that is not there":   func(dir string) { removed(t, dir, snapshot.Name(2)) },
		"a file that is none":     func(dir string) { write(t, dir, snapshot.Name(3), "MNP1") },
		"what is left of a crash": func(dir string) { write(t, dir, snapshot.Name(3)+".tmp", "MNP1") },
	} {
		l := storeWithSnapshots(t)
		spoil(l.snapshotsDir())
		if st, found, err := l.recoverAndClose(t); err != nil || st.Hash() != whole.Hash() || st.LSN != 2 || found.Damaged {
			t.Errorf("%s: %v, state at %v, %+v", what, err, st.LSN, found)
		}
	}
}

// TestMissingEndIsDamage: deleted segments at the end are damage if a snapshot is newer.
func TestMissingEndIsDamage(t *testing.T) {
	l := storeWithSnapshots(t)
	removed(t, l.segmentsDir(), "00000001.seg")
	if _, found, err := l.recoverAndClose(t); err != nil || !found.Damaged || l.files(t) != 0 {
		t.Fatalf("%+v, %v, %d files", found, err, l.files(t))
	}
}

// TestMarkWithoutRootIsEvidence: frames up to the mark are missing although it has no root, as that of a copy that lacks frames.
func TestMarkWithoutRootIsEvidence(t *testing.T) {
	l := newStore(t)
	if err := (durable.Mark{Journal: 7, LSN: 3}).Write(l.dir, durable.Name); err != nil {
		t.Fatal(err)
	}
	if _, found, err := l.recoverAndClose(t); err != nil || !found.Damaged {
		t.Fatalf("%+v, %v", found, err)
	}
}

// TestStartWarnsOfMissingSegments: a start from a snapshot needs neither the first nor a middle segment, and logs
// which are missing.
func TestStartWarnsOfMissingSegments(t *testing.T) {
	for what, c := range map[string]struct {
		less []string
		want string
	}{
		"none":               {nil, ""},
		"the first one":      {[]string{"00000001.seg"}, "first_segment=00000001.seg segments=1"},
		"two in the middle":  {[]string{"00000002.seg", "00000003.seg"}, "first_segment=00000002.seg segments=2"},
		"the first and more": {[]string{"00000001.seg", "00000003.seg"}, "first_segment=00000001.seg segments=2"},
	} {
		var out bytes.Buffer
		l := storeOn(journaldir.Payments(t, 40, 33, 38))
		l.log = slog.New(slog.NewTextHandler(&out, nil))
		for _, name := range c.less {
			removed(t, l.segmentsDir(), name)
		}
		if _, found, err := l.recoverAndClose(t); err != nil || found.Damaged {
			t.Fatalf("%s: %v, %+v", what, err, found)
		}
		if warned := strings.Contains(out.String(), "journal segments missing"); warned != (c.want != "") || !strings.Contains(out.String(), c.want) {
			t.Errorf("%s: the log:\n%s", what, out.String())
		}
	}
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func removed(t *testing.T, dir, name string) {
	t.Helper()
	if err := os.Remove(filepath.Join(dir, name)); err != nil {
		t.Fatal(err)
	}
}

func damageSnapshot(t *testing.T, dir string, lsn types.LSN) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, snapshot.Name(lsn)))
	if err != nil {
		t.Fatal(err)
	}
	text[len(text)/2] ^= 1
	write(t, dir, snapshot.Name(lsn), string(text))
}

// TestTooLargeJournalIsNotWritten: a journal that exceeds the limits is rejected before anything is written.
func TestTooLargeJournalIsNotWritten(t *testing.T) {
	l := newStore(t, "wallet.limits.accounts=1")
	if _, _, err := l.recover(); !errors.Is(err, state.ErrRoom) || !strings.Contains(err.Error(), "limits of ledgers (wallet.limits) permit") || l.files(t) != 1 {
		t.Fatalf("%v, %d files", err, l.files(t))
	}
}

// TestEndDuringRecovery: a drain stops the recovery.
func TestEndDuringRecovery(t *testing.T) {
	l := newStore(t)
	l.inbox.send(t.Context(), event.Signal{Kind: event.Drain})
	if _, _, err := l.recover(); !errors.Is(err, errEndRequested) || l.files(t) != 1 {
		t.Fatalf("%v, %d files", err, l.files(t))
	}
}

// TestInboxIsBounded: events before the loop do not fill the inbox, however many there are.
func TestInboxIsBounded(t *testing.T) {
	var e eventInbox
	for range 1000 {
		e.send(t.Context(), event.ServiceUp{Service: types.ServiceAdmin})
		e.send(t.Context(), event.Signal{Kind: event.AcceptClock})
	}
	if len(e.early) != 2 || e.endRequested() {
		t.Fatalf("%d words kept, ends %v", len(e.early), e.endRequested())
	}
	if e.send(t.Context(), event.Signal{Kind: event.Abort}); !e.endRequested() {
		t.Fatal("an abort is no end")
	}
}

// TestStartWarnsOfMissingMark: a journal with frames and no mark of durable frames.
func TestStartWarnsOfMissingMark(t *testing.T) {
	const missing = "mark of durable frames missing"
	l := newStore(t)
	for _, marked := range []bool{false, true} {
		var out bytes.Buffer
		l.log = slog.New(slog.NewTextHandler(&out, nil))
		if marked {
			found, err := journalfile.Scan(fs.Dir(l.segmentsDir()), nil, nil)
			testkit.Must(t, err)
			testkit.Must(t, durable.Mark{Journal: found.Journal, LSN: found.Last, Root: found.Root}.Write(l.dir, durable.Name))
		}
		if _, _, err := l.recoverAndClose(t); err != nil {
			t.Fatal(err)
		}
		if warned := strings.Contains(out.String(), missing); warned == marked {
			t.Errorf("with a mark: %v; the log:\n%s", marked, out.String())
		}
	}
}

// TestStartOnAnotherPast: if the mark of durable frames has another root for a frame of the journal, the node serves reads only.
func TestStartOnAnotherPast(t *testing.T) {
	l := newStore(t)
	found, err := journalfile.Scan(fs.Dir(l.segmentsDir()), nil, nil)
	testkit.Must(t, err)
	found.Root[0]++
	testkit.Must(t, durable.Mark{Journal: found.Journal, LSN: found.Last, Root: found.Root}.Write(l.dir, durable.Name))
	state, r, err := l.recoverAndClose(t)
	if err != nil || !r.Damaged || state.LSN >= found.Last {
		t.Errorf("%v, %+v, up to %v of %v", err, r, state.LSN, found.Last)
	}
}
