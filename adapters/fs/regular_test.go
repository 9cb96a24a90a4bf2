package fs_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"macronode/adapters/fs"
)

// TestOpenRegularNeverWaits: a named pipe, a socket, a device and a directory are rejected at once. A file, and a
// symbolic link to one, is read.
func TestOpenRegularNeverWaits(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(os.WriteFile(at("file"), []byte("text"), 0o600), os.Symlink("file", at("link")), syscall.Mkfifo(at("pipe"), 0o600), os.Mkdir(at("directory"), 0o700)); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir) // the path of a socket is short
	l, err := net.Listen("unix", "socket")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, path := range []string{at("pipe"), at("socket"), at("directory"), "/dev/null"} {
		if _, err := fs.ReadRegular(path); !errors.Is(err, fs.ErrNotRegular) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, err := fs.Dir(dir).Open("pipe"); !errors.Is(err, fs.ErrNotRegular) {
		t.Errorf("a pipe in a directory: %v", err)
	}
	for _, path := range []string{at("file"), at("link")} {
		if text, err := fs.ReadRegular(path); err != nil || string(text) != "text" {
			t.Errorf("%s: %q, %v", path, text, err)
		}
	}
	if _, err := fs.ReadRegular(at("none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}
