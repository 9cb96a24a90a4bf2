package fstest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"sync"
	"testing"

	"macronode/adapters/fs"
	"macronode/adapters/provider"
	"macronode/core/types"
)

// Provider is the suite of a provider; open returns an empty one. Crashes and faults are not tested.
func Provider(t *testing.T, open func(*testing.T) provider.Port) {
	for _, part := range []struct {
		name string
		test func(*testing.T, provider.Port)
	}{
		{"a put makes a file of a draft", putMakesFile},
		{"a put is refused if the name exists", putOnlyNew},
		{"one of several puts of a name succeeds", putOnce},
		{"a replacement may find the name", replaceFile},
		{"a missing file is ErrNotExist", missingFile},
		{"ranges are read", readRanges},
		{"a large file has all its bytes", largeFile},
		{"an empty file is a file", emptyFile},
		{"an open file keeps its content or fails", openFileStays},
		{"files and drafts are listed in order", listFiles},
		{"a removed draft is gone", removeDraft},
		{"a file may need no draft", createFile},
		{"a probe leaves nothing behind", probeLeavesNothing},
		{"there is room for drafts", roomForDrafts},
		{"it agrees with a map of bytes", compareProvider},
	} {
		t.Run(part.name, func(t *testing.T) {
			p := open(t)
			if dir, ok := p.Local(); ok {
				_, err := fs.Make(string(dir))
				must(t, err)
			}
			part.test(t, p)
		})
	}
}

// draft writes a draft in parts and syncs it.
func draft(t *testing.T, p provider.Port, name string, content []byte) {
	t.Helper()
	f, err := p.Create(name)
	must(t, err)
	for off := 0; off < len(content); off += 50_000 {
		_, err := f.WriteAt(content[off:min(off+50_000, len(content))], int64(off))
		must(t, err)
	}
	must(t, errors.Join(f.Sync(), f.Close()))
}

// put stores a file.
func put(t *testing.T, p provider.Port, name string, content []byte) {
	t.Helper()
	draft(t, p, name+provider.DraftSuffix, content)
	must(t, p.Put(name+provider.DraftSuffix, name))
	must(t, p.Flush())
}

// read returns a file in parts of a size.
func read(t *testing.T, p provider.Port, name string, part int) []byte {
	t.Helper()
	f, err := p.Open(name)
	must(t, err)
	defer f.Close()
	size, err := f.Size()
	must(t, err)
	if s, ok := f.(provider.Sequential); ok {
		s.Expect(0, uint64(size))
	}
	all := make([]byte, size)
	for off := 0; off < len(all); off += part {
		to := min(off+part, len(all))
		if n, err := f.ReadAt(all[off:to], int64(off)); n != to-off || err != nil && !errors.Is(err, io.EOF) {
			t.Fatalf("read of %d bytes at %d: %d, %v", to-off, off, n, err)
		}
	}
	return all
}

func contains(t *testing.T, p provider.Port, name string, want []byte) {
	t.Helper()
	if got := read(t, p, name, 64<<10); !bytes.Equal(got, want) {
		t.Fatalf("%s has %d bytes, which are not the %d that were put", name, len(got), len(want))
	}
	if size, err := p.Stat(name); size != int64(len(want)) || err != nil {
		t.Fatalf("the size of %s is %d, %v, want %d", name, size, err, len(want))
	}
}

// pattern returns bytes of which no two groups are equal.
func pattern(n int) []byte {
	all := make([]byte, n)
	for i := range all {
		all[i] = byte(i ^ i>>8 ^ i>>16*7)
	}
	return all
}

func putMakesFile(t *testing.T, p provider.Port) {
	draft(t, p, "a.part", []byte("text"))
	if _, err := p.Open("a"); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("a draft is a file: %v", err)
	}
	if _, err := p.Create("a.part"); !errors.Is(err, os.ErrExist) {
		t.Fatalf("a second draft: %v", err)
	}
	must(t, p.Put("a.part", "a"))
	must(t, p.Flush())
	contains(t, p, "a", []byte("text"))
	if names, err := p.List(); err != nil || !slices.Equal(names, []string{"a"}) {
		t.Fatalf("listed %q, %v: the draft is left", names, err)
	}
	if err := p.Put("a.part", "b"); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("a put without a draft: %v", err)
	}
}

func putOnlyNew(t *testing.T, p provider.Port) {
	put(t, p, "a", []byte("first"))
	draft(t, p, "a.part", []byte("second"))
	if err := p.Put("a.part", "a"); !errors.Is(err, os.ErrExist) {
		t.Fatalf("a put of a name that exists: %v", err)
	}
	contains(t, p, "a", []byte("first"))
	must(t, p.Put("a.part", "b")) // the draft stays
	contains(t, p, "b", []byte("second"))
}

