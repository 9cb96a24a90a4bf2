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

// remove removes a file of a copy that failed, now or by clear, and returns why it could not.
func (l *leftovers) remove(from provider.Port, name string) error {
	err := from.Remove(name)
	if err == nil || errors.Is(err, os.ErrNotExist) {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.names) < maxLeftovers {
		l.names = append(l.names, name)
	}
	return err
}

// clear removes the files that could not be removed before. If a bucket forbids one, the next call begins with those behind it.
func (l *leftovers) clear(from provider.Port) {
	l.mu.Lock()
	names := l.names
	l.names = nil
	l.mu.Unlock()
	names = slices.Compact(names)
	for i, name := range names {
		if isForbidden(l.remove(from, name)) {
			l.mu.Lock()
			l.names = append(names[i+1:], l.names...)
			l.names = l.names[:min(len(l.names), maxLeftovers)]
			l.mu.Unlock()
			return
		}
	}
}
