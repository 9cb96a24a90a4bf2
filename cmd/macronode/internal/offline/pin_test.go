package offline

import (
	"errors"
	"net/http"
	"path/filepath"
	"testing"

	"macronode/adapters/config"
	"macronode/adapters/fs"
	"macronode/cmd/macronode/internal/datadir"
	"macronode/cmd/macronode/internal/testkit"
	"macronode/core/digest"
	"macronode/core/storage"
)

// pinMeter notes whether the objects are pinned when a copy begins.
type pinMeter struct {
	noMeter
	objects fs.Dir
	rounds  *int
	pinned  *int
}

func (m pinMeter) Begin(int64) {
	*m.rounds++
	if _, err := fs.Unpinned(m.objects); errors.Is(err, fs.ErrHeld) {
		*m.pinned++
	}
}

// TestBackupPinsObjects: a backup pins the directory of the objects before it copies them.
func TestBackupPinsObjects(t *testing.T) {
	dir := t.TempDir()
	k := testkit.StartKillable(t, dir)
	if status, got := k.Object(t, http.MethodPut, "/o/"+storage.Address(digest.Sum([]byte("x"))).String(), []byte("x")); status/100 != 2 {
		t.Fatal(status, got)
	}
	k.End()
	cfg, err := config.Load(config.Sources{Environ: []string{"MACRONODE_DATA=" + dir}})
	testkit.Must(t, err)
	rounds, pinned := 0, 0
	e := Env{Objects: pinMeter{objects: fs.Dir(filepath.Join(dir, datadir.Objects)), rounds: &rounds, pinned: &pinned}}
	is, err := e.Backup(t.Context(), cfg, BackupOptions{To: t.TempDir()})
	testkit.Must(t, err)
	if is.Objects.Objects != 1 || rounds != 1 || pinned != 1 {
		t.Errorf("%+v, %d rounds, pinned in %d", is.Objects, rounds, pinned)
	}
	if free, err := fs.Unpinned(fs.Dir(filepath.Join(dir, datadir.Objects))); err != nil || free.Close() != nil {
		t.Errorf("after the backup: %v", err)
	}
}
