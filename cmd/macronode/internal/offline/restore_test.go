package offline

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"macronode/adapters/backup"
	"macronode/adapters/durable"
	"macronode/adapters/fs"
	"macronode/adapters/journalfile"
	"macronode/cmd/macronode/internal/datadir"
	"macronode/cmd/macronode/internal/exit"
	"macronode/cmd/macronode/internal/testkit"
	"macronode/cmd/macronode/internal/testkit/journaldir"
	"macronode/core/record"
	"macronode/core/types"
)

// journalAt returns a data directory whose journal has one frame of a given time.
func journalAt(t *testing.T, at types.Time) journaldir.Directory {
	t.Helper()
	d := journaldir.New(t)
	j, _, err := d.Open()
	testkit.Must(t, err)
	journaldir.Write(t, j, 1, at, &record.Record{Kind: record.Started, Journal: 7})
	testkit.Must(t, j.Close())
	return d
}

// restoreInto restores the journal of d into another directory.
func restoreInto(t *testing.T, d journaldir.Directory, archive string) (journaldir.Directory, error) {
	t.Helper()
	into := *d.Config
	into.Data, into.Journal.Archive = t.TempDir(), archive
	o := RestoreOptions{From: d.Config.Data}
	r, err := Env{}.PlanRestore(t.Context(), &into, o)
	testkit.Must(t, err)
	return journaldir.Directory{Config: &into}, Env{}.Restore(t.Context(), &into, o, r)
}

// TestRestoreContinuesTime: the time of a restored journal is never before that of its backup, also if the clock of
// this machine is behind. A journal whose time goes back is damaged: no node starts with it.
func TestRestoreContinuesTime(t *testing.T) {
	now := types.Time(time.Now().UnixMilli())
	for what, at := range map[string]types.Time{"the clock is ahead of the backup": now - 7_200_000, "the clock is behind the backup": now + 7_200_000} {
		to, err := restoreInto(t, journalAt(t, at), "")
		testkit.Must(t, err)
		var last types.Time
		_, err = journalfile.Reading{Each: func(all []record.Sealed) error {
			for _, s := range all {
				h, _, err := record.Open(s.Body)
				if testkit.Must(t, err); h.At < last {
					t.Errorf("%s: frame %v is of %d, after %d", what, s.LSN, h.At, last)
				}
				last = h.At
			}
			return nil
		}}.Scan(fs.Dir(to.Journal()))
		testkit.Must(t, err)
		mark, err := durable.Read(fs.Dir(to.Config.Data), durable.Name)
		if err != nil || mark.At != last || last < max(at, now) {
			t.Errorf("%s: the last frame is of %d, the mark of %d, want %d or later: %v", what, last, mark.At, max(at, now), err)
		}
		if report, text, code := runVerify(t, to, true); code != exit.CodeDone || report.Frames != 2 {
			t.Errorf("%s: verify ends with %d\n%s", what, code, text)
		}
	}
}

// TestRestoreRejectsArchiveOfAnotherJournal: the archive of another journal would be read as the beginning of the
// restored one. Nothing is restored, and the archive stays as it is.
func TestRestoreRejectsArchiveOfAnotherJournal(t *testing.T) {
	d, archive := journaldir.Payments(t, 5), t.TempDir()
	kept := filepath.Join(archive, "00000001.seg.zst")
	testkit.Must(t, os.WriteFile(kept, []byte("of another journal"), 0o600))
	to, err := restoreInto(t, d, archive)
	if err == nil || !strings.Contains(err.Error(), "journal.archive has segments of another journal") {
		t.Errorf("it is restored: %v", err)
	}
	if _, err := os.Stat(to.Journal()); err == nil {
		t.Error("the directory has a journal")
	}
	if text, err := os.ReadFile(kept); err != nil || string(text) != "of another journal" {
		t.Errorf("the archive has %q, %v", text, err)
	}
	if _, err := restoreInto(t, d, t.TempDir()); err != nil {
		t.Errorf("with an empty archive: %v", err)
	}
}

// TestBackupOntoDamagedCopyAdvises: a backup onto a damaged copy changes nothing, and says what to do.
func TestBackupOntoDamagedCopyAdvises(t *testing.T) {
	l, to := journaldir.Payments(t, 40), t.TempDir()
	_, err := Env{}.Backup(t.Context(), l.Config, BackupOptions{To: to})
	testkit.Must(t, err)
	journaldir.FlipBit(t, filepath.Join(to, "journal"), "00000001.seg", 200)
	_, err = Env{}.Backup(t.Context(), l.Config, BackupOptions{To: to})
	if coded := (*exit.Error)(nil); !errors.As(err, &coded) || coded.Code != exit.CodeUnable || !errors.Is(err, backup.ErrCopy) {
		t.Fatal(err)
	}
	wantText(t, err.Error(), "the backup is damaged", "00000001.seg is damaged at byte", "back up into another directory, and keep "+to, "macronode restore "+to+" --validate")
}

