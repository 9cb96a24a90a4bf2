package index

import (
	"context"
	"errors"
	"fmt"
	"time"

	"macronode/core/record"
	"macronode/core/types"
)

const (
	groupFrames = 64       // most frames that are added under one lock
	groupBytes  = 64 << 10 // and most bytes of their rows
)

// errPause interrupts reading the journal for other work.
var errPause = errors.New("index: paused")

// A folding is one run: its position, the rows that it has read and not added yet, and its
// builder.
type folding struct {
	*Indexer
	store  *store
	reader *reader
	draft  draft
	ends   []int // number of rows up to the end of each frame in the draft
	mark   mark  // after the last of these frames
	behind bool  // the journal has more frames than were offered

	following func() // called once, when all durable frames are folded
	follows   bool   // following was called

	tails chan *tail // to the builder, at most one
	done  chan built
	busy  bool
	due   bool // the interval has passed
}

type built struct {
	mark mark
	err  error
}

func newFolding(x *Indexer, s *store, m mark, following func()) *folding {
	f := &folding{Indexer: x, store: s, mark: m, behind: true, following: following, tails: make(chan *tail, 1), done: make(chan built, 1)}
	f.reader = newReader(x.width, x.eras, x.config.Views, f.hold)
	return f
}

// run folds until ctx ends or an error. When it returns, its goroutines have ended.
func (f *folding) run(ctx context.Context) error {
	over := make(chan struct{})
	go f.build(over)
	defer func() {
		close(f.tails)
		select {
		case <-over:
		case <-f.store.dead: // and the builder with it
		}
	}()
	tick := time.NewTicker(f.limits.Interval)
	defer tick.Stop()
	for {
		worked, err := f.turn(ctx)
		if err != nil {
			return err
		}
		if !f.behind && !f.follows {
			f.follows = true
			f.following()
		}
		if worked && ctx.Err() == nil {
			continue
		}
		select {
		case <-ctx.Done():
			return f.last()
		case found := <-f.sick:
			return found.error
		case b := <-f.done:
			if err := f.built(b); err != nil {
				return err
			}
		case <-f.wakes():
		case <-tick.C:
			f.due = true
			select {
			case f.tails <- nil:
			default: // there is more to do
			}
		}
	}
}

// wakes returns the channel that signals new frames, if there is room for them.
func (f *folding) wakes() <-chan struct{} {
	if f.full() && f.busy {
		return nil
	}
	return f.ring.wake
}

// turn folds what is available, and starts writing the tail if it is due. worked is false if
// there is nothing to do.
func (f *folding) turn(ctx context.Context) (worked bool, err error) {
	select {
	case found := <-f.sick:
		return false, found.error
	case b := <-f.done:
		return true, f.built(b)
	default:
	}
	if f.freeze(); f.full() {
		return false, nil
	}
	if f.behind {
		was := f.mark.lsn
		err := f.read(ctx)
		return f.behind || f.mark.lsn > was, err
	}
	for !f.enough() {
		s, ok, behind := f.ring.take(f.mark.lsn + 1)
		if f.behind = behind; !ok {
			break
		}
		worked = true
		if err := f.frame(&s); err != nil {
			return false, err
		}
	}
	f.link()
	return worked || f.behind, nil
}

// read folds from the journal, until the ring has the next frame.
func (f *folding) read(ctx context.Context) error {
	f.behind = false
	err := f.config.Journal.Range(f.mark.lsn+1, func(s record.Sealed) error {
		if err := f.frame(&s); err != nil {
			return err
		}
		if f.enough() {
			f.link()
			f.freeze()
			if f.behind = f.full() || ctx.Err() != nil || len(f.sick) > 0; f.behind {
				return errPause
			}
		}
		if f.ring.has(f.mark.lsn + 1) {
			return errPause
		}
		return nil
	})
	f.link()
	if err != nil && !errors.Is(err, errPause) {
		return fmt.Errorf("index: read the journal from %v: %w", f.mark.lsn+1, err)
	}
	return nil
}

// enough reports whether the draft must be added before it gets long or the tail is full.
func (f *folding) enough() bool {
	return len(f.ends) >= groupFrames || len(f.draft.arena) >= groupBytes || f.tail.frames+len(f.ends) >= f.limits.Frames
}

