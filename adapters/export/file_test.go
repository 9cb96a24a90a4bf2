package export

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestTornLineIsCut checks that a line without an end, as after a crash, is written again. It can be longer than the line that takes its place.
func TestTornLineIsCut(t *testing.T) {
	f := &fileTarget{t: t, dir: t.TempDir()}
	path := filepath.Join(f.dir, "usage-00000001.ndjson")
	if err := os.WriteFile(path, []byte("{\"seq\":1}\n{\"seq\":2,\"rows\":[\""+strings.Repeat("x", 200)), 0o600); err != nil {
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

// TestFilesAreRotated checks that a full file is complete, that a removed one is not written again, and that a file with a higher number is
// the next one.
func TestFilesAreRotated(t *testing.T) {
	f := &fileTarget{t: t, dir: t.TempDir()}
	sink := f.sink()
	for seq := uint64(1); seq <= 7; seq++ {
		deliver(t, sink, item(seq))
	}
	names, err := filepath.Glob(filepath.Join(f.dir, "*"+fileEnd))
	if err != nil || len(names) != 3 {
		t.Fatal(names, err)
	}
	if err := os.Remove(names[2]); err != nil { // has seq 7
		t.Fatal(err)
	}
	if got := sink.Deliver(t.Context(), item(8)); got.Outcome != Retryable {
		t.Fatalf("the file is missing: %+v", got)
	}
	if err := os.WriteFile(filepath.Join(f.dir, "usage-00000004.ndjson"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	deliver(t, sink, item(8))
	if err := sink.Close(); err != nil {
		t.Fatal(err)
	}
	if got := f.seqs(); !slices.Equal(got, []uint64{1, 2, 3, 4, 5, 6, 8}) {
		t.Fatal(got)
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
		sink := newFile(&Config{Dir: at}, 100, disk{})
		got := sink.Deliver(t.Context(), item(1))
		if want := at == filepath.Join(path, "below"); (got.Outcome == OK) != want {
			t.Errorf("%s: %+v", at, got)
		}
		_ = sink.Close()
	}
}

// TestDirectoryHasOneSink: a directory that something else uses is refused under each of its names, and is free when that ends.
func TestDirectoryHasOneSink(t *testing.T) {
	at := func(names ...string) string { return filepath.Join(names...) }
	base := t.TempDir()
	for _, dir := range []string{"out", "index", "data"} {
		if err := os.MkdirAll(at(base, dir, "below"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(at(base, dir), at(base, "link-"+dir)); err != nil {
			t.Fatal(err)
		}
	}
	reserved := []Reserved{{Path: at(base, "link-index"), What: "the index"}, {Path: at(base, "data"), What: "the data", Only: true}, {Path: at(base, "missing"), What: "nothing"}}
	first := newFile(&Config{Name: "first", Dir: at(base, "out"), Reserved: reserved}, 100, disk{})
	if err := Claim(first); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]string{
		at(base, "out"):                 "sink first",
		at(base, "link-out"):            "sink first",
		at(base, "index"):               "the index",
		at(base, "link-index"):          "the index",
		at(base, "link-index", "below"): "the index",
		at(base, "link-index", "new"):   "the index",
		at(base, "link-data"):           "the data",
		at(base, "link-data", "below"):  "",
		at(base, "out", "below"):        "",
	} {
		other := newFile(&Config{Name: "other", Dir: dir, Reserved: reserved}, 100, disk{})
		err := Claim(other)
		got := other.Deliver(t.Context(), item(1))
		if (want == "") != (err == nil) || (want == "") != (got.Outcome == OK) || want != "" && (!errors.Is(err, ErrDirectory) || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, %+v", dir, err, got)
		}
		if err := other.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if got := deliverOnce(t, Config{Kind: KindFile, Dir: at(base, "link-out"), Reserved: reserved}, item(1)); got.Outcome != OK {
		t.Errorf("the directory is free: %+v", got)
	}
}

// TestReplacedDirectoryIsLockedAnew: a sink whose directory was moved away locks the one in its place, when it goes on there.
func TestReplacedDirectoryIsLockedAnew(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	sink := newFile(&Config{Name: "first", Dir: dir}, 100, disk{})
	defer sink.Close()
	deliver(t, sink, item(1))
	if err := os.Rename(dir, dir+".old"); err != nil {
		t.Fatal(err)
	}
	if got := sink.Deliver(t.Context(), item(2)); got.Outcome != Retryable {
		t.Fatalf("the directory is missing: %+v", got)
	}
	if err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(filepath.Join(dir, "usage-00000002.ndjson"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	deliver(t, sink, item(2))
	other := newFile(&Config{Name: "other", Dir: dir}, 100, disk{})
	if err := Claim(other); !errors.Is(err, ErrDirectory) {
		t.Errorf("the new directory is not locked: %v", err)
	}
	if got := deliverOnce(t, Config{Kind: KindFile, Dir: dir + ".old"}, item(2)); got.Outcome != OK {
		t.Errorf("the old directory is free: %+v", got)
	}
}

// TestDirectoryWithoutLocks: a sink uses a file system that cannot lock a directory, without a lock.
func TestDirectoryWithoutLocks(t *testing.T) {
	f := &fileTarget{t: t, dir: t.TempDir(), fault: "cannot lock"}
	sink := f.sink()
	deliver(t, sink, item(1))
	if err := sink.Close(); err != nil || !slices.Equal(f.seqs(), []uint64{1}) {
		t.Fatal(err, f.seqs())
	}
}
