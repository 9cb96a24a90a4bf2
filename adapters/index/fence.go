package index

import (
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// A fence stands between one engine and the disk. An engine that has stopped still has
// goroutines. After end, none of their operations reaches the disk, and the engine's files
// and lock are closed, so another engine can open the same tables in this process.
//
// Each operation holds mu for reading: end waits for the operations that have begun.
type fence struct {
	mu    sync.RWMutex
	ended bool

	files sync.Mutex // guards open
	open  map[*handle]struct{}
}

func newFence() *fence { return &fence{open: map[*handle]struct{}{}} }

// end stops all further operations and closes what is open. It may be called twice.
func (f *fence) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended = true
	f.files.Lock()
	defer f.files.Unlock()
	for c := range f.open { //nolint:maporder // any order
		_ = c.Close() // no more writes
	}
	clear(f.open)
}

// read runs an operation that changes nothing. After end it returns ErrShut.
func (f *fence) read(do func() error) error {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if f.ended {
		return ErrShut
	}
	return do()
}

// track registers an open file or directory. It is called within an operation.
func (f *fence) track(c io.Closer) *handle {
	h := &handle{c}
	f.files.Lock()
	defer f.files.Unlock()
	f.open[h] = struct{}{}
	return h
}

// release closes h, unless end has.
func (f *fence) release(h *handle) error {
	f.mu.RLock()
	defer f.mu.RUnlock()
	f.files.Lock()
	_, isOpen := f.open[h]
	delete(f.open, h)
	f.files.Unlock()
	if !isOpen {
		return nil
	}
	return h.Close()
}

// A fencedFS is the file system behind a fence. There are two of each fence: the engine's,
// where a late change blocks for ever, because the engine retries or panics if it fails;
// and the index's own, where a late change returns ErrShut.
type fencedFS struct {
	vfs.FS
	fence *fence
	late  func()      // is called for a change after end; the engine's does not return
	die   func(error) // is called if a directory cannot be synced; the engine's does not return
}

// change runs an operation that may change the disk.
func (d *fencedFS) change(do func() error) error {
	err := d.fence.read(do)
	if err == ErrShut { //nolint:errorlint // the result of the fence, not of do
		d.late()
	}
	return err
}

func (d *fencedFS) file(f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return &fencedFile{File: f, fs: d, handle: d.fence.track(f)}, nil
}

func (d *fencedFS) Create(name string, c vfs.DiskWriteCategory) (f vfs.File, err error) {
	err = d.change(func() (err error) { f, err = d.file(d.FS.Create(name, c)); return err })
	return f, err
}

func (d *fencedFS) OpenReadWrite(name string, c vfs.DiskWriteCategory, o ...vfs.OpenOption) (f vfs.File, err error) {
	err = d.change(func() (err error) { f, err = d.file(d.FS.OpenReadWrite(name, c, o...)); return err })
	return f, err
}

func (d *fencedFS) ReuseForWrite(from, to string, c vfs.DiskWriteCategory) (f vfs.File, err error) {
	err = d.change(func() (err error) { f, err = d.file(d.FS.ReuseForWrite(from, to, c)); return err })
	return f, err
}

func (d *fencedFS) Open(name string, o ...vfs.OpenOption) (f vfs.File, err error) {
	err = d.fence.read(func() (err error) { f, err = d.file(d.FS.Open(name, o...)); return err })
	return f, err
}

func (d *fencedFS) OpenDir(name string) (f vfs.File, err error) {
	err = d.fence.read(func() (err error) { f, err = d.file(d.FS.OpenDir(name)); return err })
	if err != nil {
		return nil, err
	}
	return fencedDir{f, d.die}, nil
}

