package provider_test

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"macronode/adapters/fs"
	"macronode/adapters/fstest"
	"macronode/adapters/provider"
	"macronode/chaos/world"
)

// TestContractOfTimed: a directory with a time limit is a provider.
func TestContractOfTimed(t *testing.T) {
	fstest.Provider(t, func(t *testing.T) provider.Port {
		return provider.NewTimed(provider.Dir{FS: fs.Dir(t.TempDir())}, time.Hour)
	})
}

// TestContractOfOnly: so is the only one.
func TestContractOfOnly(t *testing.T) {
	fstest.Provider(t, func(t *testing.T) provider.Port {
		return provider.NewOnly(provider.Dir{FS: fs.Dir(t.TempDir())}, time.Hour)
	})
}

// newHanging returns a directory with one file, which is open.
func newHanging(t *testing.T) (h *world.Hanging, p *provider.Timed, open fs.File) {
	t.Helper()
	h = &world.Hanging{FS: fs.Dir(t.TempDir())}
	p = provider.NewTimed(provider.Dir{FS: h}, provider.Answer)
	f, err := p.Create("a")
	if err == nil {
		_, err = f.WriteAt([]byte("content"), 0)
	}
	if err == nil {
		open, err = p.Open("a")
	}
	if err != nil {
		t.Fatal(err)
	}
	return h, p, open
}

// TestHangingDiskEndsCalls: each call that a disk does not answer fails when its time is over, as a fault of the provider. The next ones
// fail at once, and ask the disk nothing. Once it has answered, calls succeed, and nothing waits.
func TestHangingDiskEndsCalls(t *testing.T) {
	for name, call := range map[string]func(p *provider.Timed, f fs.File) error{
		"open":  func(p *provider.Timed, _ fs.File) error { _, err := p.Open("a"); return err },
		"stat":  func(p *provider.Timed, _ fs.File) error { _, err := p.Stat("a"); return err },
		"free":  func(p *provider.Timed, _ fs.File) error { _, err := p.Free(); return err },
		"probe": func(p *provider.Timed, _ fs.File) error { return errors.Join(p.Probe(provider.Thorough)) },
		"size":  func(_ *provider.Timed, f fs.File) error { _, err := f.Size(); return err },
		"read": func(_ *provider.Timed, f fs.File) error {
			b := make([]byte, 7)
			if _, err := f.ReadAt(b, 0); err != nil || string(b) != "content" {
				return fmt.Errorf("%q: %w", b, err)
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h, p, f := newHanging(t)
				answer := h.Hang()
				began := time.Now()
				err := call(p, f)
				if took := time.Since(began); !errors.Is(err, provider.ErrUnavailable) || !errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, provider.ErrBusy) ||
					took != provider.Answer && name != "probe" {
					t.Errorf("%v after %v", err, took)
				}
				for what, next := range map[string]func() error{
					"the same": func() error { return call(p, f) },
					"list":     func() error { _, err := p.List(); return err },
					"create":   func() error { _, err := p.Create("b"); return err },
					"put":      func() error { return p.Put("a", "b") },
					"replace":  func() error { return p.Replace("a", "b") },
					"remove":   func() error { return p.Remove("a") },
					"flush":    p.Flush,
				} {
					began = time.Now()
					if err := next(); !errors.Is(err, provider.ErrUnavailable) || time.Since(began) != 0 || h.Waiting() != 1 {
						t.Errorf("%s: %v after %v, %d calls wait", what, err, time.Since(began), h.Waiting())
					}
				}
				answer()
				synctest.Wait()
				if err := call(p, f); err != nil || h.Waiting() != 0 {
					t.Errorf("afterwards: %v, %d calls wait", err, h.Waiting())
				}
			})
		})
	}
}

// TestHangingDiskHoldsFewGoroutines: however many reads begin before the first has failed, at most MaxCalls of them wait for the disk. The
// others fail without making the provider failed.
func TestHangingDiskHoldsFewGoroutines(t *testing.T) {
	for calls, open := range map[int]func(*testing.T) (*world.Hanging, fs.File){
		provider.MaxCalls: func(t *testing.T) (*world.Hanging, fs.File) {
			h, _, f := newHanging(t)
			return h, f
		},
		provider.MaxOnlyReads: func(t *testing.T) (*world.Hanging, fs.File) {
			h, p, _ := newOnly(t)
			f, err := p.Open("a")
			if err != nil {
				t.Fatal(err)
			}
			return h, f
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			h, f := open(t)
			checkFewGoroutines(t, h, f, calls)
		})
	}
}

func checkFewGoroutines(t *testing.T, h *world.Hanging, f fs.File, calls int) {
	t.Helper()
	answer := h.Hang()
	var all sync.WaitGroup
	var busy atomic.Int32
	for range calls + 50 {
		all.Go(func() {
			if _, err := f.ReadAt(make([]byte, 7), 0); errors.Is(err, provider.ErrBusy) {
				busy.Add(1)
			} else if !errors.Is(err, provider.ErrUnavailable) {
				t.Error(err)
			}
		})
	}
	synctest.Wait()
	if n := h.Waiting(); n != calls {
		t.Errorf("%d calls wait for the disk", n)
	}
	all.Wait()
	if n := busy.Load(); n != 50 || h.Waiting() != calls {
		t.Errorf("%d were busy, %d calls wait for the disk", n, h.Waiting())
	}
	answer()
	synctest.Wait()
	if _, err := f.ReadAt(make([]byte, 7), 0); err != nil {
		t.Error(err)
	}
}
