package provider

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"macronode/adapters/fs"
)

const (
	// Answer is the time in which a disk answers a read. One that was asleep needs some seconds.
	Answer = 10 * time.Second
	// changeFactor is how much longer a change may take, and a probe, which writes: the disk may be busy with other writes.
	changeFactor = 3
	// syncFactor is how much longer a sync may take: it writes what the operating system has in memory.
	syncFactor = 12
	// CallBytes is the memory of a call: a stack, and a buffer for a group of an object.
	CallBytes = 80 << 10
	maxKept   = 64 << 10 // bytes of a buffer: a group of an object
	// MaxCalls is how many calls may run at once in one directory, and how many goroutines wait for a disk that hangs.
	MaxCalls = 256
	// MaxOnlyReads is how many calls beyond MaxCalls may run at once in the only directory: those that change nothing.
	MaxOnlyReads = 64
)

// errHangs reports a disk that has not answered in time. Its files may be good.
var errHangs = fmt.Errorf("the disk does not answer: %w (%w)", ErrUnavailable, os.ErrDeadlineExceeded)

// Timed is a Port to a directory whose calls end in time, also if the disk hangs. The operating system cannot end such a call, so the
// goroutine that made it waits on. Until it has returned, every further call of its gate fails at once: so at most MaxCalls goroutines wait,
// a disk that hangs is asked no more, and a change that comes late changes nothing that a later call has made. The caller must take the
// outcome of a change that has not ended in time for unknown.
//
//	one of several directories:  all calls have one gate: what hangs here is read elsewhere
//	the only directory:          changes have a gate of their own: while they hang, all is read that can be read
type Timed struct {
	Port
	direct  Direct // the port
	within  time.Duration
	reads   *gate // of calls that change nothing
	changes *gate
	calls   sync.WaitGroup
}

var _ Direct = (*Timed)(nil)

// A gate limits the calls that run at once, and is closed while one of them has not returned in time.
type gate struct {
	slots chan struct{} // has an element for each call
	late  atomic.Int32  // of those, the calls that have not returned in time

	mu     sync.Mutex
	unused []fs.File // that could not be closed while the disk hangs; at most all that callers have open
}

func newGate(calls int) *gate { return &gate{slots: make(chan struct{}, calls)} }

// NewTimed returns a port to one of several directories. Its reads end within a time, and its changes within some times as much.
func NewTimed(p interface {
	Port
	Direct
}, within time.Duration,
) *Timed {
	g := newGate(MaxCalls)
	return &Timed{Port: p, direct: p, within: within, reads: g, changes: g}
}

// NewOnly returns a port to a directory that alone has the objects. It is that of NewTimed, except that reads go on while changes hang, and
// that reads of contents have no time limit: see OpenContent.
func NewOnly(p interface {
	Port
	Direct
}, within time.Duration,
) *Timed {
	return &Timed{Port: p, direct: p, within: within, reads: newGate(MaxOnlyReads), changes: newGate(MaxCalls)}
}

// isOnly reports whether no other directory has the objects.
func (t *Timed) isOnly() bool { return t.reads != t.changes }

// hangs returns an error while a call has not returned in time.
func (g *gate) hangs() error {
	if g.late.Load() > 0 {
		return errHangs
	}
	return nil
}

// timed makes a call and waits for what it returns, but not longer than within. discard gets what comes later.
func timed[T any](t *Timed, g *gate, within time.Duration, call func() (T, error), discard func(T)) (T, error) {
	return watched(t, g, within, func(func()) (T, error) { return call() }, discard)
}

// watched is timed with a call that may take longer while it advances: it gets what reports that.
func watched[T any](t *Timed, g *gate, within time.Duration, call func(advance func()) (T, error), discard func(T)) (result T, err error) {
	if err := g.hangs(); err != nil {
		return result, err
	}
	limit := time.NewTimer(within)
	defer limit.Stop()
	select {
	case g.slots <- struct{}{}:
	case <-limit.C:
		return result, ErrBusy
	}
	returned, abandoned := make(chan struct{}), make(chan struct{})
	var got T
	var failed error
	t.calls.Go(func() {
		defer func() { <-g.slots }()
		got, failed = call(func() { limit.Reset(within) })
		select {
		case returned <- struct{}{}:
		case <-abandoned:
			if failed == nil {
				discard(got)
			}
			g.closeUnused()
			g.late.Add(-1)
		}
	})
	select {
	case <-returned:
		return got, failed
	case <-limit.C:
		g.late.Add(1)
		close(abandoned)
		return result, errHangs
	}
}

