package export

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestFilesBehindLaneAreRefused: files that lack items of a lane that were delivered, such as an older copy of a disk, are refused after a
// restart, with what an operator can do. Other lanes go on. So does the lane when the items are there again, in the file or delivered
// once more, and when an operator begins a new file.
func TestFilesBehindLaneAreRefused(t *testing.T) {
	follows := func(seq uint64, has bool) *Item {
		i := item(seq)
		i.HasPrior = func() (bool, error) { return has, nil }
		return i
	}
	other := func(seq uint64) *Item {
		i := follows(seq, seq > 1)
		i.Tenant, i.Body = "other", bytes.Replace(i.Body, []byte("default"), []byte("other"), 1)
		return i
	}
	for name, c := range map[string]struct {
		mend func(dir string, cut []byte, send func(*Item))
		want []uint64 // of both lanes
	}{
		"the items are delivered again": {func(_ string, _ []byte, send func(*Item)) { send(follows(3, true)); send(follows(4, true)) }, []uint64{1, 1, 2, 2, 3, 4, 5, 3}},
		"the items are in the file again": {func(dir string, cut []byte, _ func(*Item)) {
			path := filepath.Join(dir, "usage-00000001.ndjson")
			text, err := os.ReadFile(path)
			if err != nil || os.WriteFile(path, append(text, cut...), 0o600) != nil {
				t.Fatal(err)
			}
		}, []uint64{1, 1, 2, 2, 3, 4, 5, 3}},
		"a new file": {func(dir string, _ []byte, _ func(*Item)) {
			if err := os.WriteFile(filepath.Join(dir, "usage-00000002.ndjson"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}, []uint64{1, 1, 2, 2, 5, 3}},
	} {
		for _, restarts := range []bool{false, true} {
			f := &fileTarget{t: t, dir: t.TempDir()}
			start := func() Sink { return newFile(&Config{Name: "archive", Dir: f.dir}, fileBytes, f) }
			sink := start()
			restart := func() {
				if err := sink.Close(); err != nil {
					t.Fatal(err)
				}
				sink = start()
			}
			send := func(i *Item) {
				t.Helper()
				if got := sink.Deliver(t.Context(), i); got.Outcome != OK {
					t.Fatalf("%s: %s %d: %+v", name, i.Tenant, i.Seq, got)
				}
			}
			send(other(1))
			for seq := uint64(1); seq <= 4; seq++ {
				send(follows(seq, seq > 1))
			}
			path := filepath.Join(f.dir, "usage-00000001.ndjson")
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			kept := bytes.Index(text, item(3).Body)
			restart()
			if err := os.WriteFile(path, text[:kept], 0o600); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				got := sink.Deliver(t.Context(), follows(5, true))
				if want := " lacks items 3 to 4 of usage/custom:a/b: bring them back, run macronode exports backfill archive usage/custom:a/b 3, or create an empty usage-00000002.ndjson"; got.Outcome != Retryable || !strings.HasSuffix(got.Reason, want) {
					t.Fatalf("%+v, want %q", got, want)
				}
			}
			send(other(2))
			c.mend(f.dir, text[kept:], send)
			if restarts {
				restart()
			}
			deliver(t, sink, follows(5, true)) // the first attempt may not see a new file
			send(other(3))
			if err := sink.Close(); err != nil {
				t.Fatal(err)
			}
			if got := f.seqs(); !slices.Equal(got, c.want) {
				t.Errorf("%s: the files have %v, not %v", name, got, c.want)
			}
		}
	}
	f := &fileTarget{t: t, dir: t.TempDir()} // a sink that was removed and begins again has no earlier items
	for _, i := range []*Item{item(1), follows(5, false)} {
		sink := f.sink()
		deliver(t, sink, i)
		if err := sink.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
