package offline

import (
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"macronode/adapters/config"
	"macronode/cmd/macronode/internal/datadir"
	"macronode/cmd/macronode/internal/exit"
	"macronode/cmd/macronode/internal/testkit"
	"macronode/cmd/macronode/internal/testkit/journaldir"
	"macronode/core/digest"
	"macronode/core/storage"
)

// asOtherUser calls f with the file permissions of a user that owns no file.
func asOtherUser(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		_ = syscall.Setfsuid(65534)
		f()
	}()
	<-done
}

// share lets every user change a directory and what is in it, except for one file that none can read.
func share(t *testing.T, dir, unreadable string) {
	t.Helper()
	testkit.Must(t, os.Chmod(filepath.Dir(dir), 0o755))
	testkit.Must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Chmod(path, 0o777)
	}))
	testkit.Must(t, os.Chmod(unreadable, 0))
}

// TestVerifyDistinguishesPermission: a file that the user may not read is not called damaged.
func TestVerifyDistinguishesPermission(t *testing.T) {
	const advice = "permission denied: nothing is known of its content; run the command as the user of the node"
	for _, name := range []string{"journal/00000002.seg", "snapshots/0000000000000010.snap"} {
		l := journaldir.Payments(t, 40, 10, 30)
		share(t, l.Config.Data, filepath.Join(l.Config.Data, name))
		asOtherUser(func() {
			if _, text, code := runVerify(t, l, false); code != exit.CodeUnable || !strings.Contains(text, advice) {
				t.Errorf("%s: exit code %d, %s", name, code, text)
			}
		})
	}

	dir := t.TempDir()
	k := testkit.StartKillable(t, dir)
	if status, got := k.Object(t, http.MethodPut, "/o/"+storage.Address(digest.Sum([]byte("x"))).String(), []byte("x")); status/100 != 2 {
		t.Fatal(status, got)
	}
	k.End()
	cfg, err := config.Load(config.Sources{Environ: []string{"MACRONODE_DATA=" + dir}})
	testkit.Must(t, err)
	files, err := filepath.Glob(filepath.Join(dir, datadir.Objects, "*"))
	testkit.Must(t, err)
	share(t, dir, files[0])
	asOtherUser(func() {
		if _, text, code := runVerify(t, journaldir.Directory{Config: cfg}, false); code != exit.CodeUnable || !strings.Contains(text, advice) {
			t.Errorf("%s: exit code %d, %s", files[0], code, text)
		}
	})
}

// TestForbiddenDirectoryIsNotMissing: if the user may not see whether there is a journal, the commands say that, and not that there
// is none.
func TestForbiddenDirectoryIsNotMissing(t *testing.T) {
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	testkit.Must(t, os.MkdirAll(filepath.Join(data, datadir.Journal), 0o700))
	testkit.Must(t, os.Chmod(data, 0))
	t.Cleanup(func() { testkit.Must(t, os.Chmod(data, 0o700)) })
	cfg := &config.Config{Data: data}
	for name, run := range map[string]func() error{
		"verify":  func() error { _, err := Env{}.Verify(t.Context(), cfg, false, false); return err },
		"backup":  func() error { return checkTarget(filepath.Join(dir, "copy"), cfg) },
		"restore": func() error { _, err := Env{}.PlanRestore(t.Context(), cfg, RestoreOptions{From: data}); return err },
	} {
		asOtherUser(func() {
			if err := run(); err == nil || !strings.Contains(err.Error(), "permission denied: nothing is known of its content; run the command as the user of the node") {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}