func (d *fencedFS) Lock(name string) (io.Closer, error) {
	l := fencedLock{fence: d.fence}
	err := d.change(func() error {
		lock, err := d.FS.Lock(name)
		if err == nil {
			l.lock = d.fence.track(lock)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return l, nil
}

func (d *fencedFS) Link(from, to string) error {
	return d.change(func() error { return d.FS.Link(from, to) })
}

func (d *fencedFS) Remove(name string) error {
	return d.change(func() error { return d.FS.Remove(name) })
}

func (d *fencedFS) RemoveAll(name string) error {
	return d.change(func() error { return d.FS.RemoveAll(name) })
}

func (d *fencedFS) Rename(from, to string) error {
	return d.change(func() error { return d.FS.Rename(from, to) })
}

func (d *fencedFS) MkdirAll(name string, mode os.FileMode) error {
	return d.change(func() error { return d.FS.MkdirAll(name, mode) })
}

func (d *fencedFS) List(name string) (names []string, err error) {
	err = d.fence.read(func() (err error) { names, err = d.FS.List(name); return err })
	return names, err
}

func (d *fencedFS) Stat(name string) (info vfs.FileInfo, err error) {
	err = d.fence.read(func() (err error) { info, err = d.FS.Stat(name); return err })
	return info, err
}

func (d *fencedFS) GetDiskUsage(name string) (usage vfs.DiskUsage, err error) {
	err = d.fence.read(func() (err error) { usage, err = d.FS.GetDiskUsage(name); return err })
	return usage, err
}

func (d *fencedFS) Unwrap() vfs.FS { return d.FS }

// A handle is something open that is closed once: by its owner or by fence.end.
type handle struct{ io.Closer }

// A fencedLock is the engine's lock of its directory.
type fencedLock struct {
	fence *fence
	lock  *handle
}

func (l fencedLock) Close() error { return l.fence.release(l.lock) }

// A fencedFile is an open file behind a fence.
type fencedFile struct {
	vfs.File
	fs     *fencedFS
	handle *handle
}

func (f *fencedFile) Close() error { return f.fs.fence.release(f.handle) }

// Fd hides the descriptor: an operation on it would pass the fence.
func (f *fencedFile) Fd() uintptr { return vfs.InvalidFd }

func (f *fencedFile) Read(p []byte) (n int, err error) {
	err = f.fs.fence.read(func() (err error) { n, err = f.File.Read(p); return err })
	return n, err
}

func (f *fencedFile) ReadAt(p []byte, at int64) (n int, err error) {
	err = f.fs.fence.read(func() (err error) { n, err = f.File.ReadAt(p, at); return err })
	return n, err
}

func (f *fencedFile) Stat() (info vfs.FileInfo, err error) {
	err = f.fs.fence.read(func() (err error) { info, err = f.File.Stat(); return err })
	return info, err
}

func (f *fencedFile) Prefetch(at, length int64) error {
	return f.fs.fence.read(func() error { return f.File.Prefetch(at, length) })
}

func (f *fencedFile) Write(p []byte) (n int, err error) {
	err = f.fs.change(func() (err error) { n, err = f.File.Write(p); return err })
	return n, err
}

func (f *fencedFile) WriteAt(p []byte, at int64) (n int, err error) {
	err = f.fs.change(func() (err error) { n, err = f.File.WriteAt(p, at); return err })
	return n, err
}

func (f *fencedFile) Preallocate(at, length int64) error {
	return f.fs.change(func() error { return f.File.Preallocate(at, length) })
}

func (f *fencedFile) Sync() error     { return f.fs.change(f.File.Sync) }
func (f *fencedFile) SyncData() error { return f.fs.change(f.File.SyncData) }

func (f *fencedFile) SyncTo(length int64) (whole bool, err error) {
	err = f.fs.change(func() (err error) { whole, err = f.File.SyncTo(length); return err })
	return whole, err
}

// A fencedDir is an open directory. If it cannot be synced, the engine panics in a goroutine
// of its own, which would end the process: which names are on the disk is unknown then.
// Instead the engine stops and the process goes on.
type fencedDir struct {
	vfs.File
	die func(error)
}

func (d fencedDir) Sync() error {
	if err := d.File.Sync(); err != nil {
		d.die(fmt.Errorf("%w: a directory cannot be synced: %w", ErrEngine, err))
		return err
	}
	return nil
}
