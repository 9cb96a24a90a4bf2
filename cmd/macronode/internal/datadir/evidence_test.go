package datadir_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"macronode/adapters/backup"
	"macronode/adapters/durable"
	"macronode/adapters/fs"
	"macronode/adapters/journalfile"
	"macronode/cmd/macronode/internal/datadir"
	"macronode/cmd/macronode/internal/testkit"
	"macronode/core/types"
)

// TestEndOfCopyIsEvidence: the file with the end of a copy, in the directory of the segments, proves its last frame. One of another journal proves
// nothing, and with a damaged one frames may be missing.
func TestEndOfCopyIsEvidence(t *testing.T) {
	d, _ := threeWriters(t)
	cut := backup.Cut{Journal: 7, LSN: 9, Root: types.Root{1}}
	read := func() datadir.Evidence {
		t.Helper()
		e, err := datadir.ReadEvidence(d.Config.Data, open(t, d), func(error) {})
		testkit.Must(t, err)
		return e
	}
	testkit.Must(t, cut.Write(fs.Dir(d.Journal()), backup.CutName))
	if e := read(); e.LSN != 9 || e.Source != backup.CutName || len(e.Proofs) != 1 || e.Proofs[0] != (journalfile.Proof{LSN: 9, Root: cut.Root, Source: backup.CutName}) {
		t.Errorf("%+v", e)
	}
	cut.Journal = 8
	testkit.Must(t, cut.Write(fs.Dir(d.Journal()), backup.CutName))
	if e := read(); e.LSN != 0 || len(e.Proofs) != 0 || e.Unsure != nil {
		t.Errorf("of another journal: %+v", e)
	}
	testkit.Must(t, os.WriteFile(filepath.Join(d.Journal(), backup.CutName), []byte("x"), 0o600))
	if e := read(); !errors.Is(e.Unsure, durable.ErrFormat) {
		t.Errorf("damaged: %+v", e)
	}
}
