package cli

import (
	"bytes"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"macronode/adapters/journalfile"
	"macronode/cmd/macronode/internal/datadir"
	"macronode/cmd/macronode/internal/testkit"
	"macronode/core/digest"
	"macronode/core/storage"
)

// TestVerifyNamesRefusedDirectory: a directory of objects with a damaged identity, or with that of another node, is reported: the node would
// refuse it. One that a restore has made is not.
func TestVerifyNamesRefusedDirectory(t *testing.T) {
	t.Parallel()
	dir, copied, again := t.TempDir(), filepath.Join(t.TempDir(), "copy"), filepath.Join(t.TempDir(), "again")
	k := testkit.StartKillable(t, dir)
	content := []byte("kept")
	if status, got := k.Object(t, http.MethodPut, "/o/"+storage.Address(digest.Sum(content)).String(), content); status != http.StatusCreated {
		t.Fatalf("%d %s", status, got)
	}
	k.End()
	command := func(args ...string) (string, bool) {
		output, err := exec.Command("macronode", args...).CombinedOutput()
		return string(output), err == nil
	}
	for _, args := range [][]string{{"backup", copied, "--data", dir}, {"restore", copied, "--data", again}, {"verify", "--data", dir}, {"verify", "--data", again}} {
		if output, ok := command(args...); !ok {
			t.Errorf("%v: %s", args, output)
		}
	}
	name := filepath.Join(dir, "objects", "provider.id")
	intact, err := os.ReadFile(name)
	testkit.Must(t, err)
	const damaged = "its file provider.id is empty or damaged; the next start of the node writes it again"
	for what, c := range map[string]struct{ identity, want string }{
		"damaged":      {"x" + string(intact[:len(intact)-2]), damaged},
		"empty":        {"", damaged},
		"another node": {strings.Replace(string(intact), "journal ", "journal f", 1)[:len(intact)-1] + "\n", "its file provider.id says "},
	} {
		testkit.Must(t, os.WriteFile(name, []byte(c.identity), 0o600))
		output, ok := command("verify", "--data", dir)
		if ok || !strings.Contains(output, "a directory of objects is refused: provider local: "+c.want) || strings.Contains(output, "another node") != (what == "another node") {
			t.Errorf("%s: %v %s", what, ok, output)
		}
		if output, _ := command("verify", "--json", "--data", dir); !strings.Contains(output, `"ok":false`) || !strings.Contains(output, `"foreign_directories":["provider local: `) {
			t.Errorf("%s: %s", what, output)
		}
	}
}

// TestPreviewNeedsSourceJournal: a preview names a source directory that has no journal, also if the directory of the journal is there.
func TestPreviewNeedsSourceJournal(t *testing.T) {
	t.Parallel()
	dir, copied, empty := t.TempDir(), filepath.Join(t.TempDir(), "copy"), t.TempDir()
	testkit.StartKillable(t, dir).End()
	if output, err := exec.Command("macronode", "backup", copied, "--data", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	testkit.Must(t, os.Mkdir(filepath.Join(empty, "journal"), 0o700))
	for _, source := range []string{t.TempDir(), empty} {
		output, err := exec.Command("macronode", "restore", copied, "--preview", "--source-data", source, "--data", filepath.Join(t.TempDir(), "new")).CombinedOutput()
		if err == nil || !strings.Contains(string(output), "there is no journal in "+source) {
			t.Errorf("%v: %s", err, output)
		}
	}
}

// TestVerifyShowsProgressOfObjects: a verification that reads objects shows after each how many of their bytes it has read, with the total.
func TestVerifyShowsProgressOfObjects(t *testing.T) {
	t.Parallel()
	dir, total := t.TempDir(), int64(0)
	k := testkit.StartKillable(t, dir)
	for n := range 3 {
		content := bytes.Repeat([]byte{byte(n)}, 1000+n)
		if status, got := k.Object(t, http.MethodPut, "/o/"+storage.Address(digest.Sum(content)).String(), content); status != http.StatusCreated {
			t.Fatalf("%d %s", status, got)
		}
		total += int64(len(content))
	}
	k.End()
	c, shown := newTestConsole(), []int64(nil)
	env := c.offlineEnv()
	env.Progress = func(p journalfile.Progress) {
		if p.Segment == datadir.Objects {
			if shown = append(shown, p.Done); p.Total != total {
				t.Errorf("%+v, want a total of %d", p, total)
			}
		}
	}
	if r, err := env.Verify(t.Context(), testkit.Config(t, "data="+dir), false, true); err != nil || !r.OK {
		t.Fatalf("%+v, %v", r, err)
	}
	if len(shown) != 3 || !slices.IsSorted(shown) || shown[0] < 1000 || shown[2] != total {
		t.Errorf("shown: %d of %d", shown, total)
	}
}