// frame reads the next frame into the draft.
func (f *folding) frame(s *record.Sealed) error {
	switch {
	case s.LSN != f.mark.lsn+1:
		return fmt.Errorf("%w: %v after %v", ErrOrder, s.LSN, f.mark.lsn)
	case s.Prev != f.mark.root && f.mark.lsn == 0:
		return fmt.Errorf("%w: the first one follows another", ErrOrder)
	case s.Prev != f.mark.root:
		err := fmt.Errorf("%w: frame %v does not follow the one before", ErrDamaged, s.LSN)
		f.damaged.Store(true)
		return err
	}
	rows := len(f.draft.rows)
	at, err := f.reader.frame(s, &f.draft)
	if err != nil {
		f.draft.cut(rows)
		return fmt.Errorf("index: read frame %v: %w", s.LSN, err)
	}
	if s.Journal != f.mark.journal {
		f.mark.lives = append(f.mark.lives[:len(f.mark.lives):len(f.mark.lives)], life{s.LSN, s.Journal})
	}
	if f.mark.lsn == 0 {
		f.mark.first = at
	}
	f.mark.journal, f.mark.lsn, f.mark.root, f.mark.at = s.Journal, s.LSN, s.Root, at
	f.ends = append(f.ends, len(f.draft.rows))
	return nil
}

// link adds the draft to the tail, where readers see it.
func (f *folding) link() {
	if len(f.ends) == 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	t := f.tail
	for i := range f.draft.rows {
		key, value := f.draft.at(i)
		t.link(key, value, f.draft.rows[i].pos)
	}
	dropped := t.last.dropped
	t.frames += len(f.ends)
	t.last = f.mark
	t.last.dropped = dropped
	f.draft.reset()
	f.ends = f.ends[:0]
	f.wake()
}

// wake wakes readers. The caller holds the lock.
func (x *Indexer) wake() {
	if x.moved != nil {
		close(x.moved)
		x.moved = nil
	}
}

// full reports whether the tail is full.
func (f *folding) full() bool {
	return f.tail.frames >= f.limits.Frames || f.tail.bytes() >= f.limits.Tail
}

// freeze starts writing the tail if no other is being written and it is full, old enough, or has
// many keys: the node keeps keys in memory until they are in a table, and rejects new ones when
// it has no room.
func (f *folding) freeze() {
	if !f.busy && (f.full() || f.tail.keys >= f.limits.Keys || f.due && f.tail.frames >= f.limits.Few) {
		f.put()
	}
}

// put passes the tail to the builder, and begins another.
func (f *folding) put() {
	f.mu.Lock()
	t := f.tail
	f.frozen = t
	if f.tail = f.spare; f.tail == nil || f.tail.readers.Load() > 0 {
		f.tail = newTail()
	}
	f.spare = nil
	f.tail.reset(t.last)
	f.mu.Unlock()
	f.busy, f.due = true, false
	select {
	case f.tails <- t:
	case <-f.store.dead:
	}
}

// build makes tables of the tails that it gets. In between it closes cursors, so that merged
// tables can be deleted.
func (f *folding) build(over chan struct{}) {
	defer close(over)
	b := builder{store: f.store, width: f.width, ttl: f.ttl}
	for t := range f.tails {
		if t == nil {
			f.store.renew()
			continue
		}
		f.done <- b.attempt(t)
	}
}

// attempt builds, and turns a panic of the engine into an error.
func (b *builder) attempt(t *tail) (out built) {
	defer func() {
		if why := recover(); why != nil {
			out.err = fmt.Errorf("%w: %v", ErrEngine, why)
			b.store.kill(out.err)
		}
	}()
	out.mark, out.err = b.build(t)
	return out
}

// built drops the tail that is now in tables.
func (f *folding) built(b built) error {
	f.busy = false
	if b.err != nil {
		f.store.damaged(b.err)
		return b.err
	}
	f.mu.Lock()
	f.kept = b.mark
	f.spare, f.frozen = f.frozen, nil
	f.tail.last.dropped = b.mark.dropped
	f.mu.Unlock()
	f.ingests.Add(1)
	f.config.Indexed(b.mark.lsn)
	return nil
}

// last writes all rows that are in no table yet.
func (f *folding) last() error {
	for {
		if f.busy {
			select {
			case b := <-f.done:
				if err := f.built(b); err != nil {
					return err
				}
			case <-f.store.dead:
				return *f.store.ill.Load()
			}
		}
		if f.tail.frames == 0 {
			return nil
		}
		f.put()
	}
}

// hold returns the row of a hold, from the draft, the tails or the tables.
func (f *folding) hold(t types.Tenant, id types.TxID) (h hold, err error) {
	key := holdKey(nil, t, id)
	value, ok := f.draft.find(key)
	for _, t := range [...]*tail{f.tail, f.frozen} {
		if t != nil && !ok {
			g := t.glimpse()
			value, ok = g.get(key)
		}
	}
	if !ok {
		if value, ok, err = f.store.get(key); err != nil {
			return hold{}, err
		}
	}
	switch {
	case !ok:
		return hold{}, fmt.Errorf("%w: hold %x was never opened", ErrOrder, id)
	case !h.read(value):
		return hold{}, fmt.Errorf("%w: hold %x", ErrDamaged, id)
	}
	return h, nil
}
