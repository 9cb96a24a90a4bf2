package cli

import (
	"os"
	"path/filepath"
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
		text[10] ^= 0xff
		testkit.Must(t, os.WriteFile(table, text, 0o600))
	}
	p := startInDir(t, dir)
	wantProgram(t, 0, []string{"10"}, "wallet", "balance", "ann", "EUR/2", "--data", dir)
	p.end()
}
