package proxy

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"

	"macronode/adapters/inflate"
	"macronode/core/event"
	"macronode/core/types"
)

// MaxInflaters is the number of zstd bodies that are decompressed at once, each of which may take
// Window bytes of memory. One more is rejected as busy. Callers without a key have at most half of
// them, together with those who have one all but two, and one tenant or peer at most a quarter: the
// rest is left for others.
const (
	MaxInflaters        = 16
	Window              = 8 << 20
	maxInflatersKeyed   = MaxInflaters - 2
	maxInflatersAnon    = MaxInflaters / 2
	maxInflatersPerFlow = MaxInflaters / 4
)

// Inflaters counts the zstd bodies that are being decompressed.
type Inflaters struct {
	mu      sync.Mutex
	taken   int
	classes [types.NumClasses]int
	flows   map[types.Flow]int // at most MaxInflaters
}

// NewInflaters returns Inflaters without a body.
func NewInflaters() *Inflaters { return &Inflaters{flows: make(map[types.Flow]int, MaxInflaters)} }

// Depth returns how many bodies there are, and how many there may be.
func (i *Inflaters) Depth() (taken, of int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.taken, MaxInflaters
}

// take reports whether one more body of a flow may be decompressed, and counts it. Gzip needs little
// memory and is not counted.
func (i *Inflaters) take(of inflate.Coding, by types.Flow) bool {
	if of != inflate.Zstd {
		return true
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	anon := i.classes[types.ClassAnon]
	switch {
	case i.taken >= MaxInflaters,
		by.Class != types.ClassInternal && (anon+i.classes[types.ClassAuthed] >= maxInflatersKeyed || i.flows[by] >= maxInflatersPerFlow),
		by.Class == types.ClassAnon && anon >= maxInflatersAnon:
		return false
	}
	i.taken++
	i.classes[by.Class]++
	i.flows[by]++
	return true
}

func (i *Inflaters) give(of inflate.Coding, by types.Flow) {
	if of != inflate.Zstd {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.taken--
	i.classes[by.Class]--
	if i.flows[by]--; i.flows[by] == 0 {
		delete(i.flows, by)
	}
}

// An inflated is a body as an endpoint is sent it by a route that inflates.
type inflated struct {
	*body
	reader *inflate.Reader
	of     inflate.Coding
	by     types.Flow
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
		i.places.give(i.of, i.by)
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
	case t.body != nil && !t.inflaters.take(of, t.course.Flow):
		return event.Busy
	}
	for _, name := range [...]string{"Content-Encoding", "Content-Length", "Content-Digest", "Repr-Digest", "Content-Md5"} {
		delete(t.r.Header, name)
	}
	if t.body != nil {
		t.inflated = &inflated{body: t.body, reader: inflate.New(t.body, of, inflate.Limits{Window: Window}), of: of, by: t.course.Flow, places: t.inflaters}
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
