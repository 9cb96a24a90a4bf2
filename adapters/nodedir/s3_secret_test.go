package nodedir_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"macronode/adapters/nodedir"
)

// TestS3SecretIsKept: a directory keeps the secret that its first start drew, for its owner alone.
func TestS3SecretIsKept(t *testing.T) {
	dir := t.TempDir()
	first, err := nodedir.OpenS3Secret(dir, strings.NewReader(strings.Repeat("1", 32)))
	if err != nil || first[0] != '1' {
		t.Fatalf("%x, %v", first, err)
	}
	again, err := nodedir.OpenS3Secret(dir, strings.NewReader(""))
	if err != nil || again != first {
		t.Fatalf("%x, %v", again, err)
	}
	path := filepath.Join(dir, "s3.secret")
	if is, err := os.Stat(path); err != nil || is.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", is.Mode(), err)
	}
	left, _ := os.ReadDir(dir)
	if len(left) != 1 {
		t.Errorf("%d files", len(left))
	}
	for _, text := range []string{"", "ab", strings.Repeat("g", 64), strings.Repeat("a", 65), strings.Repeat("a", 64) + "\n\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := nodedir.OpenS3Secret(dir, strings.NewReader("")); !errors.Is(err, nodedir.ErrSecret) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := nodedir.OpenS3Secret(dir, strings.NewReader("")); !errors.Is(err, nodedir.ErrShared) {
		t.Errorf("a file that others may read: %v", err)
	}
	if _, err := nodedir.OpenS3Secret(t.TempDir(), strings.NewReader("short")); err == nil {
		t.Error("a secret of five bytes")
	}
}

// TestAccessKeysDiffer: every key of every node has a secret access key of its own, which is the same at each start.
func TestAccessKeysDiffer(t *testing.T) {
	s := nodedir.S3Secret(bytes.Repeat([]byte{1}, 32))
	key := s.AccessKey(7, [32]byte{1})
	if len(key) != 43 || key != s.AccessKey(7, [32]byte{1}) {
		t.Errorf("%q", key)
	}
	other := nodedir.S3Secret(bytes.Repeat([]byte{2}, 32))
	for _, k := range []string{s.AccessKey(8, [32]byte{1}), s.AccessKey(7, [32]byte{2}), other.AccessKey(7, [32]byte{1})} {
		if k == key {
			t.Error("two keys have one secret")
		}
	}
}
