package offline

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"macronode/adapters/durable"
	"macronode/adapters/fs"
	"macronode/adapters/journalfile"
	"macronode/cmd/macronode/internal/exit"
	"macronode/cmd/macronode/internal/testkit"
	"macronode/cmd/macronode/internal/testkit/journaldir"
	"macronode/core/types"
)

const startBytes, headerBytes = 80, 44 // of a segment's start, of the header of a frame group

// TestDamagedHeaderLosesNoFrame: verify, backup and restore agree that a damaged header of a frame group loses no
// frame, at the beginning of a segment and at the end of the journal.
func TestDamagedHeaderLosesNoFrame(t *testing.T) {
	for name, at := range map[string]func(all []string) (string, int){
		"first group of a segment": func(all []string) (string, int) { return all[1], startBytes + 10 },
		"last group":               func(all []string) (string, int) { return all[len(all)-1], -1 },
	} {
		t.Run(name, func(t *testing.T) {
			l := journaldir.Payments(t, 40)
			found, err := journalfile.Scan(fs.Dir(l.Journal()), nil, nil)
			testkit.Must(t, err)
			testkit.Must(t, durable.Mark{Journal: found.Journal, LSN: 40, Root: found.Root, At: 40}.Write(fs.Dir(l.Config.Data), durable.Name))
			all, err := fs.Dir(l.Journal()).List()
			testkit.Must(t, err)
			segment, off := at(all)
			if off < 0 {
				off = lastHeader(t, l, segment) + 10
			}
			journaldir.FlipBit(t, l.Journal(), segment, off)

			report, text, code := runVerify(t, l, true)
			if code != exit.CodeFailed || report.Frames != 40 || report.Known != 40 || report.Lost != 0 || len(report.Damage) != 0 || len(report.Repaired) != 1 || report.Start != nil {
				t.Fatalf("%d, %+v", code, report)
			}
			wantText(t, text, "has all 40 frames; 1 places are damaged that cost no frame", segment, "no frame is affected", "the node runs normally")
			agreesOnAllFrames(t, l)
		})
	}
}

// lastHeader returns the offset of the last header of a frame group in a segment.
func lastHeader(t *testing.T, l journaldir.Directory, segment string) (off int) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(l.Journal(), segment))
	testkit.Must(t, err)
	for at := startBytes; at+headerBytes < len(text); at++ {
		if string(text[at:at+4]) == "MNB1" {
			off = at
		}
	}
	return off
}

// TestValidateAgreesWithVerify: restore --validate reports what verify reports, with the same exit code: also a damaged header, of which no
// frame is lost, and a damaged snapshot. A restore loses nothing, and is done.
func TestValidateAgreesWithVerify(t *testing.T) {
	for what, harm := range map[string]func(l journaldir.Directory){
		"nothing": func(journaldir.Directory) {},
		"header":  func(l journaldir.Directory) { journaldir.FlipBit(t, l.Journal(), "00000002.seg", startBytes+10) },
		"snapshot": func(l journaldir.Directory) {
			journaldir.FlipBit(t, l.Snapshots(), "0000000000000010.snap", 100)
		},
	} {
		l := journaldir.Payments(t, 40, 10, 30)
		harm(l)
		_, text, code := runVerify(t, l, false)
		run := func(args ...string) (string, int) {
			c := exec.Command("macronode", append([]string{"restore", l.Config.Data, "--data", t.TempDir()}, args...)...)
			out, err := c.Output()
			if exited := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exited) {
				t.Fatal(err)
			}
			return string(out), c.ProcessState.ExitCode()
		}
		out, validated := run("--validate")
		if want := map[bool]string{true: "the backup is intact", false: "the backup is damaged"}[what == "nothing"]; validated != code || (code == exit.CodeDone) != (what == "nothing") || !strings.HasPrefix(out, want) {
			t.Errorf("%s: exit code %d, %s\nof verify %d, %s", what, validated, out, code, text)
		}
		for line := range strings.Lines(out) {
			if (strings.Contains(line, ".seg, byte ") || strings.HasPrefix(line, "snapshot ")) && !strings.Contains(text, line) {
				t.Errorf("%s: %s is not reported by verify: %s", what, line, text)
			}
		}
		if out, code := run(); code != exit.CodeDone {
			t.Errorf("%s: the restore ends with %d: %s", what, code, out)
		}
	}
}

// agreesOnAllFrames checks that a backup and a restore have all 40 frames.
func agreesOnAllFrames(t *testing.T, l journaldir.Directory) {
	t.Helper()
	is, err := Env{}.Backup(t.Context(), l.Config, BackupOptions{To: t.TempDir()})
	if err != nil || is.LSN != 40 {
		t.Fatalf("backup: %+v, %v", is, err)
	}
	into := *l.Config
	into.Data = t.TempDir()
	o := RestoreOptions{From: l.Config.Data, AcceptLoss: true}
	r, err := Env{}.PlanRestore(t.Context(), &into, o)
	if err != nil || !r.Checked.IsComplete() || r.LSN != 40 {
		t.Fatalf("plan: %+v, %v", r, err)
	}
	testkit.Must(t, Env{}.Restore(t.Context(), &into, o, r))
	found, err := journalfile.Scan(fs.Dir(into.Data+"/journal"), nil, nil)
	if err != nil || found.Last != types.LSN(41) || found.Repaired != 0 {
		t.Fatalf("restored: %+v, %v", found, err)
	}
}
