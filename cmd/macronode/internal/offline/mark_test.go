package offline

import (
	"strings"
	"testing"

	"macronode/adapters/durable"
	"macronode/adapters/fs"
	"macronode/adapters/journalfile"
	"macronode/cmd/macronode/internal/exit"
	"macronode/cmd/macronode/internal/testkit"
	"macronode/cmd/macronode/internal/testkit/journaldir"
)

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
