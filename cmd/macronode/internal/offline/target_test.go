package offline

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"macronode/cmd/macronode/internal/datadir"
	"macronode/cmd/macronode/internal/testkit"
)

// TestBackupKeepsOutOfTheNode: a backup is not made inside a directory of the node, also not by a link, and not beside other files.
func TestBackupKeepsOutOfTheNode(t *testing.T) {
	root := t.TempDir()
	in := func(name string) string { return filepath.Join(root, name) }
	for _, dir := range []string{filepath.Join("data", datadir.Journal), "disk", "archive", "full/other"} {
		testkit.Must(t, os.MkdirAll(in(dir), 0o700))
	}
	testkit.Must(t, os.Symlink(in("archive"), in("link")))
	cfg := testkit.Config(t, "data="+in("data"), "journal.archive="+in("archive"), `storage.providers=[{"name":"one","path":"`+in("disk")+`"}]`)
	for dir, want := range map[string]string{
		"data": "the data directory", "data/backup": "the data directory", "disk": "the directory of provider one", "disk/backup": "the directory of provider one",
		"archive": "the archive of the journal", "link/backup": "the archive of the journal", "full": "is not empty and is not a backup", "new": "", ".": "is not empty",
	} {
		err := checkTarget(in(dir), cfg)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", dir, err, want)
		}
	}
}
