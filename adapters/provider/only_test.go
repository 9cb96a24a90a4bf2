package provider_test

import (
	"errors"
	"os"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"macronode/adapters/fs"
	"macronode/adapters/provider"
	"macronode/chaos/world"
)

// newOnly returns the only directory, with a file that is open as a content.
func newOnly(t *testing.T) (h *world.Hanging, p *provider.Timed, content fs.File) {
	t.Helper()
	h = &world.Hanging{FS: fs.Dir(t.TempDir())}
	p = provider.NewOnly(provider.Dir{FS: h}, provider.Answer)
	f, err := p.Create("a")
	if err == nil {
		_, err = f.WriteAt([]byte("content"), 0)
	}
	if err == nil {
		content, err = provider.OpenContent(p, "a")
	}
	if err != nil {
		t.Fatal(err)
	}
	return h, p, content
}

// readsOf are the calls that change nothing.
func readsOf(p *provider.Timed, content fs.File) map[string]func() error {
	read := func(f fs.File, err error) error {
		if err == nil {
			_, err = f.Size()
		}
		if err == nil {
			_, err = f.ReadAt(make([]byte, 7), 0)
		}
		if err == nil {
			err = f.Close()
		}
		return err
	}
	return map[string]func() error{
		"read":         func() error { return read(p.Open("a")) },
		"content":      func() error { return read(provider.OpenContent(p, "a")) },
		"open content": func() error { _, err := content.ReadAt(make([]byte, 7), 0); return err },
		"stat":         func() error { _, err := p.Stat("a"); return err },
		"free":         func() error { _, err := p.Free(); return err },
		"list":         func() error { _, err := p.List(); return err },
	}
}

// changesOf are the calls that change something. Each can be made once.
func changesOf(p *provider.Timed, draft fs.File) map[string]func() error {
	return map[string]func() error{
		"create":      func() error { _, err := p.Create("b"); return err },
		"create file": func() error { _, err := p.CreateFile("b"); return err },
		"put":         func() error { return p.Put("c", "b") },
		"replace":     func() error { return p.Replace("c", "b") },
		"remove":      func() error { return p.Remove("c") },
		"write":       func() error { _, err := draft.WriteAt([]byte("x"), 0); return err },
		"sync":        draft.Sync,
		"flush":       p.Flush,
		"probe":       func() error { _, unwritable := p.Probe(provider.Thorough); return unwritable },
	}
}

