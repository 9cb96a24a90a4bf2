package server

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"macronode/adapters/backup"
	"macronode/adapters/durable"
	"macronode/adapters/epochs"
	"macronode/adapters/fs"
	"macronode/cmd/macronode/internal/datadir"
	"macronode/cmd/macronode/internal/testkit"
	"macronode/cmd/macronode/internal/testkit/journaldir"
	"macronode/core/types"
)

// TestLostEndOfCopyIsDamage: a node does not write on the segments of a backup that lack its last frame.
func TestLostEndOfCopyIsDamage(t *testing.T) {
	for end, isDamaged := range map[types.LSN]bool{40: false, 41: true} {
		d := journaldir.Payments(t, 40)
		j, found, err := d.Open()
		testkit.Must(t, err)
		testkit.Must(t, j.Close())
		testkit.Must(t, durable.Mark{Journal: found.Journal, LSN: 1}.Write(fs.Dir(d.Config.Data), durable.Name))
		testkit.Must(t, backup.Cut{Journal: found.Journal, LSN: end, Root: found.Root}.Write(fs.Dir(d.Journal()), backup.CutName))
		if _, is, err := storeOn(d).recoverAndClose(t); err != nil || is.Damaged != isDamaged {
			t.Errorf("a backup to %v: %v, %+v", end, err, is)
		}
	}
}

// backupInPlace returns a data directory whose segments are those of a backup.
func backupInPlace(t *testing.T) journaldir.Directory {
	t.Helper()
	d, to := journaldir.Payments(t, 40), fs.Dir(t.TempDir())
	_, err := fs.Make(filepath.Join(string(to), datadir.Journal))
	testkit.Must(t, err)
	into, err := datadir.OpenSegments(to, "")
	testkit.Must(t, err)
	into.Writers.Dir = into.Live
	done, err := backup.Copy(t.Context(), fs.Dir(d.Journal()), into, backup.Bounds{Upto: 40, Epoch: into.Writers.Next}, func(backup.Done) {})
	testkit.Must(t, err)
	testkit.Must(t, done.Write(fs.Dir(d.Config.Data), durable.Name))
	testkit.Must(t, os.RemoveAll(d.Journal()))
	testkit.Must(t, os.Rename(string(into.Live), d.Journal()))
	return d
}

// TestStartAdoptsBackup: the segments of a backup become those of the node with the first start. Later starts need neither the mark of durable
// frames nor the list of writers.
func TestStartAdoptsBackup(t *testing.T) {
	d := backupInPlace(t)
	l := storeOn(d)
	_, _, err := l.recover()
	testkit.Must(t, err)
	for _, name := range []string{epochs.Name, backup.CutName} {
		if _, err := os.Stat(filepath.Join(d.Journal(), name)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is there: %v", name, err)
		}
	}
	if m, err := durable.Read(l.dir, durable.Name); err != nil || m.LSN != 40 || m.Journal != 7 || m.At != 40 {
		t.Errorf("the mark is %+v, %v", m, err)
	}
	for lsn := types.LSN(41); lsn <= 43; lsn++ {
		journaldir.Pay(t, l.journal, lsn)
	}
	testkit.Must(t, l.journal.Close())
	for _, name := range []string{durable.Name, epochs.Name} {
		testkit.Must(t, os.Remove(filepath.Join(d.Config.Data, name)))
		if st, found, err := storeOn(d).recoverAndClose(t); err != nil || found.Damaged || st.LSN != 43 {
			t.Errorf("without %s: %v, %+v, to %v", name, err, found, st.LSN)
		}
	}
}

// TestDamagedBackupIsNotAdopted: a node on the segments of a backup that lack its last frame keeps the files that record it.
func TestDamagedBackupIsNotAdopted(t *testing.T) {
	d := backupInPlace(t)
	mark, err := os.ReadFile(filepath.Join(d.Config.Data, durable.Name))
	testkit.Must(t, err)
	testkit.Must(t, backup.Cut{Journal: 7, LSN: 50}.Write(fs.Dir(d.Journal()), backup.CutName))
	if _, found, err := storeOn(d).recoverAndClose(t); err != nil || !found.Damaged {
		t.Fatalf("%v, %+v", err, found)
	}
	if is, err := os.ReadFile(filepath.Join(d.Config.Data, durable.Name)); err != nil || string(is) != string(mark) {
		t.Errorf("the mark is %q, %v", is, err)
	}
	for _, name := range []string{epochs.Name, backup.CutName} {
		if _, err := os.Stat(filepath.Join(d.Journal(), name)); err != nil {
			t.Error(err)
		}
	}
}

// TestBackupIsAdoptedLater: if the mark cannot be written, the files of the backup stay, and the next start removes them.
func TestBackupIsAdoptedLater(t *testing.T) {
	d := backupInPlace(t)
	block := filepath.Join(d.Config.Data, durable.Name+".new")
	testkit.Must(t, os.MkdirAll(filepath.Join(block, "full"), 0o700))
	cut := filepath.Join(d.Journal(), backup.CutName)
	if _, found, err := storeOn(d).recoverAndClose(t); err != nil || found.Damaged {
		t.Fatalf("%v, %+v", err, found)
	}
	if _, err := os.Stat(cut); err != nil {
		t.Error(err)
	}
	testkit.Must(t, os.RemoveAll(block))
	if _, _, err := storeOn(d).recoverAndClose(t); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(cut); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is there: %v", cut, err)
	}
}
