package proxy

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"macronode/adapters/inflate"
	"macronode/core/event"
	"macronode/core/share"
	"macronode/core/types"
)

// MaxInflaters is the number of zstd bodies that are decompressed at once, each of which may take
// Window bytes of memory. Callers without a key have at most half of them, all callers but the
// internal ones all but two, and one tenant or peer at most a quarter.
const (
	MaxInflaters        = 16
	Window              = inflate.MaxWindow
	maxInflatersKeyed   = MaxInflaters - 2
	maxInflatersAnon    = MaxInflaters / 2
	maxInflatersPerFlow = MaxInflaters / 4
	maxInflatersWaiting = 32 // requests of one class that wait for one
)

// Inflaters shares the decompressors of zstd by the rule of core/share: a request of a caller that
// has none waits for one, and the oldest request of the caller that has the most ends for it.
type Inflaters struct {
	mu     sync.Mutex
	start  time.Time
	last   uint64
	places share.Places
	all    map[uint64]*inflater // that hold a place or wait for one
}

// An inflater is a place of Inflaters, or the wait for one.
type inflater struct {
	from *Inflaters
	id   uint64
	ends func()        // ends the request that has the place, for another one
	got  chan struct{} // closed when it has the place
}

// NewInflaters returns Inflaters without a body.
func NewInflaters() *Inflaters {
	return &Inflaters{start: time.Now(), all: make(map[uint64]*inflater, MaxInflaters), places: share.NewPlaces(share.PlaceLimits{Places: MaxInflaters,
		Keyed: maxInflatersKeyed, Anon: maxInflatersAnon, Flow: maxInflatersPerFlow, Waiting: maxInflatersWaiting})}
}

// Depth returns the number of bodies and its limit.
func (i *Inflaters) Depth() (taken, of int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.places.Held(), MaxInflaters
}

// Waiting returns the number of requests that wait for a place, and its limit.
func (i *Inflaters) Waiting() (n, of int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.places.Waiting(), maxInflatersWaiting * int(types.NumClasses)
}

func (i *Inflaters) now() types.Instant { return types.Instant(time.Since(i.start)) }

// take returns a place for a body of a flow, and calls ends, at most once, if the request is to end
// for another one. It waits for at most twice the time patience, or until ctx ends, and returns nil
// if there is no place.
func (i *Inflaters) take(ctx context.Context, by types.Flow, patience time.Duration, ends func()) *inflater {
	i.mu.Lock()
	i.last++
	p := &inflater{from: i, id: i.last, ends: ends, got: make(chan struct{})}
	answer := i.places.Ask(i.now(), p.id, by, patience)
	if answer != share.Refused {
		i.all[p.id] = p
	}
	i.mu.Unlock()
	switch answer {
	case share.Refused:
		return nil
	case share.Holds:
		return p
	case share.Waits:
	}
	due := time.NewTimer(patience)
	defer due.Stop()
	for {
		select {
		case <-p.got:
			return p
		case <-due.C:
			if !i.over(p) {
				return p.ifGot()
			}
			due.Reset(patience)
		case <-ctx.Done():
			p.give()
			return nil
		}
	}
}

// ifGot returns a place whose wait is over, if the request got it meanwhile.
func (p *inflater) ifGot() *inflater {
	select {
	case <-p.got:
		return p
	default:
		return nil
	}
}

// over ends the wait of a request, or ends another one for it, which reports true.
func (i *Inflaters) over(p *inflater) (waitsOn bool) {
	i.mu.Lock()
	id, waitsOn := i.places.Over(i.now(), p.id)
	loser := i.all[id]
	if !waitsOn && p.ifGot() == nil {
		delete(i.all, p.id)
	}
	i.mu.Unlock()
	if waitsOn {
		loser.ends()
	}
	return waitsOn
}

// give gives the place back, or ends the wait for it.
func (p *inflater) give() {
	i := p.from
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.all, p.id)
	i.places.End(p.id)
	for id, ok := i.places.Next(i.now()); ok; id, ok = i.places.Next(i.now()) {
		close(i.all[id].got)
	}
}

