package cli

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"macronode/adapters/archive"
	"macronode/adapters/fs"
	"macronode/adapters/journalfile"
	"macronode/cmd/macronode/internal/datadir"
	"macronode/cmd/macronode/internal/exit"
	"macronode/cmd/macronode/internal/testkit"
)

// program runs macronode to its end, and returns its exit code and its output.
func program(t *testing.T, args ...string) (code int, output string) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute) // ends a node that should not have started
	defer stop()
	out, err := exec.CommandContext(ctx, "macronode", args...).CombinedOutput()
	if ended := (*exec.ExitError)(nil); errors.As(err, &ended) {
		return ended.ExitCode(), string(out)
	}
	testkit.Must(t, err)
	return 0, string(out)
}

// wantProgram is program, and requires an exit code and parts of the output.
func wantProgram(t *testing.T, code int, want []string, args ...string) {
	t.Helper()
	got, output := program(t, args...)
	if got != code {
		t.Errorf("macronode %s: exit code %d, not %d", args[0], got, code)
	}
	for _, part := range want {
		if !strings.Contains(output, part) {
			t.Errorf("macronode %s prints no %q:\n%s", args[0], part, output)
		}
	}
}

// partlyArchived returns the data directory of a node that has ended, and the archive with its first segment. What the node
// acknowledged last is not archived.
func partlyArchived(t *testing.T) (dir, kept string) {
	t.Helper()
	dir, kept = t.TempDir(), t.TempDir()
	for _, account := range []string{"ann", "bob"} { // each start begins a segment
		p := startInDir(t, dir, "--set", "journal.archive="+kept)
		wantProgram(t, 0, nil, "wallet", "issue", "--to", account, "--asset", "EUR/2", "--amount", "1000", "--ref", "invoice-"+account, "--data", dir)
		p.end()
	}
	a, err := archive.New(fs.Dir(filepath.Join(dir, "journal")), fs.Dir(kept))
	testkit.Must(t, err)
	testkit.Must(t, a.Move([]string{"00000001.seg"}, nil, func(archive.Moved) {}))
	return dir, kept
}

