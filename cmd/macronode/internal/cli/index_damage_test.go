package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"macronode/cmd/macronode/internal/testkit"
)

// TestDamagedTablesOfIndex: whatever byte of the tables of the index is wrong, verify and backup read the journal, and a node starts and
// makes the index anew.
func TestDamagedTablesOfIndex(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for range 2 {
		p := startInDir(t, dir)
		wantProgram(t, 0, nil, "wallet", "issue", "--to", "ann", "--asset", "EUR/2", "--amount", "5", "--data", dir)
		p.end()
	}
	all, err := filepath.Glob(filepath.Join(dir, "index", "tables", "*.sst"))
	testkit.Must(t, err)
	if len(all) == 0 {
		t.Fatal("the index has no tables")
	}
	for _, table := range all {
		text, err := os.ReadFile(table)
		testkit.Must(t, err)
		for _, at := range []int{10, len(text) / 2, len(text) - 60} {
			bad := append([]byte(nil), text...)
			bad[at] ^= 0xff
			testkit.Must(t, os.WriteFile(table, bad, 0o600))
			wantProgram(t, 0, []string{" is intact: "}, "verify", "--data", dir)
			wantProgram(t, 0, nil, "backup", filepath.Join(t.TempDir(), "copy"), "--data", dir)
		}
		testkit.Must(t, os.WriteFile(table, text, 0o600))
	}
	for _, table := range all {
		text, err := os.ReadFile(table)
		testkit.Must(t, err)
		text[len(text)-1] ^= 1 // without its end, a table is none
		testkit.Must(t, os.WriteFile(table, text, 0o600))
	}
	p := startInDir(t, dir)
	for check := testkit.HangGuard(t); ; check() { // until the index is there again
		if code, output := program(t, "wallet", "accounts", "--data", dir); code == 0 && strings.Contains(output, "ann") {
			break
		}
	}
	p.end()
}
