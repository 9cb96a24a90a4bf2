// Package index keeps the views of the journal that take no part in deciding but may
// be asked by it: old idempotency keys, refs, statements, holds, listings. All of it is
// derived from durable frames alone, and may be thrown away at any time.
//
//	durable frames ─Offer─► ring ─► Run: fold ─► tail ─┐ full     ┌─► tail
//	     └── when the ring was full: from the journal ─┘  └─build─► table + mark ─ingest─► tables
//	Key, Ref, Look, Entries, …: the tails, the youngest first, then the tables
//
// A tail is memory. When it has Frames frames it is sorted and written as tables that
// are ingested at once, the mark among them: after a crash either all of them are there
// with their mark, or none is. The mark says behind which frame of which journal, and
// with which chain's value, the tables stand. Where it does not lie on the chain, or the
// tables cannot be read, they are removed and made again from the first frame.
//
// The keys of a table, big-endian, so that bytes order them; d is the 16-byte digest of
// a name, t a tenant of 4 bytes, id a TxID of 16:
//
//	1                          mark        version, width of a bucket, journal, LSN, root, At …
//	2 ^bucket⁷ d t             key         asked, place, At      bucket = At / (TTL/4): gone as one range
//	3 d t                      ref         place
//	4 era⁴ d t d(asset) seq⁸   entry       that sets the balance     era = seq / 2²²
//	5 d t d(asset) seq⁸        entry       that sets what is held, or freezes
//	6 t seq⁸                   change      place, At
//	7 t account 0 asset        account     –
//	8 t asset                  asset       –
//	9 t id                     hold        opened, until, amount, from, to, asset
//	10 d t id                  holder      –     once with d of the account, once with zeros
//	11 t id                    end         state, place, captured
//
// A place is an LSN and an index; its journal follows from the mark. A key that comes
// again has the value that came last.
package index

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/types"
)

// Why there is no answer, or no more folding.
var (
	ErrShut    error = shut{}                                                          // come back
	ErrDamaged       = errors.New("index: the index is damaged and will be made anew") // the next Run does
	ErrEngine        = errors.New("index: the engine gave up")                         // the next Run opens another; what is on disk is as after a crash
	ErrOrder         = errors.New("index: a frame out of order")                       // the journal's mistake
	ErrRunning       = errors.New("index: runs already")
)

// shut is unavailable, not wrong: an index that is away comes back.
type shut struct{}

func (shut) Error() string     { return "index: not running" }
func (shut) Unavailable() bool { return true }

// Limits are how much the index takes. The zero value of each means its default.
type Limits struct {
	Frames    int           // of a tail, before it is written as tables: 200,000
	Tail      int64         // bytes of a tail, before that: 64 MiB
	Keys      int           // idempotency keys and refs of a tail, before that: 250,000
	Interval  time.Duration // after which a tail of Few frames is written: 1 min
	Few       int           // 1,000
	Ring      int           // frames that are handed over and not folded: 8,192
	RingBytes int64         // of their bodies: 16 MiB
	Cache     int64         // bytes of tables in memory: 64 MiB
	Files     int           // open ones: 256
	Waiters   int           // of Await: 256
	Page      int           // rows of one answer: 1,000
}

func (l Limits) withDefaults() Limits {
	l.Frames = or(l.Frames, 200_000)
	l.Tail = or(l.Tail, 64<<20)
	l.Keys = or(l.Keys, 250_000)
	l.Interval = or(l.Interval, time.Minute)
	l.Few = or(l.Few, 1000)
	l.Ring = or(l.Ring, 8192)
	l.RingBytes = or(l.RingBytes, 16<<20)
	l.Cache = or(l.Cache, 64<<20)
	l.Files = or(l.Files, 256)
	l.Waiters = or(l.Waiters, 256)
	l.Page = or(l.Page, 1000)
	return l
}

func or[T comparable](v, otherwise T) T {
	var none T
	if v == none {
		return otherwise
	}
	return v
}

const tailOver = 8 << 20 // bytes that a tail takes beyond its limit: its last frames, and blocks that are not full

// Bytes is the memory that an index takes at most.
func Bytes(l Limits) int64 {
	l = l.withDefaults()
	const (
		drafts = 4 << 20  // the largest frame that is being read
		engine = 24 << 20 // a compaction, a table that is written, memory tables
		file   = 16 << 10 // an open table
	)
	order := l.Tail / (linkedSize + 16) * orderedSize // no table has more rows
	return 2*(l.Tail+tailOver) + order + order/4 + drafts + l.RingBytes + int64(l.Ring)*sealedSize +
		l.Cache + int64(l.Files)*file + engine
}