func putOnce(t *testing.T, p provider.Port) {
	r := race{p, make([]error, 6)}
	for i := range r.failed {
		draft(t, p, fmt.Sprintf("%d.part", i), []byte{byte('0' + i)})
	}
	must(t, r.Run(t.Context()))
	won := -1
	for i, err := range r.failed {
		switch {
		case err == nil && won < 0:
			won = i
		case !errors.Is(err, os.ErrExist):
			t.Fatalf("put %d: %v, after %d has won", i, err, won)
		}
	}
	if won < 0 {
		t.Fatalf("no put has won: %v", r.failed)
	}
	contains(t, p, "a", []byte{byte('0' + won)})
}

// race puts several drafts under one name at the same time.
type race struct {
	to     provider.Port
	failed []error
}

// Run returns when every put has ended.
func (r race) Run(context.Context) error {
	var all sync.WaitGroup
	for i := range r.failed {
		all.Go(func() { r.failed[i] = r.to.Put(fmt.Sprintf("%d.part", i), "a") })
	}
	all.Wait()
	return nil
}

func replaceFile(t *testing.T, p provider.Port) {
	put(t, p, "a", []byte("first"))
	for _, name := range []string{"a", "b"} {
		draft(t, p, "c.part", []byte("second"))
		must(t, p.Replace("c.part", name))
		must(t, p.Flush())
		contains(t, p, name, []byte("second"))
	}
}

func missingFile(t *testing.T, p provider.Port) {
	_, opening := p.Open("a")
	_, stating := p.Stat("a")
	for verb, err := range map[string]error{"open": opening, "stat": stating, "put": p.Put("a.part", "b"), "replace": p.Replace("a.part", "b")} {
		if !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %v", verb, err)
		}
	}
	for _, name := range []string{"a", "a.part"} {
		if err := p.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Errorf("remove %s: %v", name, err)
		}
	}
}

func readRanges(t *testing.T, p provider.Port) {
	content := pattern(200_000)
	put(t, p, "a", content)
	f, err := p.Open("a")
	must(t, err)
	defer f.Close()
	for _, r := range [...]struct{ off, n, want int }{{0, 1, 1}, {199_999, 1, 1}, {65_536, 65_536, 65_536}, {65_536, 65_536, 65_536}, {10, 100, 100}, {199_990, 20, 10}, {200_000, 1, 0}, {300_000, 9, 0}, {5, 0, 0}} {
		buf := make([]byte, r.n)
		n, err := f.ReadAt(buf, int64(r.off))
		if n != r.want || (n < r.n) != errors.Is(err, io.EOF) && err != nil || n < r.n && err == nil {
			t.Fatalf("%d bytes at %d: %d, %v", r.n, r.off, n, err)
		}
		if n > 0 && !bytes.Equal(buf[:n], content[r.off:r.off+n]) {
			t.Fatalf("%d bytes at %d are wrong", n, r.off)
		}
	}
	if _, err := f.WriteAt([]byte("x"), 0); err == nil {
		t.Fatal("wrote to a file that was opened")
	}
}

// largeFile reads a file in order with reads of its end in between, as the nodes of a hash tree are read.
func largeFile(t *testing.T, p provider.Port) {
	content := pattern(9<<20 + 12345)
	put(t, p, "a", content)
	contains(t, p, "a", content)
	f, err := p.Open("a")
	must(t, err)
	defer f.Close()
	if s, ok := f.(provider.Sequential); ok {
		s.Expect(1<<20, 8<<20)
	}
	buf, end := make([]byte, 64<<10), make([]byte, 100)
	for off := 1 << 20; off < 9<<20; off += len(buf) {
		if _, err := f.ReadAt(buf, int64(off)); err != nil || !bytes.Equal(buf, content[off:off+len(buf)]) {
			t.Fatalf("at %d: wrong, or %v", off, err)
		}
		if off%(1<<20) == 0 {
			if _, err := f.ReadAt(end, int64(len(content)-100)); err != nil && !errors.Is(err, io.EOF) || !bytes.Equal(end, content[len(content)-100:]) {
				t.Fatalf("the end, after %d: wrong, or %v", off, err)
			}
		}
	}
}

func emptyFile(t *testing.T, p provider.Port) {
	put(t, p, "a", nil)
	contains(t, p, "a", nil)
}

