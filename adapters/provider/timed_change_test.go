package provider_test

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"macronode/adapters/fs"
	"macronode/adapters/provider"
)

// TestHangingDiskEndsChanges: each change that a disk does not answer fails when its time is over, and so does a list. The next call fails at
// once. What comes late is as if the change had ended in time, but a file that was made late is not left.
func TestHangingDiskEndsChanges(t *testing.T) {
	draft := func(p *provider.Timed) fs.File {
		f, err := p.Create("c")
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	for name, c := range map[string]struct {
		call   func(p *provider.Timed, c fs.File) error
		within time.Duration // in times of Answer
		left   []string
	}{
		"create":      {func(p *provider.Timed, _ fs.File) error { _, err := p.Create("b"); return err }, 3, []string{"a", "c"}},
		"create file": {func(p *provider.Timed, _ fs.File) error { _, err := p.CreateFile("b"); return err }, 3, []string{"a", "c"}},
		"put":         {func(p *provider.Timed, _ fs.File) error { return p.Put("a", "b") }, 3, []string{"b", "c"}},
		"replace":     {func(p *provider.Timed, _ fs.File) error { return p.Replace("a", "c") }, 3, []string{"c"}},
		"remove":      {func(p *provider.Timed, _ fs.File) error { return p.Remove("a") }, 3, []string{"c"}},
		"list":        {func(p *provider.Timed, _ fs.File) error { _, err := p.List(); return err }, 1, []string{"a", "c"}},
		"close":       {func(_ *provider.Timed, c fs.File) error { return c.Close() }, 3, []string{"a", "c"}},
		"write":       {func(_ *provider.Timed, c fs.File) error { _, err := c.WriteAt([]byte("x"), 0); return err }, 3, []string{"a", "c"}},
		"sync":        {func(_ *provider.Timed, c fs.File) error { return c.Sync() }, 12, []string{"a", "c"}},
		"flush":       {func(p *provider.Timed, _ fs.File) error { return p.Flush() }, 12, []string{"a", "c"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h, p, _ := newHanging(t)
				f := draft(p)
				answer, began := h.Hang(), time.Now()
				err := c.call(p, f)
				if took := time.Since(began); !errors.Is(err, provider.ErrUnavailable) || !errors.Is(err, os.ErrDeadlineExceeded) || took != c.within*provider.Answer {
					t.Errorf("%v after %v", err, took)
				}
				began = time.Now()
				if _, err := p.Create("d"); !errors.Is(err, provider.ErrUnavailable) || time.Since(began) != 0 || h.Waiting() != 1 {
					t.Errorf("the next one: %v after %v, %d calls wait", err, time.Since(began), h.Waiting())
				}
				answer()
				synctest.Wait()
				if got, err := p.List(); err != nil || !slices.Equal(got, c.left) {
					t.Errorf("afterwards: %q, %v, want %q", got, err, c.left)
				}
			})
		})
	}
}

// TestLateWriteHasItsOwnBytes: the caller of a write that was given up uses its buffer for other bytes. The disk gets those that were to be written.
func TestLateWriteHasItsOwnBytes(t *testing.T) {
	for _, size := range []int{100, 64 << 10, 100_000} {
		synctest.Test(t, func(t *testing.T) {
			h, p, _ := newHanging(t)
			f, err := p.Create("c")
			if err != nil {
				t.Fatal(err)
			}
			b := bytes.Repeat([]byte("old "), size/4)
			answer := h.Hang()
			if n, err := f.WriteAt(b, 0); n != 0 || !errors.Is(err, provider.ErrUnavailable) {
				t.Errorf("%d bytes written: %v", n, err)
			}
			copy(b, bytes.Repeat([]byte("new "), size/4))
			answer()
			synctest.Wait()
			if _, err := f.WriteAt([]byte("next"), int64(len(b))); err != nil { // a buffer of the pool is used again
				t.Error(err)
			}
			got := make([]byte, len(b))
			if _, err := f.ReadAt(got, 0); err != nil || !bytes.Equal(got, bytes.Repeat([]byte("old "), size/4)) {
				t.Errorf("the disk has %.8q: %v", got, err)
			}
		})
	}
}

// A closing counts the files of a directory that were closed.
type closing struct {
	fs.FS
	closed *int
}

func (c closing) Create(name string) (fs.File, error) {
	f, err := c.FS.Create(name)
	return closingFile{f, c.closed}, err
}

func (c closing) Open(name string) (fs.File, error) {
	f, err := c.FS.Open(name)
	return closingFile{f, c.closed}, err
}

type closingFile struct {
	fs.File
	closed *int
}

func (f closingFile) Close() error { *f.closed++; return f.File.Close() }

// TestFilesAreClosedLater: files that are closed while a disk hangs do not wait for it, and are closed when it answers.
func TestFilesAreClosedLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, _, _ := newHanging(t)
		closed := 0
		h.FS = closing{h.FS, &closed}
		p := provider.NewTimed(provider.Dir{FS: h}, provider.Answer)
		var open []fs.File
		for _, name := range []string{"x", "y", "z"} {
			f, err := p.Create(name)
			if err != nil {
				t.Fatal(err)
			}
			open = append(open, f)
		}
		answer := h.Hang()
		if _, err := p.Free(); err == nil {
			t.Error("it does not hang")
		}
		began := time.Now()
		for _, f := range open {
			if err := f.Close(); !errors.Is(err, provider.ErrUnavailable) || time.Since(began) != 0 || closed != 0 {
				t.Errorf("%v after %v, %d closed", err, time.Since(began), closed)
			}
		}
		answer()
		synctest.Wait()
		if closed != len(open) {
			t.Errorf("%d closed", closed)
		}
	})
}

// TestLongListTakesItsTime: a list has a time limit for each step only.
func TestLongListTakesItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := provider.NewTimed(slowList{provider.Dir{FS: fs.Dir(t.TempDir())}}, provider.Answer)
		if got, err := p.List(); err != nil || len(got) != 10 {
			t.Errorf("%q, %v", got, err)
		}
	})
}

// A slowList has ten names, and each takes almost as long as a list may take.
type slowList struct{ provider.Dir }

func (slowList) ListBy(advance func()) (names []string, _ error) {
	for i := range 10 {
		time.Sleep(provider.Answer - 1)
		names = append(names, string(rune('a'+i)))
		advance()
	}
	return names, nil
}

// TestCallOfDirectory: a call with the directory of a port ends in time too.
func TestCallOfDirectory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, answer := provider.NewTimed(provider.Dir{FS: fs.Dir(t.TempDir())}, provider.Answer), make(chan struct{})
		late, began := 0, time.Now()
		_, ok, err := provider.Call(p, func(fs.Dir) (int, error) { <-answer; return 7, nil }, func(n int) { late = n })
		if !ok || !errors.Is(err, provider.ErrUnavailable) || time.Since(began) != provider.Answer {
			t.Errorf("%v, %v after %v", ok, err, time.Since(began))
		}
		close(answer)
		synctest.Wait()
		if late != 7 {
			t.Errorf("what came late: %d", late)
		}
		if n, ok, err := provider.Call(p, func(fs.Dir) (int, error) { return 8, nil }, func(int) {}); n != 8 || !ok || err != nil {
			t.Errorf("afterwards: %d, %v, %v", n, ok, err)
		}
	})
}
