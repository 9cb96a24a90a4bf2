package offline

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"macronode/adapters/fs"
	"macronode/adapters/nodedir"
	"macronode/cmd/macronode/internal/datadir"
	"macronode/cmd/macronode/internal/exit"
	"macronode/cmd/macronode/internal/testkit"
	"macronode/cmd/macronode/internal/testkit/journaldir"
	"macronode/core/types"
)

// reportsDamage checks that a backup is made to a frame, and that the error names a segment and has exit code 1.
func reportsDamage(t *testing.T, what string, is *BackupReport, err error, segment string, upto uint64) {
	t.Helper()
	if exited := (*exit.Error)(nil); is == nil || err == nil || errors.As(err, &exited) || is.LSN != upto {
		t.Fatalf("%s: %+v, %v", what, is, err)
	}
	wantText(t, err.Error(), "the journal is damaged at byte ", " of "+segment, fmt.Sprintf("and the backup ends at @%d; see macronode verify", upto))
	if strings.Contains(err.Error(), "another journal") {
		t.Errorf("%s: %v", what, err)
	}
}

// TestBackupEndsBeforeDamage: a backup of a journal without objects is extended up to the first damage behind its end, whether the journal is
// damaged before that end, too, or not. The backup records that frames are missing.
func TestBackupEndsBeforeDamage(t *testing.T) {
	for what, before := range map[string]bool{"behind the end": false, "before and behind the end": true} {
		l, to := journaldir.Payments(t, 15), t.TempDir()
		_, err := Env{}.Backup(t.Context(), l.Config, BackupOptions{To: to})
		testkit.Must(t, err)
		grow(t, l, 16, 40)
		if before {
			journaldir.FlipBit(t, l.Journal(), "00000001.seg", startBytes+headerBytes+30)
		}
		journaldir.FlipBit(t, l.Journal(), "00000006.seg", startBytes+headerBytes+30)
		for range 2 {
			is, err := Env{}.Backup(t.Context(), l.Config, BackupOptions{To: to})
			reportsDamage(t, what, is, err, "00000006.seg", firstOf(t, l, "00000006.seg")-1)
		}
		copied := l
		config := *l.Config
		copied.Config = &config
		config.Data = to
		if report, _, code := runVerify(t, copied, false); code != exit.CodeFailed || report.Frames != firstOf(t, l, "00000006.seg")-1 || report.Lost == 0 {
			t.Errorf("%s: the backup: %d, %+v", what, code, report)
		}
	}
}

// TestBackupNamesStraySegment: a segment that is there once more as the last one is named, and all frames are in the backup.
func TestBackupNamesStraySegment(t *testing.T) {
	l, to := journaldir.Payments(t, 15), t.TempDir()
	_, err := Env{}.Backup(t.Context(), l.Config, BackupOptions{To: to})
	testkit.Must(t, err)
	grow(t, l, 16, 40)
	text, err := os.ReadFile(filepath.Join(l.Journal(), "00000003.seg"))
	testkit.Must(t, err)
	all, err := fs.Dir(l.Journal()).List()
	testkit.Must(t, err)
	stray := fmt.Sprintf("%08d.seg", len(all)+1)
	testkit.Must(t, os.WriteFile(filepath.Join(l.Journal(), stray), text, 0o600))
	is, err := Env{}.Backup(t.Context(), l.Config, BackupOptions{To: to})
	if want := "the newest segments are not of this journal: " + stray; is == nil || is.LSN != 40 || !errors.Is(err, datadir.ErrOtherEnd) || !strings.Contains(err.Error(), want) {
		t.Errorf("%+v, %v", is, err)
	}
}

// TestBackupOfNodeOnDamageAdvises: a node that runs on a journal that is damaged before the end of the backup reads no frame behind the damage.
func TestBackupOfNodeOnDamageAdvises(t *testing.T) {
	l, to := journaldir.Payments(t, 40), t.TempDir()
	_, err := Env{}.Backup(t.Context(), l.Config, BackupOptions{To: to})
	testkit.Must(t, err)
	journaldir.FlipBit(t, l.Journal(), "00000003.seg", startBytes+headerBytes+30)
	lock, err := fs.Lock(fs.Dir(l.Config.Data), "v1")
	testkit.Must(t, err)
	defer lock.Close()
	testkit.Must(t, nodedir.Write(l.Config.Data, nodedir.Run{PID: os.Getpid()}))
	e := Env{Running: func(context.Context, nodedir.Run) (types.LSN, bool, error) { return 12, true, nil }}
	if is, err := e.Backup(t.Context(), l.Config, BackupOptions{To: to}); is != nil || !errors.Is(err, errNodeReadsLess) {
		t.Errorf("%+v, %v", is, err)
	}
}

// grow adds frames to a journal.
func grow(t *testing.T, l journaldir.Directory, from, to types.LSN) {
	t.Helper()
	j, _, err := l.Open()
	testkit.Must(t, err)
	j.Roll = 1000
	for lsn := from; lsn <= to; lsn++ {
		journaldir.Pay(t, j, lsn)
	}
	testkit.Must(t, j.Close())
}

// firstOf returns the first damaged frame of a segment, as verify reports it.
func firstOf(t *testing.T, l journaldir.Directory, segment string) uint64 {
	t.Helper()
	report, _, _ := runVerify(t, l, false)
	for _, d := range report.Damage {
		if d.Segment == segment {
			return d.From
		}
	}
	t.Fatalf("%s is not damaged", segment)
	return 0
}
