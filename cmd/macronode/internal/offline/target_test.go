package offline

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"macronode/cmd/macronode/internal/datadir"
	"macronode/cmd/macronode/internal/exit"
	"macronode/cmd/macronode/internal/testkit"
	"macronode/cmd/macronode/internal/testkit/journaldir"
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

// TestFullDiskHasOneExitCode: a backup and a restore without space have failed, at any point: the exit code is 1, and the error has the
// reason. A start that is refused has the code 2.
func TestFullDiskHasOneExitCode(t *testing.T) {
	l := journaldir.Payments(t, 400)
	for _, room := range []string{"nr_inodes=1", "nr_inodes=2", "nr_inodes=3", "nr_inodes=4", "size=4k", "size=16k"} {
		for what, run := range map[string]func(to string) error{
			"backup": func(to string) error {
				_, err := Env{}.Backup(t.Context(), l.Config, BackupOptions{To: to})
				return err
			},
			"restore": func(to string) error {
				into, o := *l.Config, RestoreOptions{From: l.Config.Data}
				into.Data = to
				r, err := Env{}.PlanRestore(t.Context(), &into, o)
				testkit.Must(t, err)
				return Env{}.Restore(t.Context(), &into, o, r)
			},
		} {
			to := t.TempDir()
			if err := syscall.Mount("none", to, "tmpfs", 0, room); err != nil {
				t.Skip("cannot mount a small disk:", err)
			}
			err := run(to)
			testkit.Must(t, syscall.Unmount(to, syscall.MNT_DETACH))
			if coded := (*exit.Error)(nil); !errors.Is(err, syscall.ENOSPC) || errors.As(err, &coded) {
				t.Errorf("%s, %s: %v, want exit code 1", what, room, err)
			}
		}
	}
}

// TestInterruptedRestoreHasFailed: a restore that is interrupted while it writes has failed, and names its directory.
func TestInterruptedRestoreHasFailed(t *testing.T) {
	l := journaldir.Payments(t, 400)
	ctx, end := context.WithCancel(t.Context())
	end()
	into, o := *l.Config, RestoreOptions{From: l.Config.Data}
	into.Data = t.TempDir()
	r, err := Env{}.PlanRestore(t.Context(), &into, o)
	testkit.Must(t, err)
	err = Env{}.Restore(ctx, &into, o, r)
	if coded := (*exit.Error)(nil); err == nil || errors.As(err, &coded) || !strings.Contains(err.Error(), "the restore into "+into.Data+" is not completed: ") {
		t.Errorf("%v, want exit code 1", err)
	}
}
