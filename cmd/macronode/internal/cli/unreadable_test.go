package cli

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"macronode/adapters/nodedir"
	"macronode/cmd/macronode/internal/testkit"
)

// TestUnreadableRecordIsReported: a frame before the last snapshot is damaged on the disk. The node starts
// from the snapshot and takes writes; the receipt has a code of its own, and the node is degraded.
func TestUnreadableRecordIsReported(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	settings := []string{"--set", "journal.snapshot_interval_bytes=1MiB"}
	p := startInDir(t, dir, settings...)
	key, err := nodedir.ReadKey(dir)
	if err != nil {
		t.Fatal(err)
	}
	issue := func(to string) (receipt string) {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), "macronode", "wallet", "issue", "--to", to, "--asset", "EUR/2", "--amount", "1", "--data", dir, "--json").Output()
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	first := issue("damaged-account")
	var lines []byte
	for n := range 4000 {
		lines = fmt.Appendf(lines, `{"op":"issue","to":"ann","asset":"EUR/2","amount_minor":"1","ref":"r-%d","memo":%q}`+"\n", n, strings.Repeat("m", 200))
	}
	batch := filepath.Join(t.TempDir(), "batch.ndjson")
	if err := os.WriteFile(batch, lines, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "macronode", "wallet", "batch", batch, "--key", "b", "--data", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for check := testkit.HangGuard(t); ; time.Sleep(time.Millisecond) {
		if found, _ := filepath.Glob(filepath.Join(dir, "snapshots", "*.snap")); len(found) > 0 {
			break
		}
		check()
	}
	p.end()
	damageText(t, filepath.Join(dir, "journal"), "damaged-account")

	p = startInDir(t, dir, settings...)
	issue("after")
	_, txid, _ := strings.Cut(first, `"txid":"`)
	txid, _, _ = strings.Cut(txid, `"`)
	resp := p.callJSON(t, http.MethodGet, p.HTTP+"/v1/tx/"+txid, key.Text(), "")
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusInternalServerError || !strings.Contains(string(text), `"code":"record_unreadable"`) {
		t.Errorf("%d, %v\n%s", resp.StatusCode, err, text)
	}
	for check := testkit.HangGuard(t); !strings.Contains(p.adminText(t, "/readyz?verbose"), `journal_damaged`); time.Sleep(time.Millisecond) {
		check()
	}
	if log := p.log.String(); !strings.Contains(log, "frame not readable") {
		t.Errorf("the log does not report the frame:\n%s", log)
	}
	issue("later")
	p.end()

	p = startInDir(t, dir, settings...)
	segment := filepath.Join(dir, "journal", "00000001.seg")
	testkit.Must(t, os.Rename(segment, segment+".away")) // as if the disk of the archive were not mounted any more
	resp = p.callJSON(t, http.MethodGet, p.HTTP+"/v1/tx/"+txid, key.Text(), "")
	defer resp.Body.Close()
	if text, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != http.StatusInternalServerError || !strings.Contains(string(text), `"code":"record_unreadable"`) {
		t.Errorf("without the segment: %d, %v\n%s", resp.StatusCode, err, text)
	}
	if out, err := exec.CommandContext(t.Context(), "macronode", "wallet", "batch", batch, "--key", "b", "--data", dir).CombinedOutput(); err == nil || !strings.Contains(string(out), "record_unreadable") {
		t.Errorf("without the segment, a retry of the batch: %v\n%s", err, out)
	}
}

// damageText changes the first occurrence of a text in the segments of a journal.
func damageText(t *testing.T, dir, text string) {
	t.Helper()
	segments, err := filepath.Glob(filepath.Join(dir, "*.seg"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range segments {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		at := bytes.Index(b, []byte(text))
		if at < 0 {
			continue
		}
		b[at] ^= 1
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Fatalf("no segment has %s", text)
}
