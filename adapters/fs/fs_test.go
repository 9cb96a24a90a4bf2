package fs_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"macronode/adapters/fs"
	"macronode/adapters/fstest"
)

// holds names a directory. A process with this variable holds its lock until its input ends.
const holds = "MACRONODE_TEST_HOLDS"

func TestMain(m *testing.M) {
	dir := os.Getenv(holds)
	if dir == "" {
		os.Exit(m.Run())
	}
	_, err := fs.Lock(fs.Dir(dir), "macronode v0.0.1")
	fmt.Println(err)
	_, _ = bufio.NewReader(os.Stdin).ReadByte() // until the input is closed, or the process is killed
	os.Exit(0)
}

func TestContract(t *testing.T) {
	fstest.FS(t, func(t *testing.T) fs.FS { return fs.Dir(t.TempDir()) })
}

func TestFilesArePrivate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "newer")
	d, err := fs.Make(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := d.Create("a")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for name, want := range map[string]os.FileMode{path: 0o700, filepath.Dir(path): 0o700, filepath.Join(path, "a"): 0o600} {
		if at, err := os.Stat(name); err != nil || at.Mode().Perm() != want {
			t.Errorf("%s: %v, %v, want %v", name, at.Mode().Perm(), err, want)
		}
	}
	if again, err := fs.Make(path); again != d || err != nil {
		t.Fatalf("made again: %v, %v", again, err)
	}
	if _, err := fs.Make(filepath.Join(path, "a")); err == nil {
		t.Fatal("a file was taken for a directory")
	}
}

// TestLockNamesItsHolder: a second process gets the name of the first, and the lock of a process
// ends with it, however it ends.
func TestLockNamesItsHolder(t *testing.T) {
	dir := t.TempDir()
	first := exec.Command(os.Args[0])
	first.Env = append(os.Environ(), holds+"="+dir)
	in, err := first.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := first.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	if reported, err := bufio.NewReader(out).ReadString('\n'); reported != "<nil>\n" {
		t.Fatalf("the first did not get the lock: %s, %v", reported, err)
	}

	_, err = fs.Lock(fs.Dir(dir), "macronode v0.0.2")
	want := fmt.Sprintf("%s is held by process %d, macronode v0.0.1", dir, first.Process.Pid)
	if !errors.Is(err, fs.ErrHeld) || !strings.HasSuffix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
		t.Fatalf("the second process got %q, want ... %q", err, want)
	}

	if holder, want := fs.Holder(fs.Dir(dir)), fmt.Sprintf("process %d, macronode v0.0.1", first.Process.Pid); holder != want {
		t.Fatalf("held by %q, want %q", holder, want)
	}

	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = first.Wait() // killed: reports an error
	if holder := fs.Holder(fs.Dir(dir)); holder != "" {
		t.Fatalf("held by %q, which is dead", holder)
	}
	held, err := fs.Lock(fs.Dir(dir), "macronode v2")
	if err != nil {
		t.Fatalf("the lock outlived its process: %v", err)
	}
	defer held.Close()
	reported, err := os.ReadFile(filepath.Join(dir, fs.LockName))
	if want := fmt.Sprintf("process %d, macronode v2\n", os.Getpid()); err != nil || string(reported) != want {
		t.Fatalf("the file has %q, %v, want %q", reported, err, want)
	}
}

func TestCloseReleasesLock(t *testing.T) {
	d := fs.Dir(t.TempDir())
	for range 2 {
		held, err := fs.Lock(d, "macronode")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fs.Lock(d, "macronode"); !errors.Is(err, fs.ErrHeld) {
			t.Fatalf("held twice: %v", err)
		}
		if holder := fs.Holder(d); !strings.HasPrefix(holder, "process ") {
			t.Fatalf("held by %q", holder)
		}
		if err := held.Close(); err != nil {
			t.Fatal(err)
		}
		if holder := fs.Holder(d); holder != "" {
			t.Fatalf("given back, and held by %q", holder)
		}
	}
	if holder := fs.Holder(fs.Dir(t.TempDir())); holder != "" {
		t.Fatalf("no process locked it, but it is held by %q", holder)
	}
}

// TestLockOutlivesItsFile removes the file with the holder's name: the directory stays locked.
func TestLockOutlivesItsFile(t *testing.T) {
	d := fs.Dir(t.TempDir())
	held, err := fs.Lock(d, "macronode")
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	if err := os.Remove(filepath.Join(string(d), fs.LockName)); err != nil {
		t.Fatal(err)
	}
	if _, err := fs.Lock(d, "second"); !errors.Is(err, fs.ErrHeld) || !strings.Contains(err.Error(), "it is just starting, or the file was removed") {
		t.Errorf("locked twice: %v", err)
	}
	if _, err := fs.Hold(d, "reader"); !errors.Is(err, fs.ErrHeld) {
		t.Errorf("read beside its holder: %v", err)
	}
	if err := held.Check(); err != nil {
		t.Errorf("the lock is lost with its file: %v", err)
	}
}

// TestCheckDetectsReplacedDirectory replaces, removes and restores a locked directory.
func TestCheckDetectsReplacedDirectory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	held, err := fs.Lock(fs.Dir(path), "macronode")
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	step := func(what string, do func() error, lost bool) {
		t.Helper()
		if err := do(); err != nil {
			t.Fatal(err)
		}
		if err := held.Check(); errors.Is(err, fs.ErrLost) != lost || !lost && err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	step("as it was", func() error { return nil }, false)
	step("renamed", func() error { return os.Rename(path, path+".old") }, true)
	step("replaced", func() error { return os.Mkdir(path, 0o700) }, true)
	step("restored", func() error { return errors.Join(os.Remove(path), os.Rename(path+".old", path)) }, false)
	step("removed", func() error { return os.RemoveAll(path) }, true)
}