// An inflated is a request body that is decompressed for an endpoint.
type inflated struct {
	*requestBody
	reader     *inflate.Reader
	place      *inflater   // nil: gzip needs none
	readMu     sync.Mutex  // serialises reads
	last       error       // what a read returns after the last one
	isRead     atomic.Bool // it was decompressed to its end
	hasEnded   atomic.Bool // nothing more is decompressed
	isReleased bool        // the place was given back
}

func (i *inflated) Read(to []byte) (n int, err error) {
	i.readMu.Lock()
	switch {
	case i.last != nil:
		err = i.last
	case i.hasEnded.Load():
		err = errRequestEnded
	default:
		n, err = i.reader.Read(to)
	}
	switch {
	case err == nil:
	case errors.Is(err, io.EOF):
		i.isRead.Store(true)
	case errors.Is(err, inflate.ErrLarge):
		i.problem.CompareAndSwap(0, uint32(event.PayloadTooLarge))
	default:
		if i.problem.CompareAndSwap(0, uint32(event.BadRequest)) { // a failure of the client's connection takes precedence
			i.isMalformed.Store(true)
		}
	}
	if i.last = err; err != nil {
		i.hasEnded.Store(true)
	}
	i.readMu.Unlock()
	i.release()
	return n, err
}

// stop gives back the place, now or after the current read.
func (i *inflated) stop() {
	i.hasEnded.Store(true)
	i.release()
}

// release is called after each read and by stop. It does nothing while a read is in progress.
func (i *inflated) release() {
	if !i.hasEnded.Load() || !i.readMu.TryLock() {
		return
	}
	defer i.readMu.Unlock()
	if i.isReleased {
		return
	}
	i.isReleased = true
	_ = i.reader.Close() // its error is always nil
	if i.place != nil {
		i.place.give()
	}
}

// decompressBody replaces the request body by its decompressed form, and removes the fields that
// describe the compressed one. If that is not possible, it answers.
func (t *exchange) decompressBody() (ok bool) {
	of, err := inflate.Of(t.r.Header["Content-Encoding"])
	switch {
	case err != nil:
		t.fail(t.w, t.r, event.UnsupportedMedia, 0)
		return false
	case of == inflate.Plain:
		return true
	}
	var place *inflater
	if of == inflate.Zstd && t.body != nil {
		if place = t.inflaters.take(t.ctx, t.trace.Flow, t.patience(), t.loseInflater); place == nil {
			t.answerBusy()
			return false
		}
	}
	for _, name := range [...]string{"Content-Encoding", "Content-Length", "Content-Digest", "Repr-Digest", "Content-Md5"} {
		delete(t.r.Header, name)
	}
	if t.body != nil {
		t.inflated = &inflated{requestBody: t.body, reader: inflate.New(t.body, of, inflate.Limits{Window: Window}), place: place}
	}
	return true
}

// patience returns how long a request may wait for a decompressor; 0: it may not. As for a permit, its
// deadline must be four times that.
func (t *exchange) patience() time.Duration {
	if wait := t.config.GiveWayAfter; t.timeLeft()/4 >= wait {
		return wait
	}
	return 0
}

// answerBusy answers a request that got no decompressor.
func (t *exchange) answerBusy() {
	if t.ctx.Err() != nil {
		_, problem, _ := t.classify(nil)
		t.writeProblem(problem)
		return
	}
	t.upstream.NoDecompressor = true
	t.trace.detail = "All decompressors for zstd that the caller may use are taken. A body in gzip or without compression needs none."
	t.fail(t.w, t.r, event.Busy, 0)
}

// loseInflater ends the request because another one needs its decompressor. It may have ended.
func (t *exchange) loseInflater() {
	t.cancel(&lostPermit{why: event.RejectGaveWay, of: LostDecompressor})
	t.body.stop()
}

// outgoingBody returns the body for an endpoint and its length, -1 if unknown.
func (t *exchange) outgoingBody() (io.ReadCloser, int64) {
	if t.inflated != nil {
		return t.inflated, -1
	}
	return t.body, t.r.ContentLength
}

// isBodyRead reports whether an endpoint may have the whole body.
func (t *exchange) isBodyRead() bool {
	switch {
	case t.inflated != nil:
		return t.inflated.isRead.Load()
	case t.body != nil:
		return t.body.isComplete.Load()
	}
	return true
}
