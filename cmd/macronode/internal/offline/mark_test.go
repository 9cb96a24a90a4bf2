package offline

import (
	"context"
	"os"
	"strings"
	"testing"

	"macronode/adapters/durable"
	"macronode/adapters/fs"
	"macronode/adapters/journalfile"
	"macronode/adapters/nodedir"
	"macronode/cmd/macronode/internal/exit"
	"macronode/cmd/macronode/internal/testkit"
	"macronode/cmd/macronode/internal/testkit/journaldir"
	"macronode/core/types"
)

// TestBackupOfNodeThatGoesOn: a running node may record durable frames behind those that a backup copies. That is no damage.
func TestBackupOfNodeThatGoesOn(t *testing.T) {
	l, to := journaldir.Payments(t, 9), t.TempDir()
	found, err := journalfile.Scan(fs.Dir(l.Journal()), nil, nil)
	testkit.Must(t, err)
	mark := durable.Mark{Journal: found.Journal, LSN: 5, Root: found.Root, At: 5}
	testkit.Must(t, mark.Write(fs.Dir(l.Config.Data), durable.Name))
	testkit.Must(t, nodedir.Write(l.Config.Data, nodedir.Run{PID: os.Getpid(), Listen: nodedir.Listen{HTTP: "127.0.0.1:1", Admin: "127.0.0.1:2"}}))
	e := Env{Running: func(context.Context, nodedir.Run) (types.LSN, bool, error) {
		mark.LSN = 9
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
