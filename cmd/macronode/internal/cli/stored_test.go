package cli

import (
	"bytes"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"macronode/cmd/macronode/internal/testkit"
	"macronode/core/digest"
	"macronode/core/storage"
)

// providersIn configures directories as providers, each with the name of its directory.
func providersIn(disks string, names ...string) string {
	var list []string
	for _, name := range names {
		list = append(list, fmt.Sprintf(`{"name":%q,"path":%q}`, name, filepath.Join(disks, name)))
	}
	return "storage.providers=[" + strings.Join(list, ",") + "]"
}

// sets returns the flags that set some keys.
func sets(keys ...string) (flags []string) {
	for _, key := range keys {
		flags = append(flags, "--set", key)
	}
	return flags
}

func addressOf(content []byte) string { return storage.Address(digest.Sum(content)).String() }

// putObjects stores contents in a node.
func putObjects(t *testing.T, k *testkit.Killable, contents ...[]byte) {
	t.Helper()
	for n, content := range contents {
		if status, got := k.Object(t, http.MethodPut, "/o/"+addressOf(content), content); status != http.StatusCreated {
			t.Fatalf("object %d: %d %s", n, status, got)
		}
	}
}

// readObjects reads contents from a node.
func readObjects(t *testing.T, k *testkit.Killable, contents ...[]byte) {
	t.Helper()
	for n, content := range contents {
		if status, got := k.Object(t, http.MethodGet, "/o/"+addressOf(content), nil); status != http.StatusOK || !bytes.Equal(got, content) {
			t.Fatalf("object %d: %d, %d bytes", n, status, len(got))
		}
	}
}

// macronode runs a command of the binary. ok reports that it exits with 0.
func macronode(args ...string) (output string, ok bool) {
	all, err := exec.Command("macronode", args...).CombinedOutput()
	return string(all), err == nil
}

// copyFiles returns the files of objects in a directory.
func copyFiles(dir string) []string {
	found, _ := filepath.Glob(filepath.Join(dir, "*-*"))
	return found
}
