package proxy

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"

	"macronode/adapters/inflate"
	"macronode/core/event"
)

// MaxInflaters is how many bodies of zstd are inflated at once, each of which may look back
// over Window bytes of memory. One more is told to come back.
const (
	MaxInflaters = 16
	Window       = 8 << 20
)

// Inflaters are places for bodies of zstd.
type Inflaters struct{ taken chan struct{} }

// NewInflaters are all free.
func NewInflaters() *Inflaters { return &Inflaters{make(chan struct{}, MaxInflaters)} }

// Depth is how many are taken, of how many.
func (i *Inflaters) Depth() (taken, of int) { return len(i.taken), cap(i.taken) }

// take takes a place; false: there is none. Gzip wants none, for it looks back over little.
func (i *Inflaters) take(of inflate.Coding) bool {
	if of != inflate.Zstd {
		return true
	}
	select {
	case i.taken <- struct{}{}:
		return true
	default:
		return false
	}
}

func (i *Inflaters) give(of inflate.Coding) {
	if of == inflate.Zstd {
		<-i.taken
	}
}

// An inflated is a body as an endpoint is sent it by a route that inflates.
type inflated struct {
	*body
	reader *inflate.Reader
	of     inflate.Coding
	places *Inflaters
	turn   sync.Mutex  // of who reads
	over   atomic.Bool // the request is
	closed bool        // and what it took is given back
}

func (i *inflated) Read(to []byte) (n int, err error) {
	i.turn.Lock()
	err = errOver
	if !i.over.Load() {
		n, err = i.reader.Read(to)
	}
	switch {
	case errors.Is(err, inflate.ErrLarge):
		i.failed.CompareAndSwap(0, uint32(event.PayloadTooLarge))
	case err != nil && !errors.Is(err, io.EOF):
		i.failed.CompareAndSwap(0, uint32(event.BadRequest)) // unless the client's own failure is noted
	}
	i.turn.Unlock()
	i.clear()
	return n, err
}

// end gives back what it took, now or when the last read is over.
func (i *inflated) end() {
	i.over.Store(true)
	i.clear()
}

// clear is tried behind each read and by end: one of them finds nobody reading.
func (i *inflated) clear() {
	if !i.over.Load() || !i.turn.TryLock() {
		return
	}
	defer i.turn.Unlock()
	if !i.closed {
		i.closed = true
		_ = i.reader.Close() // it has no error
		i.places.give(i.of)
	}
}

// inflate has the body of a request go on inflated, and says why it does not. What is said
// of the body as it came is said no more.
func (t *trip) inflate() event.Problem {
	of, err := inflate.Of(t.r.Header["Content-Encoding"])
	switch {
	case err != nil:
		return event.UnsupportedMedia
	case of == inflate.Plain:
		return event.None
	case t.body != nil && !t.inflaters.take(of):
		return event.Busy
	}
	for _, name := range [...]string{"Content-Encoding", "Content-Length", "Content-Digest", "Repr-Digest", "Content-Md5"} {
		delete(t.r.Header, name)
	}
	if t.body != nil {
		t.inflated = &inflated{body: t.body, reader: inflate.New(t.body, of, inflate.Limits{Window: Window}), of: of, places: t.inflaters}
	}
	return event.None
}

// sent is the body that an endpoint is sent, and its length: -1 is not known.
func (t *trip) sent() (io.ReadCloser, int64) {
	if t.inflated != nil {
		return t.inflated, -1
	}
	return t.body, t.r.ContentLength
}