// closeUnused closes the files that could not be closed before.
func (g *gate) closeUnused() {
	g.mu.Lock()
	list := g.unused
	g.unused = nil
	g.mu.Unlock()
	for _, f := range list {
		_ = f.Close() // its caller has given it up
	}
}

// change makes a call without a result, which changes the directory.
func (t *Timed) change(factor time.Duration, call func() error) error {
	_, err := timed(t, t.changes, factor*t.within, func() (struct{}, error) { return struct{}{}, call() }, ignore)
	return err
}

// Call calls a function with the directory of a port, if it is one of the operating system; else ok is false. The function changes nothing.
// The call to a Timed ends in time as a read does; discard gets what comes later.
func Call[T any](p Port, call func(fs.Dir) (T, error), discard func(T)) (result T, ok bool, err error) {
	return callIn(p, func(t *Timed) *gate { return t.reads }, call, discard)
}

// Change is Call with a function that may change the directory.
func Change[T any](p Port, call func(fs.Dir) (T, error), discard func(T)) (result T, ok bool, err error) {
	return callIn(p, func(t *Timed) *gate { return t.changes }, call, discard)
}

func callIn[T any](p Port, by func(*Timed) *gate, call func(fs.Dir) (T, error), discard func(T)) (result T, ok bool, err error) {
	dir, ok := p.Local()
	if !ok {
		return result, false, nil
	}
	if t, is := p.(*Timed); is {
		result, err = timed(t, by(t), t.within, func() (T, error) { return call(dir) }, discard)
	} else {
		result, err = call(dir)
	}
	return result, true, err
}

// ignore discards a value.
func ignore[T any](T) {}

// Open opens a file, the reads of which end in time.
func (t *Timed) Open(name string) (fs.File, error) {
	f, err := timed(t, t.reads, t.within, func() (fs.File, error) { return t.Port.Open(name) }, func(f fs.File) { _ = f.Close() })
	if err != nil {
		return nil, err
	}
	return &timedFile{f, t, t.reads}, nil
}

// Stat returns the size of a file in bytes.
func (t *Timed) Stat(name string) (int64, error) {
	return timed(t, t.reads, t.within, func() (int64, error) { return t.Port.Stat(name) }, ignore)
}

// Free returns how many bytes drafts can take.
func (t *Timed) Free() (uint64, error) {
	return timed(t, t.reads, t.within, t.Port.Free, ignore)
}

// Probe tries the directory. The only one can be read while a change hangs.
func (t *Timed) Probe(e Effort) (unreadable, unwritable error) {
	if t.isOnly() {
		if _, err := t.Free(); err != nil {
			err = fmt.Errorf("probe objects: %w", err)
			return err, err
		}
	}
	both, err := timed(t, t.changes, changeFactor*t.within, func() (found [2]error, _ error) {
		found[0], found[1] = t.Port.Probe(e)
		return found, nil
	}, ignore)
	if err == nil {
		return both[0], both[1]
	}
	err = fmt.Errorf("probe objects: %w", err)
	if t.isOnly() {
		return nil, err
	}
	return err, err
}

// A lister lists the names of files in steps, and calls advance after each.
type lister interface {
	ListBy(advance func()) ([]string, error)
}

// List returns the names of all files and drafts, sorted. A long list takes its time while names arrive.
func (t *Timed) List() ([]string, error) {
	return watched(t, t.reads, t.within, func(advance func()) ([]string, error) {
		if l, ok := t.Port.(lister); ok {
			return l.ListBy(advance)
		}
		return t.Port.List()
	}, ignore)
}

