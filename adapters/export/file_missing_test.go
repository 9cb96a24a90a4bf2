package export

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestVanishedFilesAreNotReplaced: while a sink runs, its directory or its file vanishes, as when a file system is unmounted. The sink
// fails with the reason and writes nothing, also of a stream that begins. It goes on when all lines are back, or in a file with a higher
// number that an operator has made.
func TestVanishedFilesAreNotReplaced(t *testing.T) {
	base := t.TempDir()
	f := &fileTarget{t: t, dir: filepath.Join(base, "out")}
	away, name := filepath.Join(base, "away"), filepath.Join(f.dir, "usage-00000001.ndjson")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	sink := f.sink()
	refused := func(reason string, wantFiles ...string) {
		t.Helper()
		for _, i := range []*Item{item(3), {Stream: Wallet, Tenant: "default", Seq: 1, Body: []byte(`{"move":1}`)}} {
			if got := sink.Deliver(t.Context(), i); got.Outcome != Retryable || !strings.Contains(got.Reason, reason) {
				t.Fatalf("%s: %+v, want %q", i.Stream, got, reason)
			}
		}
		all, err := os.ReadDir(f.dir)
		var files []string
		for _, e := range all {
			files = append(files, e.Name())
		}
		if !slices.Equal(files, wantFiles) {
			t.Fatalf("%q: the directory has %q, %v", reason, files, err)
		}
	}
	deliver(t, sink, item(1))
	deliver(t, sink, item(2))
	whole, err := os.ReadFile(name)
	must(err)

	must(os.Rename(f.dir, away))
	refused("usage-00000001.ndjson is missing: mount its disk, bring it back, or create an empty usage-00000002.ndjson")
	if _, err := os.Stat(f.dir); !os.IsNotExist(err) {
		t.Fatalf("the directory is made again: %v", err)
	}
	must(os.Mkdir(f.dir, 0o700)) // what a file system was mounted over
	refused("usage-00000001.ndjson is missing: mount its disk, bring it back, or create an empty usage-00000002.ndjson")
	must(os.WriteFile(name, whole[:len(whole)-1], 0o600))
	refused("usage-00000001.ndjson has lost lines: mount its disk, bring it back, or create an empty usage-00000002.ndjson", filepath.Base(name))
	must(os.WriteFile(name, nil, 0o600))
	refused("usage-00000001.ndjson has lost lines: mount its disk, bring it back, or create an empty usage-00000002.ndjson", filepath.Base(name))
	must(os.RemoveAll(f.dir))
	must(os.Rename(away, f.dir))
	deliver(t, sink, item(3))

	whole, err = os.ReadFile(name) // the lines are back in another file
	must(err)
	must(os.RemoveAll(f.dir))
	must(os.Mkdir(f.dir, 0o700))
	must(os.WriteFile(name, whole, 0o600))
	deliver(t, sink, item(4))
	if got := f.seqs(); !slices.Equal(got, []uint64{1, 2, 3, 4}) {
		t.Fatalf("the files have %v", got)
	}

	must(os.RemoveAll(f.dir))
	if got := sink.Deliver(t.Context(), item(5)); got.Outcome != Retryable {
		t.Fatalf("%+v", got)
	}
	must(os.Mkdir(f.dir, 0o700))
	must(os.WriteFile(filepath.Join(f.dir, "usage-00000003.ndjson"), nil, 0o600))
	deliver(t, sink, item(5))
	if got := f.seqs(); !slices.Equal(got, []uint64{5}) {
		t.Fatalf("the files have %v", got)
	}
	must(sink.Close())
}

// TestDirectoryIsNotMadeAgain: a directory that vanishes before the first item is not made again.
func TestDirectoryIsNotMadeAgain(t *testing.T) {
	f := &fileTarget{t: t, dir: filepath.Join(t.TempDir(), "out")}
	sink := f.sink()
	if err := Claim(sink); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(f.dir); err != nil {
		t.Fatal(err)
	}
	if got := sink.Deliver(t.Context(), item(1)); got.Outcome != Retryable || !strings.Contains(got.Reason, "was removed: mount its disk") {
		t.Fatalf("%+v", got)
	}
	if err := os.Mkdir(f.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	deliver(t, sink, item(1))
	if err := sink.Close(); err != nil {
		t.Fatal(err)
	}
}
