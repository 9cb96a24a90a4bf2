package objectstore

import (
	"errors"
	"os"
	"slices"
	"sync"

	"macronode/adapters/provider"
)

// maxLeftovers is how many files of one provider are remembered that could not be removed. Those beyond are found by the scrub.
const maxLeftovers = 4096

// leftovers are files with the name of a copy that failed, which could not be removed since the start: the disk did not answer. A list of
// names would take them for copies.
type leftovers struct {
	mu    sync.Mutex
	names []string // of at most maxLeftovers files
}

// remove removes a file of a copy that failed, now or by clear.
func (l *leftovers) remove(from provider.Port, name string) {
	if err := from.Remove(name); err == nil || errors.Is(err, os.ErrNotExist) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.names) < maxLeftovers {
		l.names = append(l.names, name)
	}
}

// clear removes the files that could not be removed before.
func (l *leftovers) clear(from provider.Port) {
	l.mu.Lock()
	names := l.names
	l.names = nil
	l.mu.Unlock()
	for _, name := range slices.Compact(names) {
		l.remove(from, name)
	}
}
