package offline

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"macronode/adapters/durable"
	"macronode/adapters/fs"
	"macronode/adapters/journalfile"
	"macronode/adapters/nodedir"
	"macronode/adapters/snapshot"
	"macronode/cmd/macronode/internal/datadir"
	"macronode/cmd/macronode/internal/exit"
	"macronode/cmd/macronode/internal/testkit"
	"macronode/cmd/macronode/internal/testkit/journaldir"
	"macronode/core/types"
)

// TestBackupOfNodeThatGoesOn: a running node may record durable frames behind those that a backup copies. That is no damage.
func TestBackupOfNodeThatGoesOn(t *testing.T) {
	l, to := journaldir.Payments(t, 9), t.TempDir()
	found, err := journalfile.Reading{Upto: 5}.Scan(fs.Dir(l.Journal()))
	testkit.Must(t, err)
	end, err := journalfile.Scan(fs.Dir(l.Journal()), nil, nil)
	testkit.Must(t, err)
	mark := durable.Mark{Journal: found.Journal, LSN: 5, Root: found.Root, At: 5}
	testkit.Must(t, mark.Write(fs.Dir(l.Config.Data), durable.Name))
	lock, err := fs.Lock(fs.Dir(l.Config.Data), "v1")
	testkit.Must(t, err)
	t.Cleanup(func() { _ = lock.Close() })
	testkit.Must(t, nodedir.Write(l.Config.Data, nodedir.Run{PID: os.Getpid(), Listen: nodedir.Listen{HTTP: "127.0.0.1:1", Admin: "127.0.0.1:2"}}))
	e := Env{Running: func(context.Context, nodedir.Run) (types.LSN, bool, error) {
		mark.LSN, mark.Root = end.Last, end.Root
		return 5, false, mark.Write(fs.Dir(l.Config.Data), durable.Name) // and the backup goes on later
	}}
	is, err := e.Backup(t.Context(), l.Config, BackupOptions{To: to})
	if err != nil || is.LSN != 5 {
		t.Fatalf("%+v, %v", is, err)
	}
	l.Config.Data = to
	if report, text, code := runVerify(t, l, false); code != exit.CodeDone {
		t.Errorf("the backup: %d, %+v\n%s", code, report, text)
	}
}

// TestBackupIgnoresStaleRunFile: run.json of a node that died may have the PID of another process. Without a lock, no node runs.
func TestBackupIgnoresStaleRunFile(t *testing.T) {
	l := journaldir.Payments(t, 9)
	testkit.Must(t, nodedir.Write(l.Config.Data, nodedir.Run{PID: os.Getpid(), Listen: nodedir.Listen{Admin: "127.0.0.1:2"}}))
	e := Env{Running: func(context.Context, nodedir.Run) (types.LSN, bool, error) {
		return 0, false, errors.New("the process is no node")
	}}
	if is, err := e.Backup(t.Context(), l.Config, BackupOptions{To: t.TempDir()}); err != nil || is.LSN != 9 {
		t.Fatalf("%+v, %v", is, err)
	}
}

// TestVerifyReportsMissingMark: a missing mark is reported and is not damage. A backup needs no mark.
func TestVerifyReportsMissingMark(t *testing.T) {
	const missing = "the mark of durable frames (durable) is missing"
	l := journaldir.Payments(t, 5)
	report, text, code := runVerify(t, l, false)
	if code != exit.CodeDone || !report.NoMark || !strings.Contains(text, missing) {
		t.Fatalf("without a mark: %d, %+v\n%s", code, report, text)
	}
	found, err := journalfile.Scan(fs.Dir(l.Journal()), nil, nil)
	testkit.Must(t, err)
	testkit.Must(t, durable.Mark{Journal: found.Journal, LSN: 5, Root: found.Root, At: 5}.Write(fs.Dir(l.Config.Data), durable.Name))
	if report, text, code = runVerify(t, l, false); code != exit.CodeDone || report.NoMark || strings.Contains(text, missing) {
		t.Fatalf("with a mark: %d, %+v\n%s", code, report, text)
	}
	to := t.TempDir()
	_, err = Env{}.Backup(t.Context(), l.Config, BackupOptions{To: to})
	testkit.Must(t, err)
	l.Config.Data = to
	if report, _, code = runVerify(t, l, false); code != exit.CodeDone || report.NoMark {
		t.Fatalf("a backup: %d, %+v", code, report)
	}
}