// TestOnlyDirectoryIsReadWhileChangesHang: each change that hangs fails when its time is over, the next ones fail at once, and all that changes
// nothing goes on. When the disk answers, everything works.
func TestOnlyDirectoryIsReadWhileChangesHang(t *testing.T) {
	for _, name := range []string{"create", "create file", "put", "replace", "remove", "write", "sync", "flush", "probe"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h, p, content := newOnly(t)
				draft, err := p.Create("c")
				if err != nil {
					t.Fatal(err)
				}
				changes, reads := changesOf(p, draft), readsOf(p, content)
				answer, began := h.Freeze(0), time.Now()
				err = changes[name]()
				limit := 3 * provider.Answer
				if name == "sync" || name == "flush" {
					limit = 12 * provider.Answer
				}
				if took := time.Since(began); !errors.Is(err, provider.ErrUnavailable) || !errors.Is(err, os.ErrDeadlineExceeded) || took != limit {
					t.Errorf("%v after %v", err, took)
				}
				began = time.Now()
				for what, read := range reads {
					if err := read(); err != nil {
						t.Errorf("%s while changes hang: %v", what, err)
					}
				}
				for what, change := range changes {
					if err := change(); !errors.Is(err, provider.ErrUnavailable) {
						t.Errorf("%s while changes hang: %v", what, err)
					}
				}
				if unreadable, unwritable := p.Probe(provider.Routine); unreadable != nil || !errors.Is(unwritable, provider.ErrUnavailable) {
					t.Errorf("a probe while changes hang: %v, %v", unreadable, unwritable)
				}
				if took := time.Since(began); took != 0 || h.Waiting() != 1 {
					t.Errorf("later calls took %v, %d calls wait", took, h.Waiting())
				}
				answer()
				synctest.Wait()
				if unreadable, unwritable := p.Probe(provider.Thorough); unreadable != nil || unwritable != nil || h.Waiting() != 0 {
					t.Errorf("a probe afterwards: %v, %v, %d calls wait", unreadable, unwritable, h.Waiting())
				}
				f, err := p.Create("d")
				if err != nil {
					t.Fatalf("a file afterwards: %v", err)
				}
				if err := f.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestOnlyDirectoryHangs: if the disk answers no call, each one but the reads of contents ends in time. Then a content is not read either.
func TestOnlyDirectoryHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, p, content := newOnly(t)
		answer, began := h.Hang(), time.Now()
		if _, err := p.Open("a"); !errors.Is(err, provider.ErrUnavailable) || time.Since(began) != provider.Answer {
			t.Errorf("a read: %v after %v", err, time.Since(began))
		}
		began = time.Now()
		if _, err := p.Create("b"); !errors.Is(err, provider.ErrUnavailable) || time.Since(began) != 3*provider.Answer {
			t.Errorf("a change: %v after %v", err, time.Since(began))
		}
		began = time.Now()
		for what, read := range readsOf(p, content) {
			if err := read(); !errors.Is(err, provider.ErrUnavailable) {
				t.Errorf("%s while the disk hangs: %v", what, err)
			}
		}
		if unreadable, unwritable := p.Probe(provider.Routine); !errors.Is(unreadable, provider.ErrUnavailable) || !errors.Is(unwritable, provider.ErrUnavailable) {
			t.Errorf("a probe while the disk hangs: %v, %v", unreadable, unwritable)
		}
		if took := time.Since(began); took != 0 || h.Waiting() != 2 {
			t.Errorf("later calls took %v, %d calls wait", took, h.Waiting())
		}
		answer()
		synctest.Wait()
		for what, read := range readsOf(p, content) {
			if err := read(); err != nil {
				t.Errorf("%s afterwards: %v", what, err)
			}
		}
		if names, err := p.List(); err != nil || !slices.Equal(names, []string{"a"}) {
			t.Errorf("files afterwards: %q, %v", names, err)
		}
	})
}

// TestChangeOfOnlyDirectory: a function that changes the directory and hangs is a change.
func TestChangeOfOnlyDirectory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, answer := provider.NewOnly(provider.Dir{FS: fs.Dir(t.TempDir())}, provider.Answer), make(chan struct{})
		_, ok, err := provider.Change(p, func(fs.Dir) (int, error) { <-answer; return 0, nil }, func(int) {})
		if !ok || !errors.Is(err, provider.ErrUnavailable) || !errors.Is(p.Flush(), provider.ErrUnavailable) {
			t.Errorf("%v, %v", ok, err)
		}
		if n, ok, err := provider.Call(p, func(fs.Dir) (int, error) { return 8, nil }, func(int) {}); n != 8 || !ok || err != nil {
			t.Errorf("a function that changes nothing: %d, %v, %v", n, ok, err)
		}
		close(answer)
		synctest.Wait()
		if err := p.Flush(); err != nil {
			t.Error(err)
		}
	})
}

// TestOnlyDirectoryKeepsNoFiles: files that were read are closed while changes hang, and those that were written when they no longer hang.
func TestOnlyDirectoryKeepsNoFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, _, _ := newOnly(t)
		closed := 0
		h.FS = closing{h.FS, &closed}
		p := provider.NewOnly(provider.Dir{FS: h}, provider.Answer)
		written, err := p.Create("x")
		if err != nil {
			t.Fatal(err)
		}
		answer := h.Freeze(0)
		if err := p.Flush(); err == nil {
			t.Error("it does not hang")
		}
		for range 3 {
			f, err := p.Open("a")
			if err == nil {
				err = f.Close()
			}
			if err != nil {
				t.Error(err)
			}
		}
		if err := written.Close(); !errors.Is(err, provider.ErrUnavailable) || closed != 3 {
			t.Errorf("%v, %d closed", err, closed)
		}
		answer()
		synctest.Wait()
		if closed != 4 {
			t.Errorf("%d closed afterwards", closed)
		}
	})
}
