package fs_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"macronode/adapters/fs"
)

// openFilesOf makes the test print its limit of open files and end.
const openFilesOf = "TEST_OPEN_FILES"

// TestOpenFilesIsTheHardLimit: under a soft limit of 50 and a hard limit of 100, a process may have all of these open.
func TestOpenFilesIsTheHardLimit(t *testing.T) {
	n, err := fs.OpenFiles()
	if err != nil {
		t.Fatal(err)
	}
	if os.Getenv(openFilesOf) != "" {
		if n != 99 && n != 100 { // the runtime may leave one
			t.Fatalf("%d open files", n)
		}
		return
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-c", `ulimit -Sn 50; ulimit -Hn 100; exec "$0" -test.run '^TestOpenFilesIsTheHardLimit$' -test.v`, program)
	cmd.Env = append(os.Environ(), openFilesOf+"=1")
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: TestOpenFilesIsTheHardLimit") {
		t.Errorf("%v\n%s", err, out)
	}
}
