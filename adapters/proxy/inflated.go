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
// Window bytes of memory. One more is rejected as busy. Callers without a key have at most half
// of them, all callers but the internal ones all but two, and one tenant or peer at most a
// quarter.
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

// Depth returns the number of bodies and its limit.
func (i *Inflaters) Depth() (taken, of int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.taken, MaxInflaters
}

// take reports whether one more body of a flow may be decompressed, and counts it. Gzip needs
// little memory and is not counted.
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

// An inflated is a request body that is decompressed for an endpoint.
type inflated struct {
	*requestBody
	reader     *inflate.Reader
	coding     inflate.Coding
	flow       types.Flow
	limiter    *Inflaters
	readMu     sync.Mutex  // serialises reads
	hasEnded   atomic.Bool // the request has ended
	isReleased bool        // the place was given back
}

func (i *inflated) Read(to []byte) (n int, err error) {
	i.readMu.Lock()
	err = errRequestEnded
	if !i.hasEnded.Load() {
		n, err = i.reader.Read(to)
	}
	switch {
	case errors.Is(err, inflate.ErrLarge):
		i.problem.CompareAndSwap(0, uint32(event.PayloadTooLarge))
	case err != nil && !errors.Is(err, io.EOF):
		i.problem.CompareAndSwap(0, uint32(event.BadRequest)) // a failure of the client's connection takes precedence
	}
	i.readMu.Unlock()
	i.release()
	return n, err
}

// end gives back the place, now or after the current read.
func (i *inflated) end() {
	i.hasEnded.Store(true)
	i.release()
}

// release is called after each read and by end. It does nothing while a read is in progress.
func (i *inflated) release() {
	if !i.hasEnded.Load() || !i.readMu.TryLock() {
		return
	}
	defer i.readMu.Unlock()
	if !i.isReleased {
		i.isReleased = true
		_ = i.reader.Close() // its error is always nil
		i.limiter.give(i.coding, i.flow)
	}
}

// decompressBody replaces the request body by its decompressed form, and removes the fields that
// describe the compressed one. It returns the problem if that is not possible.
func (t *exchange) decompressBody() event.Problem {
	of, err := inflate.Of(t.r.Header["Content-Encoding"])
	switch {
	case err != nil:
		return event.UnsupportedMedia
	case of == inflate.Plain:
		return event.None
	case t.body != nil && !t.inflaters.take(of, t.trace.Flow):
		return event.Busy
	}
	for _, name := range [...]string{"Content-Encoding", "Content-Length", "Content-Digest", "Repr-Digest", "Content-Md5"} {
		delete(t.r.Header, name)
	}
	if t.body != nil {
		t.inflated = &inflated{requestBody: t.body, reader: inflate.New(t.body, of, inflate.Limits{Window: Window}), coding: of, flow: t.trace.Flow, limiter: t.inflaters}
	}
	return event.None
}

// outgoingBody returns the body for an endpoint and its length, -1 if unknown.
func (t *exchange) outgoingBody() (io.ReadCloser, int64) {
	if t.inflated != nil {
		return t.inflated, -1
	}
	return t.body, t.r.ContentLength
}
