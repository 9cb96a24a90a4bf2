// Package fstest has one test suite per port. Every adapter and every fake runs it.
package fstest

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"os"
	"slices"
	"testing"

	"macronode/adapters/fs"
	"macronode/core/types"
)

// FS is the suite of a directory; open returns an empty one. Crashes are not tested: a test of a
// real disk cannot cause them.
func FS(t *testing.T, open func(*testing.T) fs.FS) {
	for _, part := range []struct {
		name string
		test func(*testing.T, fs.FS)
	}{
		{"a name is new once", newOnce},
		{"a missing name is ErrNotExist in every call", notThere},
		{"bytes are read where they were written", bytesStay},
		{"a read past the end is short", shortRead},
		{"an opened file is not written to", readOnly},
		{"a rename replaces, and open files stay open", renameReplaces},
		{"a removed file can be read while it is open", removedStays},
		{"a closed file is of no use", closedIsClosed},
		{"names are listed in order", listed},
		{"there is room", thereIsRoom},
		{"it agrees with a map of bytes", compareMap},
	} {
		t.Run(part.name, func(t *testing.T) { part.test(t, open(t)) })
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func created(t *testing.T, d fs.FS, name, text string) fs.File {
	t.Helper()
	f, err := d.Create(name)
	must(t, err)
	n, err := f.WriteAt([]byte(text), 0)
	must(t, err)
	if n != len(text) {
		t.Fatalf("wrote %d of %d bytes without an error", n, len(text))
	}
	return f
}

func holds(t *testing.T, d fs.FS, name, text string) {
	t.Helper()
	all, err := fs.ReadAll(d, name)
	must(t, err)
	if string(all) != text {
		t.Fatalf("%s holds %q, want %q", name, all, text)
	}
}

func newOnce(t *testing.T, d fs.FS) {
	f := created(t, d, "a", "first")
	defer f.Close()
	if _, err := d.Create("a"); !errors.Is(err, os.ErrExist) {
		t.Fatalf("creating a name again: %v", err)
	}
	holds(t, d, "a", "first")
	must(t, d.Remove("a"))
	g := created(t, d, "a", "2")
	defer g.Close()
	holds(t, d, "a", "2")
}

func notThere(t *testing.T, d fs.FS) {
	_, opening := d.Open("a")
	for verb, err := range map[string]error{"open": opening, "rename": d.Rename("a", "b"), "remove": d.Remove("a")} {
		if !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %v", verb, err)
		}
	}
}

func bytesStay(t *testing.T, d fs.FS) {
	f := created(t, d, "a", "0123456789")
	defer f.Close()
	buf := make([]byte, 2) // reused after each write, as a caller may
	for off, text := range map[int64]string{2: "ab", 12: "xy"} {
		copy(buf, text)
		if n, err := f.WriteAt(buf, off); n != 2 || err != nil {
			t.Fatalf("write at %d: %d, %v", off, n, err)
		}
	}
	clear(buf)
	must(t, f.Sync())
	must(t, d.SyncDir())
	holds(t, d, "a", "01ab456789\x00\x00xy")
	if size, err := f.Size(); size != 14 || err != nil {
		t.Fatalf("size %d, %v, want 14", size, err)
	}
	if _, err := f.WriteAt([]byte("x"), -1); err == nil {
		t.Fatal("wrote before the beginning")
	}
}

func shortRead(t *testing.T, d fs.FS) {
	f := created(t, d, "a", "0123456789")
	defer f.Close()
	p := make([]byte, 4)
	if n, err := f.ReadAt(p, 6); n != 4 || err != nil && !errors.Is(err, io.EOF) || string(p) != "6789" {
		t.Fatalf("the last bytes: %d, %v, %q", n, err, p)
	}
	if n, err := f.ReadAt(p, 8); n != 2 || !errors.Is(err, io.EOF) || string(p[:2]) != "89" {
		t.Fatalf("over the end: %d, %v, %q", n, err, p)
	}
	if n, err := f.ReadAt(p, 30); n != 0 || !errors.Is(err, io.EOF) {
		t.Fatalf("past the end: %d, %v", n, err)
	}
	if _, err := f.ReadAt(p, -1); err == nil || errors.Is(err, io.EOF) {
		t.Fatalf("before the beginning: %v", err)
	}
}

func readOnly(t *testing.T, d fs.FS) {
	must(t, created(t, d, "a", "text").Close())
	f, err := d.Open("a")
	must(t, err)
	defer f.Close()
	if n, err := f.WriteAt([]byte("X"), 0); n != 0 || err == nil {
		t.Fatalf("wrote %d bytes to a file that was opened: %v", n, err)
	}
	holds(t, d, "a", "text")
}

func renameReplaces(t *testing.T, d fs.FS) {
	a, b := created(t, d, "a", "from a"), created(t, d, "b", "from b")
	defer a.Close()
	defer b.Close()
	must(t, d.Rename("a", "b"))
	must(t, d.SyncDir())
	holds(t, d, "b", "from a")
	if _, err := d.Open("a"); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("the old name is still there: %v", err)
	}
	if _, err := a.WriteAt([]byte("FROM"), 0); err != nil {
		t.Fatal(err)
	}
	holds(t, d, "b", "FROM a")
	p := make([]byte, 6)
	if _, err := b.ReadAt(p, 0); err != nil && !errors.Is(err, io.EOF) || string(p) != "from b" {
		t.Fatalf("the open b has %q, %v", p, err)
	}
	must(t, d.Rename("b", "b"))
	holds(t, d, "b", "FROM a")
}

