package server

import (
	"log/slog"
	"sync"

	"macronode/adapters/fs"
	"macronode/adapters/nodedir"
)

// runFile is the file run.json, by which commands find the running node.
type runFile struct {
	dir fs.Dir
	log *slog.Logger

	mu      sync.Mutex // of the next two
	info    nodedir.Run
	removed bool // the file is removed and not written again
}

// update changes the contents and writes the file.
func (f *runFile) update(change func(*nodedir.Run)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(&f.info)
	if f.removed {
		return
	}
	if err := nodedir.Write(string(f.dir), f.info); err != nil {
		f.log.Error("run.json not written", "err", err)
	}
}

// remove removes the file for good. A listener that comes up during the shutdown does not write it again.
func (f *runFile) remove() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.removed = true
	if err := nodedir.Remove(string(f.dir), f.info); err != nil {
		f.log.Error("run.json not removed", "err", err)
	}
}

// contents returns what the file contains.
func (f *runFile) contents() nodedir.Run {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.info
}
