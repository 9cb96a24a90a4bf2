package world

import (
	"sync"

	"macronode/adapters/fs"
)

// Hanging is a directory on a disk that does not answer while it hangs.
type Hanging struct {
	fs.FS
	mu      sync.Mutex
	until   chan struct{} // nil: it answers
	left    int           // calls that it answers before it hangs
	reads   bool          // it answers all calls that change nothing
	waiting int
}

// Hang makes the disk hang until the returned function is called.
func (h *Hanging) Hang() (answer func()) { return h.HangAfter(0) }

// HangAfter is Hang after some more calls.
func (h *Hanging) HangAfter(calls int) (answer func()) { return h.hang(calls, false) }

// Freeze is HangAfter of calls that change something, like a file system that is frozen. All else is answered.
func (h *Hanging) Freeze(calls int) (answer func()) { return h.hang(calls, true) }

func (h *Hanging) hang(calls int, reads bool) (answer func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	until := make(chan struct{})
	h.until, h.left, h.reads = until, calls, reads
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.until = nil
		close(until)
	}
}

// Waiting returns how many calls wait for the disk.
func (h *Hanging) Waiting() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.waiting
}

// read waits while the disk hangs for all calls.
func (h *Hanging) read() { h.wait(false) }

// change waits while the disk hangs.
func (h *Hanging) change() { h.wait(true) }

func (h *Hanging) wait(changes bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	until := h.until
	if until == nil || h.reads && !changes {
		return
	}
	if h.left > 0 {
		h.left--
		return
	}
	h.waiting++
	h.mu.Unlock()
	<-until
	h.mu.Lock()
	h.waiting--
}

// Open opens a file, the calls of which wait as well.
func (h *Hanging) Open(name string) (fs.File, error) {
	h.read()
	f, err := h.FS.Open(name)
	if err != nil {
		return nil, err
	}
	return hangingFile{f, h}, nil
}

// Create creates a file, the calls of which wait as well.
func (h *Hanging) Create(name string) (fs.File, error) {
	h.change()
	f, err := h.FS.Create(name)
	if err != nil {
		return nil, err
	}
	return hangingFile{f, h}, nil
}

// Rename renames a file.
func (h *Hanging) Rename(from, to string) error {
	h.change()
	return h.FS.Rename(from, to)
}

// Remove removes a name.
func (h *Hanging) Remove(name string) error {
	h.change()
	return h.FS.Remove(name)
}

// SyncDir makes all names durable.
func (h *Hanging) SyncDir() error {
	h.change()
	return h.FS.SyncDir()
}

// List returns the names of all files.
func (h *Hanging) List() ([]string, error) {
	h.read()
	return h.FS.List()
}

// Free returns the free bytes.
func (h *Hanging) Free() (uint64, error) {
	h.read()
	return h.FS.Free()
}

type hangingFile struct {
	fs.File
	of *Hanging
}

func (f hangingFile) ReadAt(p []byte, off int64) (int, error) {
	f.of.read()
	return f.File.ReadAt(p, off)
}

func (f hangingFile) Size() (int64, error) {
	f.of.read()
	return f.File.Size()
}

func (f hangingFile) WriteAt(p []byte, off int64) (int, error) {
	f.of.change()
	return f.File.WriteAt(p, off)
}

func (f hangingFile) Sync() error {
	f.of.change()
	return f.File.Sync()
}

func (f hangingFile) Close() error {
	f.of.read()
	return f.File.Close()
}
