package export

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestTornLineIsCut checks that a line without an end, as after a crash, is written again.
func TestTornLineIsCut(t *testing.T) {
	f := &fileTarget{t: t, dir: t.TempDir()}
	path := filepath.Join(f.dir, "usage-00000001.ndjson")
	if err := os.WriteFile(path, []byte("{\"seq\":1}\n{\"seq\":2"), 0o600); err != nil {
		t.Fatal(err)
	}
	sink := f.sink()
	deliver(t, sink, item(2))
	if err := sink.Close(); err != nil {
		t.Fatal(err)
	}
	if got := f.seqs(); !slices.Equal(got, []uint64{1, 2}) {
		t.Fatal(got)
	}
}

// TestFilesAreRotated checks that a full file is complete, and that a removed one is not written to.
func TestFilesAreRotated(t *testing.T) {
	f := &fileTarget{t: t, dir: t.TempDir()}
	sink := f.sink()
	for seq := uint64(1); seq <= 7; seq++ {
		deliver(t, sink, item(seq))
	}
	names, err := filepath.Glob(filepath.Join(f.dir, "*"))
	if err != nil || len(names) != 3 {
		t.Fatal(names, err)
	}
	if err := os.Remove(names[2]); err != nil { // has seq 7
		t.Fatal(err)
	}
	deliver(t, sink, item(8))
	if err := sink.Close(); err != nil {
		t.Fatal(err)
	}
	if got := f.seqs(); !slices.Equal(got, []uint64{1, 2, 3, 4, 5, 6, 8}) {
		t.Fatal(got)
	}
	if _, err := os.Stat(filepath.Join(f.dir, "usage-00000004.ndjson")); err != nil {
		t.Fatal("the number of the removed file is used again:", err)
	}
}

// TestStreamsHaveTheirOwnFiles checks that all lines of a file are alike.
func TestStreamsHaveTheirOwnFiles(t *testing.T) {
	f := &fileTarget{t: t, dir: t.TempDir()}
	sink := f.sink()
	deliver(t, sink, item(1))
	deliver(t, sink, &Item{Stream: Wallet, Tenant: "default", Seq: 1, Body: []byte(`{"move":1}`)})
	if err := sink.Close(); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(f.dir, "wallet-00000001.ndjson")); err != nil || string(text) != "{\"move\":1}\n" {
		t.Fatalf("%q: %v", text, err)
	}
	if got := f.seqs(); !slices.Equal(got, []uint64{1}) {
		t.Fatal(got)
	}
}

// TestUnusableDirectory checks that a path that is no directory, or a file that is none, is an error for each attempt.
func TestUnusableDirectory(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "usage-00000001.ndjson")
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, at := range []string{dir, filepath.Join(path, "below"), "/dev/null"} {
		sink := newFile(at, 100, disk{})
		got := sink.Deliver(t.Context(), item(1))
		if want := at == filepath.Join(path, "below"); (got.Outcome == OK) != want {
			t.Errorf("%s: %+v", at, got)
		}
		_ = sink.Close()
	}
}
