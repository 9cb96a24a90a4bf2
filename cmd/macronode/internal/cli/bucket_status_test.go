package cli

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"macronode/cmd/macronode/internal/testkit"
	"macronode/core/digest"
	"macronode/core/storage"
)

// storageBecomes repeats a command about copies until its output has a text.
func storageBecomes(t *testing.T, dir, want string, args ...string) {
	t.Helper()
	for check := testkit.HangGuard(t); ; check() {
		output, _ := exec.Command("macronode", append(append([]string{"storage"}, args...), "--data", dir)...).CombinedOutput()
		if strings.Contains(string(output), want) {
			return
		}
		t.Logf("not yet %q:\n%s", want, output)
		time.Sleep(50 * time.Millisecond)
	}
}

// putBucketContent stores some of the contents of tests of buckets.
func putBucketContent(t *testing.T, k *testkit.Killable, from, to int) {
	t.Helper()
	for n := from; n < to; n++ {
		content := bucketContent(n)
		if status, got := k.Object(t, http.MethodPut, "/o/"+storage.Address(digest.Sum(content)).String(), content); status != http.StatusCreated {
			t.Fatalf("object %d: %d %s", n, status, got)
		}
	}
}

// TestUnreachedCopiesAreNotMissing: the only good copy of an object is in a bucket whose server is away. Nothing is known of it, so it
// is neither missing nor lost; when the server is back, the other copy is restored from it.
func TestUnreachedCopiesAreNotMissing(t *testing.T) {
	t.Parallel()
	server, dir, disk := newBucketServer(t), t.TempDir(), filepath.Join(t.TempDir(), "a")
	k := testkit.StartKillable(t, dir, directoryAndBucket(disk, server)...)
	putBucketContent(t, k, 0, 3)
	storageBecomes(t, dir, "all objects had their copies at ", "repair")

	server.stop()
	storageBecomes(t, dir, "; failed: ", "status")
	testkit.Must(t, os.Remove(copyFiles(disk)[0]))
	storageBecomes(t, dir, "s (bucket): its objects are not known; 0 copies missing, 3 not reached, ", "repair")
	storageBecomes(t, dir, ", 1 cannot be read until the failed providers can be used: do not delete them; ", "status")
	storageBecomes(t, dir, `"objects_without_copy":0,"unreached_objects":1`, "status", "--json")

	server.start(t)
	storageBecomes(t, dir, "all objects had their copies at ", "repair")
	storageBecomes(t, dir, "s (bucket): 3 objects, 270005 bytes; 0 copies missing, 0 damaged", "status")
}

// TestStatusHasReasonOfFailedRestore: the server of a bucket refuses a copy, and its probe finds nothing wrong. When the object that
// lacks it is deleted, the reason is gone.
func TestStatusHasReasonOfFailedRestore(t *testing.T) {
	t.Parallel()
	server, dir := newBucketServer(t, "--set", "storage.bucket_bytes=100KiB"), t.TempDir()
	k := testkit.StartKillable(t, dir, directoryAndBucket(filepath.Join(t.TempDir(), "a"), server)...)
	putBucketContent(t, k, 0, 2) // 5 bytes, and 200,000
	storageBecomes(t, dir, "s (bucket): 1 objects, 5 bytes; 1 copies missing, 0 damaged at the last scrub; the last copy was not restored: ", "repair")
	storageBecomes(t, dir, "status 403, QuotaExceeded\n", "status")
	storageBecomes(t, dir, `"restore_failure":"`, "status", "--json")
	if status, got := k.Object(t, http.MethodDelete, "/o/"+storage.Address(digest.Sum(bucketContent(1))).String(), nil); status != http.StatusOK {
		t.Fatalf("%d %s", status, got)
	}
	storageBecomes(t, dir, "s (bucket): 1 objects, 5 bytes; 0 copies missing, 0 damaged at the last scrub\n", "repair")
}
