package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"macronode/adapters/adminapi"
	"macronode/cmd/macronode/internal/testkit"
)

// seqsIn returns the positions in the file of the movements, in their order.
func seqsIn(t *testing.T, dir string) (all []uint64) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "wallet-00000001.ndjson"))
	testkit.Must(t, err)
	for line := range strings.Lines(string(text)) {
		var of struct{ Seq uint64 }
		testkit.Must(t, json.Unmarshal([]byte(line), &of))
		all = append(all, of.Seq)
	}
	return all
}

// TestFilesThatAreNotMounted: without its files, a file sink that has delivered is failing, and writes nothing. It goes on when they are
// back, or where an operator has created an empty file.
func TestFilesThatAreNotMounted(t *testing.T) {
	t.Parallel()
	for _, begin := range []string{"start", "now"} {
		dir, out := t.TempDir(), filepath.Join(t.TempDir(), "out")
		sinks := fmt.Sprintf(`exports.sinks=[{"name":"files","kind":"file","dir":%q,"from":%q,"streams":["wallet"]}]`, out, begin)
		issue := func(p process, n int) {
			for range n {
				wantProgram(t, 0, nil, "wallet", "issue", "--to", "ann", "--asset", "EUR/2", "--amount", "1", "--data", p.dir)
			}
		}
		becomes := func(p process, parts ...string) {
			testkit.Until(func() bool {
				_, is := program(t, "exports", "status", "--json", "--data", p.dir)
				if _, err := os.Stat(out + ".disk"); err == nil && strings.Contains(is, `"cursor":5`) {
					t.Fatal("it goes on without its files")
				}
				return !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(is, part) })
			})
		}
		p := startInDir(t, dir, "--set", sinks)
		becomes(p, `"state":"ok"`)
		issue(p, 3)
		becomes(p, `"state":"ok"`, `"cursor":3`)
		p.end()
		testkit.Must(t, os.Rename(out, out+".disk"))
		testkit.Must(t, os.Mkdir(out, 0o700))

		p = startInDir(t, dir, "--set", sinks)
		issue(p, 2)
		becomes(p, out+" has no file of the stream wallet, although items before 4 were delivered", `"cursor":3`)
		if made, err := filepath.Glob(filepath.Join(out, "*.ndjson")); err != nil || len(made) > 0 {
			t.Fatalf("%q, %v", made, err)
		}
		for check := testkit.HangGuard(t); os.Rename(out+".disk", out) != nil; check() {
			_ = os.RemoveAll(out) // the sink may look into it
		}
		becomes(p, `"state":"ok"`, `"cursor":5`)
		if got := seqsIn(t, out); !slices.Equal(got, []uint64{1, 2, 3, 4, 5}) {
			t.Errorf("from %s: the file has %v", begin, got)
		}
		p.end()

		testkit.Must(t, os.Remove(filepath.Join(out, "wallet-00000001.ndjson")))
		testkit.Must(t, os.WriteFile(filepath.Join(out, "wallet-00000001.ndjson"), nil, 0o600))
		p = startInDir(t, dir, "--set", sinks)
		issue(p, 1)
		becomes(p, `"state":"ok"`, `"cursor":6`)
		if got := seqsIn(t, out); !slices.Equal(got, []uint64{6}) {
			t.Errorf("from %s: the file has %v", begin, got)
		}
		p.end()
	}
}

// TestFilesThatVanish: a file sink whose directory vanishes while the node runs is failing, and writes nothing. It makes no other
// directory, and goes on when the files are back. If they lack lines after a restart, it is failing, and the command of the reason mends it.
func TestFilesThatVanish(t *testing.T) {
	t.Parallel()
	dir, out := t.TempDir(), filepath.Join(t.TempDir(), "out")
	start := func() *exportsNode {
		return &exportsNode{t: t, process: startInDir(t, dir, "--set", fmt.Sprintf(`exports.sinks=[{"name":"app","kind":"file","dir":%q,"streams":["wallet"]}]`, out))}
	}
	n := start()
	issue := func() { n.run("wallet issue --to ann --asset EUR/2 --amount 1", 0) }
	issue()
	n.await("delivered", func(s adminapi.Sink) bool { return s.State == "ok" && len(s.Lanes) == 1 && s.Lanes[0].Cursor == 1 })
	testkit.Must(t, os.Rename(out, out+".disk"))
	issue()
	issue()
	n.await("failing", func(s adminapi.Sink) bool {
		if s.Lanes[0].Cursor > 1 {
			t.Fatal("it goes on without its files")
		}
		return s.State == "failing" && s.LagSeconds > 0
	})
	if want := filepath.Join(out, "wallet-00000001.ndjson") + " is missing: mount its disk, bring it back, or create an empty"; !strings.HasPrefix(n.sink().Reason, want) {
		t.Fatalf("%q, want %q", n.sink().Reason, want)
	}
	if _, err := os.Stat(out); !os.IsNotExist(err) {
		t.Fatalf("the directory is made again: %v", err)
	}
	testkit.Must(t, os.Rename(out+".disk", out))
	n.await("delivered again", func(s adminapi.Sink) bool { return s.State == "ok" && s.Lanes[0].Cursor == 3 })
	if got := seqsIn(t, out); !slices.Equal(got, []uint64{1, 2, 3}) {
		t.Errorf("the file has %v", got)
	}
	n.end()

	name := filepath.Join(out, "wallet-00000001.ndjson")
	text, err := os.ReadFile(name)
	testkit.Must(t, err)
	first, _, _ := strings.Cut(string(text), "\n")
	testkit.Must(t, os.WriteFile(name, []byte(first+"\n"), 0o600))
	n = start()
	issue()
	n.await("failing after the restart", func(s adminapi.Sink) bool { return s.State == "failing" })
	if want := out + " lacks items 2 to 3 of wallet: bring them back, run macronode exports backfill app wallet 2, or create an empty"; !strings.HasPrefix(n.sink().Reason, want) {
		t.Fatalf("%q, want %q", n.sink().Reason, want)
	}
	n.run("exports backfill app wallet 2", 0)
	n.await("delivered once more", func(s adminapi.Sink) bool { return s.State == "ok" && s.Lanes[0].Cursor == 4 })
	if got := seqsIn(t, out); !slices.Equal(got, []uint64{1, 2, 3, 4}) {
		t.Errorf("the file has %v", got)
	}
	n.end()
}
