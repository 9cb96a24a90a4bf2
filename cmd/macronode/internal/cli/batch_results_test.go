package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	fiveResult = `{"line":1,"key":"k.0","receipt":` + rcpt + "}\n"
	sixResult  = `{"line":2,"key":"k.0","problem":{"code":"ref_used","detail":"Used.","status":409}}` + "\n"
)

// runBatch runs a file of two lines against a node that applies one, and returns the exit code.
func runBatch(t *testing.T, d *testConsole, isReplayed bool, args ...string) (code int, requests int) {
	t.Helper()
	p := newPeer(t, half)
	if isReplayed {
		p.header.Set("Idempotency-Replayed", "true")
	}
	code = Run(append([]string{"wallet", "batch", "--key", "k", "--url", p.URL, "--api-key", "s"}, args...), d.Console)
	return code, len(p.requests())
}

func wantFile(t *testing.T, path, want string) {
	t.Helper()
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("%v\n%swant\n%s", err, got, want)
	}
}

// The results file has the outcome of each line. A run that continues adds what it lacks, and changes nothing in it: neither if the node
// returns less than it has, nor if the node has removed the keys.
func TestResultsFile(t *testing.T) {
	t.Parallel()
	file, path := writeTemp(t, "f", five+six), filepath.Join(t.TempDir(), "results")
	run := func(isReplayed bool) {
		t.Helper()
		if code, n := runBatch(t, newTestConsole(), isReplayed, file, "--results", path); code != 1 || n != 1 {
			t.Errorf("%d, asked %d times", code, n)
		}
	}
	run(false)
	wantFile(t, path, fiveResult+sixResult)
	run(true)
	wantFile(t, path, fiveResult+sixResult)
	if err := os.WriteFile(path, []byte(fiveResult+sixResult[:9]), 0o600); err != nil {
		t.Fatal(err)
	}
	run(true)
	wantFile(t, path, fiveResult+sixResult)
	if err := os.WriteFile(path, []byte(fiveResult+sixResult[:9]), 0o600); err != nil {
		t.Fatal(err)
	}
	run(false)
	wantFile(t, path, fiveResult+sixResult)
	const receipts = fiveResult + `{"line":2,"key":"k.0","receipt":` + rcpt + "}\n" + `{"line":3,"key":"k.1","receipt":` + rcpt + "}\n"
	if err := os.WriteFile(path, []byte(receipts), 0o600); err != nil {
		t.Fatal(err)
	}
	run(true)
	run(false)
	wantFile(t, path, receipts)
}

// A results file that is the file of the operations, or has something else in it, is refused and stays as it is.
func TestResultsFileIsNotOverwritten(t *testing.T) {
	t.Parallel()
	file := writeTemp(t, "f", five+six)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Link(file, link); err != nil {
		t.Fatal(err)
	}
	symlink := filepath.Join(t.TempDir(), "symlink")
	if err := os.Symlink(file, symlink); err != nil {
		t.Fatal(err)
	}
	in, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	const same, other = "is the file with the operations", "exists, and has something else than results of the prefix k: name a new file"
	otherKey := strings.ReplaceAll(fiveResult, "k.0", "k.0.0")
	for _, c := range []struct{ source, path, want string }{
		{file, file, same}, {file, link, same}, {file, symlink, same}, {"-", file, same},
		{file, writeTemp(t, "r", "an older one"), other}, {file, writeTemp(t, "r", otherKey), other}, {file, writeTemp(t, "r", rcpt+"\n"), other},
	} {
		before, err := os.ReadFile(c.path)
		if err != nil {
			t.Fatal(err)
		}
		d := newTestConsole()
		d.in = in
		code, n := runBatch(t, d, false, c.source, "--results", c.path)
		if want := "macronode: --results " + c.path + " " + c.want + "; nothing was sent\n"; code != 2 || n != 0 || d.err.String() != want {
			t.Errorf("%s: %d, asked %d times\n%swant\n%s", c.path, code, n, &d.err, want)
		}
		wantFile(t, c.path, string(before))
	}
}