// A Journal has the frames. Its methods are called by Run alone.
type Journal interface {
	// Chain is which journal a durable frame is of, and the chain's value behind it; ok
	// is false where there is no such durable frame.
	Chain(types.LSN) (journal types.JournalID, root types.Root, ok bool, err error)
	// Range yields the durable frames from one on, in order, until there are no more or
	// each returns an error, which it returns as well. Each copies what it keeps.
	Range(from types.LSN, each func(record.Sealed) error) error
}

// Config is what an index is made of.
type Config struct {
	Dir     string        // its own; it is made if it is not there
	TTL     time.Duration // of a key. Another one than before makes the index anew
	Limits  Limits
	Journal Journal
	Indexed func(types.LSN) // is told how far the tables have come, by one goroutine. Nil: nobody is
	Aged    func() bool     // a forgotten key may be in its time. Nil: so it is
	Log     *slog.Logger    // nil: nowhere
}

// Indexer is the index. Its methods may be called by any goroutine, but Run once at a
// time.
//
// Invariants:
//
//	X1  the tables have all of the frames up to their mark, and nothing else
//	X2  the tails have all of the frames between that mark and theirs
//	X3  tables' mark ≤ a tail's mark ≤ what was handed over or read: durable frames
//	X4  at most two tails: one grows, one is being written
type Indexer struct {
	config Config
	limits Limits
	fs     vfs.FS
	width  uint64 // of the buckets of keys, in ms
	ttl    uint64
	eras   eras
	ring   *ring

	sick    chan trouble          // what was found wrong beside the folding, one at most
	damaged atomic.Bool           // the next Run makes the index anew
	deaths  atomic.Int64          // engines that have stopped, in this process
	died    atomic.Pointer[error] // why the last of them did
	running atomic.Bool
	strikes int           // runs in a row that could not open the tables
	cache   *pebble.Cache // of all engines: one that has stopped does not give its own back

	mu     sync.RWMutex
	store  *store // nil: not running
	tail   *tail  // that grows; nil: not running
	frozen *tail  // that is being written, or nil
	spare  *tail
	kept   mark          // of the tables
	moved  chan struct{} // closed at the next fold, when somebody waits for it
	waits  int

	ingests, rebuilds atomic.Uint64
}

// trouble is what was found wrong beside the folding.
type trouble struct{ error }

// New is an index that is not running: it folds nothing and answers ErrShut.
func New(c Config) *Indexer {
	types.Assert(c.TTL >= time.Second, "index: keys without time")
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Indexed == nil {
		c.Indexed = func(types.LSN) {}
	}
	if c.Aged == nil {
		c.Aged = func() bool { return true }
	}
	l := c.Limits.withDefaults()
	ttl := uint64(c.TTL / time.Millisecond)
	return &Indexer{config: c, limits: l, fs: vfs.Default, ttl: ttl, width: (ttl + 3) / 4, eras: eraBits,
		ring: newRing(l.Ring, int(l.RingBytes)), sick: make(chan trouble, 1)}
}

// Offer hands over frames that are durable, in order. It never waits; what there is no
// room for is read from the journal later.
func (x *Indexer) Offer(batch []record.Sealed) { x.ring.offer(batch) }

// Rebuild throws the index away and makes it anew, by way of an end of Run.
func (x *Indexer) Rebuild() { x.suspect(fmt.Errorf("%w: it was asked for", ErrDamaged)) }

// suspect ends Run, and for damage has the next one begin anew.
func (x *Indexer) suspect(err error) {
	switch {
	case errors.Is(err, ErrEngine):
		x.died.Store(&err)
		x.deaths.Add(1)
	case errors.Is(err, ErrDamaged):
		x.damaged.Store(true)
	}
	select {
	case x.sick <- trouble{err}:
	default:
	}
}

// Mark is how far the index has come.
func (x *Indexer) Mark() event.Watermark {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if x.tail == nil {
		return event.Watermark{}
	}
	return event.Watermark{LSN: x.tail.last.lsn, At: x.tail.last.at}
}

// Run opens the index and folds until ctx ends, and then writes what no table has yet and
// waits for a merge of tables that is under way: who cannot wait may leave it, as in a
// crash. An error means that the index stands still: the supervisor runs it again.
func (x *Indexer) Run(ctx context.Context) error { return x.RunNotify(ctx, func() {}) }