// TestBackupThatIsNotCompleted: a backup that cannot write has failed, and names its directory. What it leaves is not intact.
func TestBackupThatIsNotCompleted(t *testing.T) {
	l, to := journaldir.Payments(t, 40), t.TempDir()
	none := *l.Config
	none.Data = filepath.Join(t.TempDir(), "none")
	file := filepath.Join(to, datadir.Journal, "00000001.seg")
	testkit.Must(t, os.MkdirAll(file+".tmp", 0o700)) // it cannot be written
	_, err := Env{}.Backup(t.Context(), l.Config, BackupOptions{To: to})
	if coded := (*exit.Error)(nil); err == nil || errors.As(err, &coded) {
		t.Fatalf("%v, want exit code 1", err)
	}
	wantText(t, err.Error(), "the backup in "+to+" is not completed", file+".tmp")
	testkit.Must(t, os.Remove(file+".tmp"))
	_, err = Env{}.Backup(t.Context(), l.Config, BackupOptions{To: to})
	testkit.Must(t, err)
	testkit.Must(t, os.Remove(filepath.Join(to, datadir.Journal, backup.CutName)))
	r, err := Env{}.PlanRestore(t.Context(), &none, RestoreOptions{From: to})
	testkit.Must(t, err)
	var text strings.Builder
	testkit.Must(t, r.WriteText(&text, &none, RestoreOptions{}))
	wantText(t, text.String(), "nothing records the end of the backup (copy.cut): it may not have been completed")
	testkit.Must(t, os.Truncate(file, 100)) // of its first write
	r, err = Env{}.PlanRestore(t.Context(), &none, RestoreOptions{From: to})
	if coded := (*exit.Error)(nil); err == nil || errors.As(err, &coded) {
		t.Fatalf("%+v, %v, want exit code 1", r, err)
	}
	wantText(t, err.Error(), "the backup in "+to+" was not completed, and has no frame: back up again")
}

// TestRestoreAcceptsLossBehindDamage: with damage in an early segment, the frames before it can be restored. Those
// behind it are lost, and verify and the preview say so.
func TestRestoreAcceptsLossBehindDamage(t *testing.T) {
	l := journaldir.Payments(t, 40)
	all, err := fs.Dir(l.Journal()).List()
	testkit.Must(t, err)
	journaldir.FlipBit(t, l.Journal(), all[1], 200) // of its first frame
	report, text, code := runVerify(t, l, false)
	if code != exit.CodeFailed || len(report.Damage) != 1 || report.Frames == 0 || report.Frames > 20 {
		t.Fatalf("%d, %+v", code, report)
	}
	wantText(t, text, fmt.Sprintf("or accept the loss: macronode restore DIR --accept-loss --data NEW creates a new journal from the intact part, to @%d;", report.Frames))
	into := *l.Config
	into.Data = t.TempDir()
	o := RestoreOptions{From: l.Config.Data, AcceptLoss: true}
	r, err := Env{}.PlanRestore(t.Context(), &into, o)
	testkit.Must(t, err)
	if r.Checked.OK || !r.Checked.CanAccept() || r.LSN != report.Frames {
		t.Fatalf("%+v", r)
	}
	testkit.Must(t, Env{}.Restore(t.Context(), &into, o, r))
	var out strings.Builder
	testkit.Must(t, r.WriteText(&out, &into, o))
	wantText(t, out.String(), fmt.Sprintf("to frame @%d ", report.Frames), "durable frames up to @", "some of the lost frames are intact, behind the damage")
	restored, _, code := runVerify(t, journaldir.Directory{Config: &into}, false)
	if code != exit.CodeDone || restored.Frames != report.Frames+1 {
		t.Fatalf("%d, %+v", code, restored)
	}
}

// TestDamagedEndOfBackup: if the file with the end of a backup is damaged, each command names it and how to go on. Without the file
// all of them work, and backup writes it again.
func TestDamagedEndOfBackup(t *testing.T) {
	d, copied := journaldir.Payments(t, 40), t.TempDir()
	e, file := Env{Version: "test"}, filepath.Join(copied, datadir.Journal, backup.CutName)
	of, none := *d.Config, *d.Config
	of.Data, none.Data = copied, filepath.Join(t.TempDir(), "none")
	commands := map[string]func() error{
		"backup": func() error { _, err := e.Backup(t.Context(), d.Config, BackupOptions{To: copied}); return err },
		"restore": func() error {
			_, err := e.PlanRestore(t.Context(), &none, RestoreOptions{From: copied})
			return err
		},
		"verify": func() error { _, err := e.Verify(t.Context(), &of, false, false); return err },
	}
	testkit.Must(t, commands["backup"]())
	whole, err := os.ReadFile(file)
	testkit.Must(t, err)
	harmed := bytes.Clone(whole)
	harmed[20] ^= 1
	testkit.Must(t, os.WriteFile(file, harmed, 0o600))
	for what, run := range commands {
		if err := run(); err == nil || !strings.Contains(err.Error(), file+": durable: the file is damaged: it records the last frame of the backup; remove it") {
			t.Errorf("%s: %v", what, err)
		}
	}
	testkit.Must(t, os.Remove(file))
	for _, what := range []string{"verify", "restore", "backup"} {
		if err := commands[what](); err != nil {
			t.Errorf("%s without the file: %v", what, err)
		}
	}
	if again, err := os.ReadFile(file); err != nil || !bytes.Equal(again, whole) {
		t.Errorf("backup wrote %q, %v", again, err)
	}
}
