package offline

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"macronode/adapters/durable"
	"macronode/adapters/fs"
	"macronode/adapters/journalfile"
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
	j, _, err := journalfile.Recover(fs.Dir(d.Journal()), 7, nil)
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