// mark writes the mark of the durable frames of a journal.
func mark(t *testing.T, l journaldir.Directory, edit func(*durable.Mark)) {
	t.Helper()
	found, err := journalfile.Scan(fs.Dir(l.Journal()), nil, nil)
	testkit.Must(t, err)
	m := durable.Mark{Journal: found.Journal, LSN: found.Last, Root: found.Root}
	edit(&m)
	testkit.Must(t, m.Write(fs.Dir(l.Config.Data), durable.Name))
}

// TestVerifyReportsAnotherPast: a journal is damaged if the mark of durable frames, or without one the newest snapshot, has another root
// for a frame: its segment is that of a copy of the node that went on otherwise. So is it if the mark is of a frame that is missing.
func TestVerifyReportsAnotherPast(t *testing.T) {
	other := func(l journaldir.Directory) { forgeSnapshot(t, l, func(h *snapshot.Head) { h.Root[0]++ }, 30) }
	for what, c := range map[string]struct {
		spoil     func(journaldir.Directory)
		source    string
		at, start uint64 // the frame of the proof, and the last frame that another record confirms
		lost      uint64
	}{
		"the mark":       {func(l journaldir.Directory) { mark(t, l, func(m *durable.Mark) { m.Root[0]++ }) }, durable.Name, 40, 30, 10},
		"a snapshot":     {other, snapshot.Name(30), 30, 10, 20},
		"a missing mark": {func(l journaldir.Directory) { other(l); mark(t, l, func(m *durable.Mark) { m.LSN = 50; m.Root[0]++ }) }, snapshot.Name(30), 30, 10, 20},
	} {
		l := journaldir.Payments(t, 40, 10, 30)
		c.spoil(l)
		report, text, code := runVerify(t, l, false)
		if code != exit.CodeFailed || report.OK || report.Damage[0].From != c.start+1 || report.Lost < c.lost || report.Start == nil || report.Start.Writes || report.Start.Upto != c.start {
			t.Errorf("%s: %d, %+v", what, code, report)
		}
		wantText(t, text, fmt.Sprintf("%s has another root for frame @%d: the segments are of a copy of the journal that went on otherwise", c.source, c.at))
		wantText(t, text, "or, if the segments are the right ones, move "+map[bool]string{true: "", false: datadir.Snapshots + "/"}[c.source == durable.Name]+c.source+" away")
		if isSnapshot := c.source != durable.Name; isSnapshot != strings.Contains(text, "snapshot "+c.source+" is invalid: the segments have another root for its frame") {
			t.Errorf("%s: %s", what, text)
		}
		to := t.TempDir()
		is, err := Env{}.Backup(t.Context(), l.Config, BackupOptions{To: to})
		copied, bad := journalfile.Scan(fs.Dir(filepath.Join(to, datadir.Journal)), nil, nil)
		if testkit.Must(t, bad); !errors.Is(err, journalfile.ErrDamaged) || uint64(copied.Last) > c.start {
			t.Errorf("%s: a backup has frames to %v: %+v, %v", what, copied.Last, is, err)
		}
	}
}

// TestVerifyNamesSegmentBehindTheLast: a segment that is not of the journal, and behind all frames that are known to be durable, may be moved away.
func TestVerifyNamesSegmentBehindTheLast(t *testing.T) {
	l := journaldir.Payments(t, 40)
	mark(t, l, func(*durable.Mark) {})
	stray := filepath.Join(l.Journal(), "00000008.seg")
	testkit.Must(t, os.WriteFile(stray, nil, 0o600))
	report, text, code := runVerify(t, l, false)
	if code != exit.CodeFailed || report.Lost != 0 || report.Start.Upto != 40 || report.Start.Writes {
		t.Errorf("%d, %+v", code, report)
	}
	wantText(t, text, "00000008.seg is not of this journal, and is not read: it is damaged")
	wantText(t, restoreText(t, l), "00000008.seg is not of this journal")
	testkit.Must(t, os.Remove(stray))
	if report, _, code := runVerify(t, l, false); code != exit.CodeDone {
		t.Errorf("without it: %d, %+v", code, report)
	}
}

// restoreText returns what the restore of a data directory says before it begins.
func restoreText(t *testing.T, l journaldir.Directory) string {
	t.Helper()
	target, from := *l.Config, RestoreOptions{From: l.Config.Data}
	target.Data = t.TempDir()
	r, err := Env{}.PlanRestore(t.Context(), &target, from)
	testkit.Must(t, err)
	var b strings.Builder
	testkit.Must(t, r.WriteText(&b, &target, from))
	return b.String()
}