// TestLostDataDirectoryIsNotContinued: with the archive alone, no node starts: it would continue the older part of the journal under the same ID.
// If the rest is given up, there is a journal of another ID.
func TestLostDataDirectoryIsNotContinued(t *testing.T) {
	t.Parallel()
	dir, kept := partlyArchived(t)
	archived := "journal.archive=" + kept
	for what, left := range map[string]string{"nothing": "", "the objects": "objects", "the API key": "bootstrap.key"} {
		empty := t.TempDir()
		if left != "" {
			testkit.Must(t, exec.Command("cp", "-r", filepath.Join(dir, left), filepath.Join(empty, left)).Run())
		}
		wantProgram(t, exit.CodeUnable, []string{"there is no journal in " + empty + ", but journal.archive (" + kept + ") has older segments of one"},
			"verify", "--data", empty, "--set", archived)
		wantProgram(t, exit.CodeUnable, []string{"journal has no segment, but journal.archive (" + kept + ") has older segments of a journal: mount the disk of " + empty},
			"serve", "--data", empty, "--http", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--set", archived)
		wantProgram(t, exit.CodeFailed, []string{"durable frames after @", "no node accepts writes on it"}, "verify", "--data", empty, "--set", archived)
		if t.Failed() {
			t.Fatalf("with %s left", what)
		}
	}
	p := startInDir(t, dir, "--set", archived) // nothing has changed
	wantProgram(t, 0, []string{"1000"}, "wallet", "balance", "bob", "EUR/2", "--data", dir)
	p.end()

	empty, taken, restored := t.TempDir(), t.TempDir(), t.TempDir()
	testkit.Must(t, os.Mkdir(filepath.Join(empty, "journal"), 0o700))
	wantProgram(t, exit.CodeFailed, []string{"the backup lacks durable frames"}, "backup", taken, "--data", empty, "--set", archived)
	wantProgram(t, exit.CodeFailed, nil, "restore", taken, "--data", restored)
	wantProgram(t, exit.CodeUnable, []string{"journal.archive has segments of another journal"}, "restore", taken, "--accept-loss", "--data", restored, "--set", archived)
	wantProgram(t, 0, []string{"restored into " + restored + " as journal "}, "restore", taken, "--accept-loss", "--data", restored)
	p = startInDir(t, restored)
	wantProgram(t, 0, []string{"1000"}, "wallet", "balance", "ann", "EUR/2", "--data", restored)
	wantProgram(t, 0, nil, "wallet", "issue", "--to", "bob", "--asset", "EUR/2", "--amount", "7", "--data", restored)
	p.end()
	wantProgram(t, 0, []string{" is intact: "}, "verify", "--data", restored)
}

// TestOlderDataDirectoryIsNotContinued: beside an archive that is ahead of it, an older copy of a data directory is served for reading.
func TestOlderDataDirectoryIsNotContinued(t *testing.T) {
	t.Parallel()
	dir, kept := partlyArchived(t)
	testkit.Must(t, os.Remove(filepath.Join(dir, "durable")))
	testkit.Must(t, os.RemoveAll(filepath.Join(dir, "index")))
	live := filepath.Join(dir, "journal", "00000002.seg")
	text, err := os.ReadFile(filepath.Join(kept, "00000001.seg.zst"))
	testkit.Must(t, err)
	testkit.Must(t, os.Rename(live, live+".away"))
	wantProgram(t, exit.CodeUnable, []string{"journal has no segment, but journal.archive"},
		"serve", "--data", dir, "--http", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--set", "journal.archive="+kept)
	testkit.Must(t, os.MkdirAll(filepath.Join(dir, "index"), 0o700)) // now it shows that there was a journal, and not to which frame
	args := []string{"--data", dir, "--set", "journal.archive=" + kept}
	wantProgram(t, exit.CodeFailed, []string{"durable frames after @", "no node accepts writes on it"}, append([]string{"verify"}, args...)...)
	node := exec.CommandContext(t.Context(), "macronode", append([]string{"serve", "--http", "127.0.0.1:0", "--admin", "127.0.0.1:0"}, args...)...)
	testkit.Must(t, node.Start())
	t.Cleanup(func() { _ = node.Process.Kill() })
	for check := testkit.HangGuard(t); ; time.Sleep(10 * time.Millisecond) { // a node that only reads prints no greeting
		if _, is := program(t, "status", "--data", dir); strings.Contains(is, "journal_failed (damaged)") {
			break
		}
		check()
	}
	wantProgram(t, exit.CodeFailed, nil, "wallet", "issue", "--to", "ann", "--asset", "EUR/2", "--amount", "1", "--timeout", "1s", "--data", dir)
	wantProgram(t, 0, []string{"1000"}, "wallet", "balance", "ann", "EUR/2", "--data", dir)
	testkit.Must(t, node.Process.Signal(syscall.SIGTERM))
	testkit.Must(t, node.Wait())
	testkit.Must(t, os.Rename(live+".away", live))
	wantProgram(t, 0, []string{" is intact: "}, append([]string{"verify"}, args...)...)
	if again, err := os.ReadFile(filepath.Join(kept, "00000001.seg.zst")); err != nil || string(again) != string(text) {
		t.Errorf("the archive has changed: %v", err)
	}
}

// TestUnmountedArchiveGetsNoSegments: a segment is moved only into the archive that has the one before it.
func TestUnmountedArchiveGetsNoSegments(t *testing.T) {
	t.Parallel()
	dir, kept := partlyArchived(t)
	s, err := datadir.OpenSegments(fs.Dir(dir), kept)
	testkit.Must(t, err)
	testkit.Must(t, s.CheckArchive(fs.Dir(dir)))
	other, err := datadir.OpenSegments(fs.Dir(dir), t.TempDir())
	testkit.Must(t, err)
	if err := other.CheckArchive(fs.Dir(dir)); !errors.Is(err, journalfile.ErrNotMounted) || !strings.Contains(err.Error(), "00000001.seg in "+other.Path+": mount its disk") {
		t.Errorf("another directory: %v", err)
	}
	testkit.Must(t, os.Rename(filepath.Join(kept, "00000001.seg.zst"), filepath.Join(kept, "moved")))
	if err := s.CheckArchive(fs.Dir(dir)); !errors.Is(err, journalfile.ErrNotMounted) {
		t.Errorf("without its segment: %v", err)
	}
}

// TestSegmentsOfAnotherJournal: an archive of another journal is not read. With a segment of another journal beside its own, no node
// starts. The tools name it.
func TestSegmentsOfAnotherJournal(t *testing.T) {
	t.Parallel()
	dir, kept := partlyArchived(t)
	_, theirs := partlyArchived(t)
	archived := "journal.archive=" + theirs
	read, err := datadir.OpenFiles(fs.Dir(filepath.Join(dir, datadir.Journal)), theirs)
	testkit.Must(t, err)
	all, err := read.List()
	testkit.Must(t, err)
	if !errors.Is(read.Foreign, journalfile.ErrOther) || slices.Contains(all, "00000001.seg") {
		t.Errorf("%q are read, %v", all, read.Foreign)
	}
	for _, command := range [][]string{{"verify"}, {"backup", t.TempDir()}} {
		wantProgram(t, exit.CodeUnable, []string{"segments of another journal", theirs + " belongs to another node"}, append(command, "--data", dir, "--set", archived)...)
	}
	foreign := filepath.Join(dir, "journal", "00000001.seg")
	text, err := unpacked(theirs)
	testkit.Must(t, err)
	testkit.Must(t, os.WriteFile(foreign, text, 0o600))
	for _, command := range [][]string{{"verify"}, {"backup", t.TempDir()}, {"serve", "--http", "127.0.0.1:0", "--admin", "127.0.0.1:0"}} {
		wantProgram(t, exit.CodeUnable, []string{"segments of another journal: 00000001.seg is of journal "}, append(command, "--data", dir)...)
	}
	testkit.Must(t, os.Remove(foreign))
	wantProgram(t, 0, []string{" is intact: "}, "verify", "--data", dir, "--set", "journal.archive="+kept)
}

// TestFileThatIsNoSegment: a copy of a segment under a name that no segment has is named, with what to do, in the data directory and in the
// archive.
func TestFileThatIsNoSegment(t *testing.T) {
	t.Parallel()
	dir, kept := partlyArchived(t)
	live := filepath.Join(dir, "journal", "00000002.seg")
	for name, original := range map[string]string{filepath.Join(dir, "journal", "00000000.seg"): live, filepath.Join(kept, "1.seg.zst"): filepath.Join(kept, "00000001.seg.zst")} {
		testkit.Must(t, exec.Command("cp", original, name).Run())
		is := strings.TrimSuffix(filepath.Base(name), ".zst") + " is not the name of a segment, the first one is 00000001.seg: move that file out of the directory of the journal, or out of journal.archive if it is there"
		for _, command := range [][]string{{"verify"}, {"backup", t.TempDir()}, {"serve", "--http", "127.0.0.1:0", "--admin", "127.0.0.1:0"}} {
			wantProgram(t, exit.CodeUnable, []string{is}, append(command, "--data", dir, "--set", "journal.archive="+kept)...)
		}
		testkit.Must(t, os.Remove(name))
	}
	wantProgram(t, 0, []string{" is intact: "}, "verify", "--data", dir, "--set", "journal.archive="+kept)
}

// unpacked returns the first segment of an archive.
func unpacked(kept string) ([]byte, error) {
	a, err := archive.New(fs.Dir(kept), fs.Dir(kept))
	if err != nil {
		return nil, err
	}
	f, err := a.Kept().Open("00000001.seg")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	text := make([]byte, size)
	_, err = f.ReadAt(text, 0)
	return text, err
}
