package offline

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"macronode/adapters/epochs"
	"macronode/adapters/fs"
	"macronode/cmd/macronode/internal/exit"
	"macronode/cmd/macronode/internal/testkit"
	"macronode/cmd/macronode/internal/testkit/journaldir"
)

// TestVerifyNamesListThatLacksProcess: if another process wrote a segment than those that are listed, the list may be too old. Verify names it.
func TestVerifyNamesListThatLacksProcess(t *testing.T) {
	l := journaldir.Payments(t, 15)
	list := filepath.Join(l.Config.Data, epochs.Name)
	older, err := os.ReadFile(list)
	testkit.Must(t, err)
	grow(t, l, 16, 40)
	testkit.Must(t, os.WriteFile(list, older, 0o600))
	advice := "if they are of this journal, the list " + list + " lacks their process: remove that file, and the next start or backup makes it again"
	report, text, code := runVerify(t, l, false)
	if code != exit.CodeFailed || len(report.Others) == 0 {
		t.Errorf("%d, %+v", code, report)
	}
	wantText(t, text, advice)
	wantText(t, restoreText(t, l), advice)

	beside := filepath.Join(l.Journal(), epochs.Name)
	testkit.Must(t, os.Rename(list, beside))
	_, text, _ = runVerify(t, l, false)
	wantText(t, text, strings.ReplaceAll(advice, list, beside))

	testkit.Must(t, os.Remove(beside))
	if report, text, code := runVerify(t, l, false); code != exit.CodeDone || report.Frames != 40 {
		t.Errorf("without the list: %d, %s", code, text)
	}
}

// TestVerifyNamesSegmentInWrongPlace: a copy of a segment between others costs no frame. No list lacks a process, and the start needs no snapshot.
func TestVerifyNamesSegmentInWrongPlace(t *testing.T) {
	l := journaldir.Payments(t, 40)
	all, err := fs.Dir(l.Journal()).List()
	testkit.Must(t, err)
	last := filepath.Join(l.Journal(), all[len(all)-1])
	testkit.Must(t, os.Rename(last, filepath.Join(l.Journal(), "00000099.seg")))
	text, err := os.ReadFile(filepath.Join(l.Journal(), all[1]))
	testkit.Must(t, err)
	testkit.Must(t, os.WriteFile(last, text, 0o600))
	report, is, _ := runVerify(t, l, false)
	if len(report.Others) != 1 || report.Start == nil || !report.Start.Writes || report.Start.Upto != 40 {
		t.Fatalf("%+v, %s", report, is)
	}
	wantText(t, is, "until then the node can run: it starts from the first frame and continues after @40\n")
	for _, no := range []string{"that snapshot", "snapshot @0", "lacks their process"} {
		if strings.Contains(is, no) {
			t.Errorf("%q is in the report:\n%s", no, is)
		}
	}
}