// RunNotify is Run. It calls following once: when the index has read all that is durable,
// and from then on follows the frames that are offered.
func (x *Indexer) RunNotify(ctx context.Context, following func()) error {
	if !x.running.CompareAndSwap(false, true) {
		return ErrRunning
	}
	defer x.running.Store(false)
	if err := x.mayOpen(); err != nil {
		return err
	}
	select {
	case <-x.sick: //nolint:errcheck // of a run before, which is over
	default:
	}
	defer x.keepCache()()
	s, m, err := x.open()
	if err != nil {
		return err
	}
	x.begin(s, m)
	f := newFolding(x, s, m, following)
	err = f.run(ctx)
	return errors.Join(err, x.shut())
}

func (x *Indexer) begin(s *store, m mark) {
	x.mu.Lock()
	x.store = s
	if x.tail = x.spare; x.tail == nil || x.tail.readers.Load() > 0 {
		x.tail = newTail()
	}
	x.spare, x.frozen, x.kept = nil, nil, m
	x.tail.reset(m)
	x.mu.Unlock()
	x.config.Indexed(m.lsn)
}

// shut lets nobody read any more, and closes the tables.
func (x *Indexer) shut() error {
	x.mu.Lock()
	s := x.store
	x.spare, x.store, x.tail, x.frozen = x.tail, nil, nil, nil
	x.wake()
	x.mu.Unlock()
	return s.close()
}

// open opens the tables and believes their mark only where it lies on the chain.
func (x *Indexer) open() (*store, mark, error) {
	if err := x.fs.MkdirAll(x.config.Dir, 0o700); err != nil {
		return nil, mark{}, fmt.Errorf("index: make its directory: %w", err)
	}
	if err := syncDir(x.fs, x.fs.PathDir(x.config.Dir)); err != nil { // or all of it is gone after a crash
		return nil, mark{}, err
	}
	why := ErrDamaged
	if !x.damaged.Load() {
		s, m, doubt, err := x.believe()
		if doubt == nil || err != nil {
			return s, m, err
		}
		why = doubt
	}
	x.config.Log.Warn("index rebuild started", "reason", why)
	x.rebuilds.Add(1)
	if err := wipe(x.fs, x.config.Dir); err != nil {
		return nil, mark{}, err
	}
	x.well()
	s, err := x.openStore()
	return s, mark{}, err
}

// well forgets what was wrong with an index that is no more.
func (x *Indexer) well() {
	x.damaged.Store(false)
	select {
	case <-x.sick: //nolint:errcheck // it is over
	default:
	}
}

func (x *Indexer) openStore() (*store, error) {
	return openStore(x.fs, x.config.Dir, x.limits, x.cache, x.config.Log, x.suspect)
}

// believe opens what is there: doubt says why it must be made anew, err why nothing can
// be said.
func (x *Indexer) believe() (s *store, m mark, doubt, err error) {
	if s, err = x.openStore(); err != nil {
		// What cannot be opened twice is as bad as damaged: a table may be missing. But
		// where the disk refuses, throwing away does not help.
		if errno := syscall.Errno(0); errors.As(err, &errno) && errno != syscall.ENOENT || errors.Is(err, ErrEngine) {
			return nil, mark{}, nil, err
		}
		if x.strikes++; x.strikes > 1 || errors.Is(err, ErrDamaged) {
			return nil, mark{}, err, nil
		}
		return nil, mark{}, nil, err
	}
	x.strikes = 0
	doubt, err = x.check(s, &m)
	if doubt == nil && err == nil {
		return s, m, nil, nil
	}
	return nil, mark{}, doubt, errors.Join(err, s.close())
}

func (x *Indexer) check(s *store, m *mark) (doubt, err error) {
	b, ok, err := s.get(markKey(nil))
	switch {
	case errors.Is(err, ErrDamaged):
		return err, nil
	case err != nil:
		return nil, err
	case !ok:
		return s.empty()
	case !m.read(b, x.width):
		return errors.New("its mark is not of this version and time of keys"), nil
	}
	journal, root, ok, err := x.config.Journal.Chain(m.lsn)
	switch {
	case err != nil:
		return nil, fmt.Errorf("index: find frame %v in the journal: %w", m.lsn, err)
	case !ok:
		return fmt.Errorf("its mark is %v, which the journal has not", m.lsn), nil
	case journal != m.journal || root != m.root:
		return fmt.Errorf("its mark is %v of another journal", m.lsn), nil
	}
	return nil, nil
}