func openFileStays(t *testing.T, p provider.Port) {
	for _, change := range []func() error{
		func() error { return p.Remove("a") },
		func() error { draft(t, p, "b.part", []byte("other")); return p.Replace("b.part", "a") },
	} {
		draft(t, p, "a.part", []byte("text1"))
		must(t, p.Replace("a.part", "a"))
		f, err := p.Open("a")
		must(t, err)
		must(t, change())
		buf := make([]byte, 5)
		if n, err := f.ReadAt(buf, 0); n == 5 && string(buf) != "text1" || n < 5 && err == nil {
			t.Fatalf("read %d bytes %q, %v", n, buf, err)
		}
		must(t, f.Close())
	}
}

func listFiles(t *testing.T, p provider.Port) {
	if names, err := p.List(); err != nil || len(names) != 0 {
		t.Fatalf("an empty provider lists %q, %v", names, err)
	}
	for _, name := range []string{"b", "10", "a-1.object", "a-1"} {
		put(t, p, name, []byte(name))
	}
	draft(t, p, "a-2.part", nil)
	must(t, p.Remove("b"))
	got, err := p.List()
	must(t, err)
	if want := []string{"10", "a-1", "a-1.object", "a-2.part"}; !slices.Equal(got, want) {
		t.Fatalf("listed %q, want %q", got, want)
	}
}

func removeDraft(t *testing.T, p provider.Port) {
	draft(t, p, "a.part", []byte("text"))
	must(t, p.Remove("a.part"))
	draft(t, p, "a.part", []byte("new"))
	must(t, p.Put("a.part", "a"))
	contains(t, p, "a", []byte("new"))
}

// createFile makes a file without a draft, if the provider does that.
func createFile(t *testing.T, p provider.Port) {
	d, ok := p.(provider.Direct)
	if !ok {
		t.Skip("every file of this provider is made of a draft")
	}
	f, err := d.CreateFile("a")
	must(t, err)
	_, err = f.WriteAt([]byte("text"), 0)
	must(t, errors.Join(err, f.Sync(), f.Close(), p.Flush()))
	contains(t, p, "a", []byte("text"))
	if _, err := d.CreateFile("a"); !errors.Is(err, os.ErrExist) {
		t.Fatalf("a second file of this name: %v", err)
	}
	draft(t, p, "a.part", []byte("other"))
	if err := p.Put("a.part", "a"); !errors.Is(err, os.ErrExist) {
		t.Fatalf("a put of a name that exists: %v", err)
	}
	contains(t, p, "a", []byte("text"))
}

func probeLeavesNothing(t *testing.T, p provider.Port) {
	for _, e := range []provider.Effort{provider.Thorough, provider.Routine, provider.Routine} {
		if unreadable, unwritable := p.Probe(e); unreadable != nil || unwritable != nil {
			t.Fatalf("effort %d: %v, %v", e, unreadable, unwritable)
		}
	}
	if names, err := p.List(); err != nil || len(names) != 0 {
		t.Fatalf("listed %q, %v", names, err)
	}
}

func roomForDrafts(t *testing.T, p provider.Port) {
	if free, err := p.Free(); err != nil || free == 0 {
		t.Fatalf("no free bytes: %d, %v", free, err)
	}
}

// compareProvider compares a provider with a map of bytes under random calls.
func compareProvider(t *testing.T, p provider.Port) {
	dice, model := types.NewRand(1), map[string][]byte{}
	for step := range 200 {
		name := string(rune('a' + dice.Uint64n(5)))
		before, there := model[name]
		content := bytes.Repeat([]byte{byte(step)}, int(dice.Uint64n(40)))
		switch dice.Uint64n(5) {
		case 0:
			draft(t, p, name+".part", content)
			if err := p.Put(name+".part", name); there != errors.Is(err, os.ErrExist) || !there && err != nil {
				t.Fatalf("step %d: put %s: %v", step, name, err)
			}
			if there {
				must(t, p.Remove(name+".part"))
			} else {
				model[name] = content
			}
		case 1:
			draft(t, p, name+".part", content)
			must(t, p.Replace(name+".part", name))
			model[name] = content
		case 2:
			if err := p.Remove(name); err != nil && (there || !errors.Is(err, os.ErrNotExist)) {
				t.Fatalf("step %d: remove %s: %v", step, name, err)
			}
			delete(model, name)
		case 3:
			if got, err := p.List(); err != nil || !slices.Equal(got, slices.Sorted(maps.Keys(model))) {
				t.Fatalf("step %d: listed %q, %v", step, got, err)
			}
		case 4:
			if there {
				contains(t, p, name, before)
			} else if _, err := p.Stat(name); !errors.Is(err, os.ErrNotExist) {
				t.Fatalf("step %d: stat %s: %v", step, name, err)
			}
		}
	}
}