// Create begins a draft.
func (t *Timed) Create(draft string) (fs.File, error) { return t.create(t.Port.Create, draft) }

// CreateFile begins a file under its name.
func (t *Timed) CreateFile(name string) (fs.File, error) { return t.create(t.direct.CreateFile, name) }

// create makes a file. One that is made late is removed: its caller has given it up.
func (t *Timed) create(by func(string) (fs.File, error), name string) (fs.File, error) {
	f, err := timed(t, t.changes, changeFactor*t.within, func() (fs.File, error) { return by(name) }, func(f fs.File) {
		_ = f.Close()
		_ = t.Port.Remove(name)
	})
	if err != nil {
		return nil, err
	}
	return &timedFile{f, t, t.changes}, nil
}

// Put makes a file of a draft.
func (t *Timed) Put(draft, name string) error {
	return t.change(changeFactor, func() error { return t.Port.Put(draft, name) })
}

// Replace makes a file of a draft.
func (t *Timed) Replace(draft, name string) error {
	return t.change(changeFactor, func() error { return t.Port.Replace(draft, name) })
}

// Remove removes a file or a draft.
func (t *Timed) Remove(name string) error {
	return t.change(changeFactor, func() error { return t.Port.Remove(name) })
}

// Flush makes the names of files durable.
func (t *Timed) Flush() error { return t.change(syncFactor, t.Port.Flush) }

// A timedFile is an open file of a Timed.
type timedFile struct {
	fs.File
	of     *Timed
	opened *gate // of the call that has opened it
}

// buffers are those of reads and writes: a call that was abandoned keeps its buffer, because it may still use it.
var buffers = sync.Pool{New: func() any { return new([maxKept]byte) }}

// ReadAt reads into a buffer of its own.
func (f *timedFile) ReadAt(p []byte, off int64) (int, error) {
	return f.move(f.of.reads, f.of.within, len(p), func([]byte) {}, func(b []byte) (int, error) { return f.File.ReadAt(b, off) }, func(b []byte) { copy(p, b) })
}

// WriteAt writes from a buffer of its own: the caller may use p again while a call that was abandoned still writes.
func (f *timedFile) WriteAt(p []byte, off int64) (int, error) {
	return f.move(f.of.changes, changeFactor*f.of.within, len(p), func(b []byte) { copy(b, p) }, func(b []byte) (int, error) { return f.File.WriteAt(b, off) }, func([]byte) {})
}

// move fills a buffer of n bytes, makes a call with it, and passes on what the call has moved.
func (f *timedFile) move(g *gate, within time.Duration, n int, fill func([]byte), call func([]byte) (int, error), moved func([]byte)) (int, error) {
	kept := buffers.Get().(*[maxKept]byte) //nolint:forcetypeassert // of buffers
	b := kept[:]
	if n > maxKept {
		b = make([]byte, n)
	}
	b = b[:n]
	fill(b)
	n, err := timed(f.of, g, within, func() (int, error) { return call(b) }, ignore)
	if errors.Is(err, errHangs) {
		return 0, err
	}
	moved(b[:n])
	buffers.Put(kept)
	return n, err
}

// Sync makes the content durable.
func (f *timedFile) Sync() error { return f.of.change(syncFactor, f.File.Sync) }

// Size returns the size of the file.
func (f *timedFile) Size() (int64, error) {
	return timed(f.of, f.of.reads, f.of.within, f.File.Size, ignore)
}

// Close closes the file. While the disk hangs, it is left to the call that the disk answers last.
func (f *timedFile) Close() error {
	var called atomic.Bool
	g := f.opened
	_, err := timed(f.of, g, changeFactor*f.of.within, func() (struct{}, error) { called.Store(true); return struct{}{}, f.File.Close() }, ignore)
	if called.Load() || !errors.Is(err, ErrUnavailable) {
		return err
	}
	g.mu.Lock()
	g.unused = append(g.unused, f.File)
	g.mu.Unlock()
	if g.hangs() == nil { // the last one has ended meanwhile
		g.closeUnused()
	}
	return err
}
