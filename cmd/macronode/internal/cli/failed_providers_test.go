package cli

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"macronode/cmd/macronode/internal/testkit"
	"macronode/core/digest"
	"macronode/core/storage"
)

// TestFailedProvidersDegrade: while one of two directories cannot be used, the node is degraded by it. While neither can be
// used, reads and uploads of objects fail, and the node reports that as well.
func TestFailedProvidersDegrade(t *testing.T) {
	t.Parallel()
	disks := t.TempDir()
	a, b := filepath.Join(disks, "a"), filepath.Join(disks, "b")
	p := startNode(t, fmt.Sprintf(`storage.providers=[{"name":"a","path":%q},{"name":"b","path":%q}]`, a, b), "storage.repair.interval=20ms")
	becomes := func(want string) {
		t.Helper()
		for check := testkit.HangGuard(t); !strings.Contains(p.adminText(t, "/readyz?verbose"), want); check() {
			time.Sleep(time.Millisecond) // until the next probe
		}
	}
	becomes(`"degraded_by":[]`)
	failDirectory(t, b)
	becomes(`"degraded_by":["provider_failed"]`)
	becomes(`"failed_providers":["b: `)
	failDirectory(t, a)
	becomes(`"degraded_by":["objects_unavailable","uploads_refused","provider_failed"]`)
	restoreDirectory(t, b)
	becomes(`"degraded_by":["provider_failed"]`)
	restoreDirectory(t, a)
	becomes(`"degraded_by":[]`)
}

// TestReadsOfFailedProviders: while no directory can be used, a read is to be repeated, for the object is not lost.
func TestReadsOfFailedProviders(t *testing.T) {
	t.Parallel()
	disks := t.TempDir()
	a, b := filepath.Join(disks, "a"), filepath.Join(disks, "b")
	p := startNode(t, fmt.Sprintf(`storage.providers=[{"name":"a","path":%q},{"name":"b","path":%q}]`, a, b), "storage.repair.interval=20ms")
	boot, err := os.ReadFile(filepath.Join(p.dir, "bootstrap.key"))
	testkit.Must(t, err)
	send := func(method string, body io.Reader) (status int, after string) {
		req, err := http.NewRequestWithContext(t.Context(), method, p.HTTP+"/o/"+storage.Address(digest.Sum([]byte("content"))).String(), body)
		testkit.Must(t, err)
		req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(boot)))
		resp, err := http.DefaultClient.Do(req)
		testkit.Must(t, err)
		testkit.Must(t, resp.Body.Close())
		return resp.StatusCode, resp.Header.Get("Retry-After")
	}
	if status, _ := send(http.MethodPut, strings.NewReader("content")); status != http.StatusCreated {
		t.Fatal(status)
	}
	for _, dir := range []string{a, b} {
		testkit.Must(t, os.Rename(dir, dir+".away"))
		for check := testkit.HangGuard(t); os.WriteFile(dir, nil, 0o600) != nil; check() { // the node has made it again
			testkit.Must(t, os.RemoveAll(dir))
		}
	}
	if status, after := send(http.MethodGet, http.NoBody); status != http.StatusServiceUnavailable || after == "" {
		t.Errorf("%d, retry after %q", status, after)
	}
	for _, dir := range []string{a, b} {
		restoreDirectory(t, dir)
	}
	for check := testkit.HangGuard(t); ; check() {
		status, _ := send(http.MethodGet, http.NoBody)
		if status == http.StatusOK {
			break
		}
		if status != http.StatusServiceUnavailable {
			t.Fatal(status)
		}
		time.Sleep(time.Millisecond) // until the next probe
	}
}

// TestMissingCopiesDegrade: when two of three providers have lost their files and are used again, the node is degraded
// until no object lacks a copy: those without any must be deleted, or uploaded again.
func TestMissingCopiesDegrade(t *testing.T) {
	t.Parallel()
	disks := t.TempDir()
	p := startNode(t, fmt.Sprintf(`storage.providers=[{"name":"a","path":"%[1]s/a"},{"name":"b","path":"%[1]s/b"},{"name":"c","path":"%[1]s/c"}]`, disks), "storage.repair.interval=20ms")
	becomes := func(path, want string) {
		t.Helper()
		for check := testkit.HangGuard(t); !strings.Contains(p.adminText(t, path), want); check() {
			time.Sleep(time.Millisecond)
		}
	}
	boot, err := os.ReadFile(filepath.Join(p.dir, "bootstrap.key"))
	testkit.Must(t, err)
	object := func(method string, n int) {
		t.Helper()
		content := fmt.Append(nil, "content ", n)
		req, err := http.NewRequestWithContext(t.Context(), method, p.HTTP+"/o/"+storage.Address(digest.Sum(content)).String(), bytes.NewReader(content))
		testkit.Must(t, err)
		if method == http.MethodDelete {
			req.Body, req.ContentLength = http.NoBody, 0
		}
		req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(boot)))
		resp, err := http.DefaultClient.Do(req)
		testkit.Must(t, err)
		testkit.Must(t, resp.Body.Close())
		if resp.StatusCode >= 300 {
			t.Fatalf("%s %d: %d", method, n, resp.StatusCode)
		}
	}
	objects := 30
	for n := range objects {
		object("PUT", n)
	}
	becomes("/storage", `"objects_lacking":0`)
	testkit.Must(t, os.Rename(filepath.Join(disks, "b"), filepath.Join(t.TempDir(), "b")))
	for check := testkit.HangGuard(t); !strings.Contains(p.log.String(), "copy of an object restored"); check() {
		time.Sleep(time.Millisecond)
	}
	becomes("/readyz", `"degraded_by":[]`) // restored from the others, perhaps to the others alone
	for check := testkit.HangGuard(t); countFiles(t, filepath.Join(disks, "b")) < 20; check() {
		object("PUT", objects) // of the new ones, some are on b and c alone
		objects++
	}
	for _, lost := range []string{"b", "c"} {
		testkit.Must(t, os.Rename(filepath.Join(disks, lost), filepath.Join(t.TempDir(), lost)))
	}
	becomes("/readyz", `"degraded_by":["copies_missing"`)
	becomes("/storage", `"repairs_waiting":0,"repairs_running":0`)
	becomes("/readyz", `"degraded_by":["copies_missing","objects_lost"]`)
	for n := range objects {
		object("DELETE", n)
	}
	becomes("/readyz", `"degraded_by":[]`)
}

// countFiles returns the number of files in dir, which may be missing.
func countFiles(t *testing.T, dir string) (n int) {
	t.Helper()
	testkit.Must(t, filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			n++
		}
		return nil
	}))
	return n
}
