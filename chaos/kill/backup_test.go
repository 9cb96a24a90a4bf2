package kill_test

import (
	"context"
	"encoding/json"
	"net/http"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"macronode/chaos/kill"
)

// TestBackupDrill: a node is backed up twice under load and then killed. The restored node has every receipt up to
// the cut, byte for byte, and none after it. A retry of a lost request is decided again.
func TestBackupDrill(t *testing.T) {
	binary, err := build()
	if err != nil {
		t.Fatal(err)
	}
	n, copied := &kill.Node{Binary: binary, Data: t.TempDir()}, t.TempDir()
	start(t, n)
	all := clients(8)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- kill.Together(ctx, n, all) }()
	var cut struct {
		LSN    uint64 `json:"lsn"`
		From   uint64 `json:"from_lsn"`
		Frames uint64 `json:"frames"`
	}
	for last := uint64(0); cut.From == 0; last = cut.LSN { // the second one adds to the first
		awaitFolded(t, n, last+100)
		run(t, &cut, binary, "--json", "backup", copied, "--data", n.Data)
		if cut.LSN < last+100 || cut.From != last || cut.Frames != cut.LSN-last {
			t.Fatalf("%+v after %d", cut, last)
		}
	}
	awaitFolded(t, n, cut.LSN+100) // so there is something that is lost
	n.Kill()
	stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}

	var report struct {
		LSN  uint64 `json:"lsn"`
		Lost struct{ Frames, Movements uint64 }
		Done bool
	}
	restored := t.TempDir()
	run(t, &report, binary, "--json", "restore", copied, "--preview", "--source-data", n.Data, "--data", restored)
	if report.LSN != cut.LSN || report.Lost.Frames == 0 || report.Lost.Movements == 0 || report.Done {
		t.Fatalf("the preview: %+v, the cut %+v", report, cut)
	}
	run(t, &report, binary, "--json", "restore", copied, "--source-data", n.Data, "--data", restored)
	if !report.Done {
		t.Fatalf("%+v", report)
	}

	was := n.Key
	n = &kill.Node{Binary: binary, Data: restored}
	start(t, n)
	if n.Key == was {
		t.Error("the old API key is somebody's")
	}
	kept, lost := certify(t, n, all, cut.LSN)
	if output, code := n.Stop(); code != 0 {
		t.Fatalf("exit %d:\n%s", code, output)
	}
	if kept < 100 || lost == 0 {
		t.Fatalf("%d answers to the cut, %d behind it", kept, lost)
	}
	out, err := exec.Command(binary, "verify", "--data", restored).CombinedOutput()
	if err != nil {
		t.Fatalf("verify: %v\n%s", err, out)
	}
	t.Logf("cut @%d: %d answers held, %d lost, as was foretold; %s", cut.LSN, kept, lost, strings.TrimSpace(string(out)))
}

// run runs a command that prints JSON.
func run(t *testing.T, into any, binary string, args ...string) {
	t.Helper()
	cmd := exec.Command(binary, args...)
	var wrong strings.Builder
	cmd.Stderr = &wrong
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s%s", args, err, out, &wrong)
	}
	if err := json.Unmarshal(out, into); err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
}

func place(t *testing.T, txid string) uint64 {
	t.Helper()
	lsn, err := strconv.ParseUint(txid[3+16:3+28], 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	return lsn
}

// certify compares every receipt with what the restored node returns.
func certify(t *testing.T, n *kill.Node, all []*kill.Client, cut uint64) (kept, lost int) {
	t.Helper()
	for _, c := range all {
		for _, a := range c.Known {
			if a.TxID == "" {
				continue
			}
			status, now, err := n.Get(t.Context(), "/v1/tx/"+a.TxID)
			switch behind := place(t, a.TxID) > cut; {
			case err != nil:
				t.Fatal(err)
			case !behind && (status != a.Status || string(now) != string(a.Bytes)):
				t.Fatalf("%s was told\n%s\nnow %d\n%s", a.Key, a.Bytes, status, now)
			case behind && status != http.StatusNotFound:
				t.Fatalf("%s is behind the cut @%d, and is told %d\n%s", a.TxID, cut, status, now)
			case behind:
				lost++
			default:
				kept++
			}
		}
	}
	return kept, lost
}
