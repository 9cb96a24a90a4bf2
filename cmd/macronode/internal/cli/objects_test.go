package cli

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"macronode/cmd/macronode/internal/testkit"
	"macronode/core/digest"
	"macronode/core/storage"
)

// TestObjectsSurvive kills a node beside an unfinished upload: acknowledged objects are there and deleted ones are not,
// and the files that no object needs are removed.
func TestObjectsSurvive(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	k := testkit.StartKillable(t, dir, "--set", "storage.collect_interval=24h")
	files := func() []string {
		found, _ := filepath.Glob(filepath.Join(dir, "objects", "[0-9a-f]*"))
		return found
	}
	content := func(n int) []byte { return bytes.Repeat([]byte{byte(n)}, []int{0, 5, 200_000, 70_000}[n]) }
	at := func(n int) string { return "/o/" + storage.Address(digest.Sum(content(n))).String() }
	for n := range 4 {
		if status, got := k.Object(t, http.MethodPut, at(n), content(n)); status != http.StatusCreated {
			t.Fatalf("object %d: %d %s", n, status, got)
		}
	}
	if status, _ := k.Object(t, http.MethodDelete, at(3), nil); status != http.StatusOK {
		t.Fatalf("delete: %d", status)
	}
	kept := files()
	k.Half(t, make([]byte, 400_000))
	for check := testkit.HangGuard(t); !slices.ContainsFunc(files(), func(name string) bool { return !slices.Contains(kept, name) }); time.Sleep(time.Millisecond) {
		check()
	}
	k.End()

	k = testkit.StartKillable(t, dir, "--set", "storage.collect_interval=20ms")
	for check := testkit.HangGuard(t); len(files()) > 3; time.Sleep(time.Millisecond) {
		check()
	}
	for n := range 3 {
		if status, got := k.Object(t, http.MethodGet, at(n), nil); status != http.StatusOK || !bytes.Equal(got, content(n)) {
			t.Errorf("object %d: %d, %d bytes", n, status, len(got))
		}
	}
	if status, _ := k.Object(t, http.MethodGet, at(3), nil); status != http.StatusNotFound {
		t.Errorf("the deleted object: %d", status)
	}
	k.End()

	for _, name := range files() {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	k = testkit.StartKillable(t, dir)
	if status, got := k.Object(t, http.MethodGet, at(2), nil); status != http.StatusInternalServerError || !strings.Contains(string(got), "object_unreadable") {
		t.Errorf("an object without its file: %d %s", status, got)
	}
	if log := k.Log.String(); !strings.Contains(log, "objects without a file") || !strings.Contains(log, "objects=3") {
		t.Errorf("the log does not report the missing files:\n%s", log)
	}
	if status, got := k.Object(t, http.MethodPut, at(2), content(2)); status != http.StatusOK {
		t.Errorf("put again: %d %s", status, got)
	}
	if status, got := k.Object(t, http.MethodGet, at(2), nil); status != http.StatusOK || !bytes.Equal(got, content(2)) {
		t.Errorf("after it was put again: %d, %d bytes", status, len(got))
	}
}
