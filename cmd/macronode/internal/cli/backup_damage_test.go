package cli

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"macronode/cmd/macronode/internal/exit"
	"macronode/cmd/macronode/internal/testkit"
)

// TestBackupWithObjectsEndsBeforeDamage: the journal is damaged before and behind the end of a backup. The backup gets the frames and the
// objects between, and reports the second damage.
func TestBackupWithObjectsEndsBeforeDamage(t *testing.T) {
	t.Parallel()
	dir, copied := t.TempDir(), filepath.Join(t.TempDir(), "copy")
	put := func(n int) {
		k := testkit.StartKillable(t, dir)
		putObjects(t, k, bytes.Repeat([]byte{byte(n)}, 1000))
		k.End()
	}
	put(1)
	put(2)
	if output, err := exec.Command("macronode", "backup", copied, "--data", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	for n := 3; n <= 5; n++ {
		put(n)
	}
	testkit.Must(t, flipByte(filepath.Join(dir, "journal", "00000001.seg"), 300))
	for _, name := range []string{"00000004.seg", "00000005.seg"} { // a segment begins with the last frame of the one before
		path := filepath.Join(dir, "journal", name)
		text, err := os.ReadFile(path)
		testkit.Must(t, err)
		second := bytes.Index(text[81:], []byte("MNB1")) + 81 // group of frames
		testkit.Must(t, os.WriteFile(path, append(text[:second], bytes.Repeat([]byte{0xff}, len(text)-second)...), 0o600))
	}
	for _, added := range []string{"1 objects, 1000 bytes are new", "0 objects, 0 bytes are new"} {
		text, err := exec.Command("macronode", "backup", copied, "--data", dir).CombinedOutput()
		output := string(text)
		if ended, ok := errors.AsType[*exec.ExitError](err); !ok || ended.ExitCode() != exit.CodeFailed {
			t.Errorf("%v: %s", err, output)
		}
		for _, want := range []string{"and 3 objects of 3000 bytes: " + added, "the journal is damaged at byte ", " of 00000004.seg"} {
			if !strings.Contains(output, want) {
				t.Errorf("%q is not said: %s", want, output)
			}
		}
		if strings.Contains(output, "another journal") {
			t.Error(output)
		}
	}
}