func removedStays(t *testing.T, d fs.FS) {
	must(t, created(t, d, "a", "text").Close())
	f, err := d.Open("a")
	must(t, err)
	defer f.Close()
	must(t, d.Remove("a"))
	p := make([]byte, 4)
	if _, err := f.ReadAt(p, 0); err != nil && !errors.Is(err, io.EOF) || string(p) != "text" {
		t.Fatalf("read %q, %v", p, err)
	}
}

func closedIsClosed(t *testing.T, d fs.FS) {
	f := created(t, d, "a", "text")
	must(t, f.Close())
	_, reading := f.ReadAt(make([]byte, 1), 0)
	_, writing := f.WriteAt([]byte("x"), 0)
	_, sizing := f.Size()
	for verb, err := range map[string]error{"read": reading, "write": writing, "size": sizing, "sync": f.Sync(), "close": f.Close()} {
		if err == nil {
			t.Errorf("%s of a closed file did not fail", verb)
		}
	}
}

func listed(t *testing.T, d fs.FS) {
	for _, name := range []string{"b", "a.tmp", "00000002.seg", "00000010.seg", "a"} {
		must(t, created(t, d, name, name).Close())
	}
	must(t, d.Remove("a"))
	got, err := d.List()
	must(t, err)
	if want := []string{"00000002.seg", "00000010.seg", "a.tmp", "b"}; !slices.Equal(got, want) {
		t.Fatalf("listed %q, want %q", got, want)
	}
}

func thereIsRoom(t *testing.T, d fs.FS) {
	free, err := d.Free()
	if err != nil || free == 0 {
		t.Fatalf("no free bytes for an empty directory: %d, %v", free, err)
	}
}

// compareMap compares a directory with a map of bytes under random calls.
func compareMap(t *testing.T, d fs.FS) {
	dice, model := types.NewRand(1), map[string][]byte{}
	for step := range 2000 {
		all := slices.Sorted(maps.Keys(model))
		name := string(rune('a' + dice.Uint64n(6)))
		_, there := model[name]
		switch dice.Uint64n(6) {
		case 0:
			f, err := d.Create(name)
			if there != (err != nil) {
				t.Fatalf("step %d: create %s: %v", step, name, err)
			}
			if !there {
				model[name] = bytes.Repeat([]byte{byte(step)}, int(dice.Uint64n(40)))
				_, err := f.WriteAt(model[name], 0)
				must(t, errors.Join(err, f.Sync(), f.Close()))
			}
		case 1:
			if err := d.Remove(name); there != (err == nil) {
				t.Fatalf("step %d: remove %s: %v", step, name, err)
			}
			delete(model, name)
		case 2:
			to := string(rune('a' + dice.Uint64n(6)))
			if err := d.Rename(name, to); there != (err == nil) {
				t.Fatalf("step %d: rename %s to %s: %v", step, name, to, err)
			}
			if there && to != name {
				model[to] = model[name]
				delete(model, name)
			}
		case 3:
			must(t, d.SyncDir())
		case 4:
			if got, err := d.List(); err != nil || !slices.Equal(got, all) {
				t.Fatalf("step %d: listed %q, want %q, %v", step, got, all, err)
			}
		case 5:
			if got, err := fs.ReadAll(d, name); there != (err == nil) || !bytes.Equal(got, model[name]) {
				t.Fatalf("step %d: %s holds %q, want %q, %v", step, name, got, model[name], err)
			}
		}
	}
}
