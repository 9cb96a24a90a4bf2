package nodedir

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	file "macronode/adapters/fs"
)

// lock locks a directory as its node does.
func lock(t *testing.T, dir string) *file.Held {
	t.Helper()
	held, err := file.Lock(file.Dir(dir), "v1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = held.Close() })
	return held
}

func here() Run {
	return Run{PID: os.Getpid(), Version: "v1", Listen: Listen{HTTP: "127.0.0.1:1", Admin: "127.0.0.1:2"}, Token: "t"}
}

// names lists the files of dir.
func names(t *testing.T, dir string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

func mode(t *testing.T, path string) fs.FileMode {
	t.Helper()
	is, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	return is.Mode()
}

func TestRunningNodeIsFound(t *testing.T) {
	dir := t.TempDir()
	if _, err := Read(dir); !errors.Is(err, ErrNotRunning) {
		t.Fatal(err)
	}
	lock(t, dir)
	old := here()
	old.Token = "of an earlier one"
	for _, r := range []Run{old, here()} {
		if err := Write(dir, r); err != nil {
			t.Fatal(err)
		}
		if got, err := Read(dir); err != nil || got != r {
			t.Fatal(got, err)
		}
	}
	if err := Remove(dir, old); err != nil {
		t.Fatal(err)
	}
	if got, err := Read(dir); err != nil || got != here() {
		t.Fatalf("an earlier node took the word of a later one back: %v, %v", got, err)
	}
	if err := errors.Join(Remove(dir, here()), Remove(dir, here())); err != nil {
		t.Fatal(err)
	}
	if left := names(t, dir); len(left) != 1 || left[0] != file.LockName {
		t.Fatal("left behind: ", left)
	}
}

// TestReusedPIDIsStale: another process has the PID of a node that died. No lock, or the lock of another process, shows it.
func TestReusedPIDIsStale(t *testing.T) {
	dir, r := t.TempDir(), here()
	held := lock(t, dir)
	if err := Write(dir, r); err != nil {
		t.Fatal(err)
	}
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	if got, err := Read(dir); !errors.Is(err, ErrStale) || got != r {
		t.Errorf("without a lock: %v, %v", got, err)
	}
	lock(t, dir)
	if got, err := Read(dir); err != nil || got != r {
		t.Errorf("with its lock: %v, %v", got, err)
	}
	r.PID = os.Getppid()
	if err := Write(dir, r); err != nil {
		t.Fatal(err)
	}
	if got, err := Read(dir); !errors.Is(err, ErrStale) || got != r {
		t.Errorf("with the lock of another process: %v, %v", got, err)
	}
	if err := os.Remove(filepath.Join(dir, file.LockName)); err != nil {
		t.Fatal(err)
	}
	if got, err := Read(dir); err != nil || got != r {
		t.Errorf("with a lock without a name: %v, %v", got, err)
	}
}

// Other programs read this file: its format is an API.
func TestRunJSONFormat(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "run.json.new"), []byte("of one that died while it wrote"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := Write(dir, here()); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "run.json"))
	if err != nil {
		t.Fatal(err)
	}
	var form struct {
		PID    int
		Listen map[string]string
	}
	if err := json.Unmarshal(text, &form); err != nil || form.PID != os.Getpid() || form.Listen["admin"] != "127.0.0.1:2" {
		t.Fatalf("%s: %v", text, err)
	}
	if m := mode(t, filepath.Join(dir, "run.json")); m != 0o600 {
		t.Fatal(m)
	}
	if left := names(t, dir); len(left) != 1 {
		t.Fatal("left behind: ", left)
	}
}

func TestDeadNodeIsStale(t *testing.T) {
	dead := exec.Command("true")
	if err := dead.Run(); err != nil {
		t.Fatal(err)
	}
	unburied := exec.Command("true")
	if err := unburied.Start(); err != nil {
		t.Fatal(err)
	}
	defer unburied.Wait() //nolint:errcheck // it has ended
	if err := unix.Waitid(unix.P_PID, unburied.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil); err != nil {
		t.Fatal(err)
	}
	for _, pid := range []int{dead.Process.Pid, unburied.Process.Pid, 0, -1} {
		dir, r := t.TempDir(), here()
		r.PID = pid
		if err := Write(dir, r); err != nil {
			t.Fatal(err)
		}
		if got, err := Read(dir); !errors.Is(err, ErrStale) || got != r {
			t.Fatalf("pid %d: %v, %v", pid, got, err)
		}
	}
}

func TestInvalidRunJSON(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "run.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if r, err := Read(dir); err == nil || errors.Is(err, ErrNotRunning) || errors.Is(err, ErrStale) {
		t.Fatal(r, err)
	}
}
