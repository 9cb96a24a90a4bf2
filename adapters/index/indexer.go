// Package index has the views of the journal that are too large for memory: old idempotency keys,
// refs, statements, holds, listings. They are derived from durable frames and can be removed and
// rebuilt at any time.
//
//	durable frames ─Offer─► ring ─► Run: fold ─► tail ─┐ full     ┌─► tail
//	     └── when the ring was full: from the journal ─┘  └─build─► table + mark ─ingest─► tables
//	Key, Ref, Look, Entries, …: the tails, the youngest first, then the tables
//
// A tail is in memory. When it has Frames frames, it is sorted and written as tables that are
// ingested together with the mark: after a crash, either all of them and their mark are there, or
// none. The mark has the journal, the frame and the root up to which the tables are complete. If
// it is not on the chain of the journal, or the tables cannot be read, they are removed and
// rebuilt from the first frame.
//
// The keys of a table are big-endian, so that their bytes order them; d is the 16-byte digest of
// a name, t a tenant of 4 bytes, id a TxID of 16:
//
//	1                          mark        version, width of a bucket, journal, LSN, root, At …
//	2 ^bucket⁷ d t             key         hash, place, At       bucket = At / (TTL/4): removed as one range
//	3 d t                      ref         place
//	4 era⁴ d t d(asset) seq⁸   entry       that sets the balance     era = seq / 2²²
//	5 d t d(asset) seq⁸        entry       that sets the held amount, or freezes
//	6 t seq⁸                   change      place, At
//	7 t account 0 asset        account     –
//	8 t asset                  asset       –
//	9 t id                     hold        opened, until, amount, from, to, asset
//	10 d t id                  holder      –     once with d of the account, once with zeros
//	11 t id                    end         state, place, captured
//	12 d(bucket) t name        object      address, size, ETag, time; empty: removed
//	13 t name 0 implicit¹      bucket      time; empty: removed
//	14 t id¹⁰                  upload      d(bucket), name, time; empty: ended
//	15 t dimension 0 from⁸ seq⁸ slice      LSN, payload
//	16 plane¹ t …              of a View   as the plane writes it; empty: removed
//
// A place is an LSN and an index; its journal follows from the mark. If a key occurs more
// than once, the last value counts.
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

// Why there is no answer, or folding ended.
var (
	ErrShut    error = shut{}                                                          // temporary
	ErrDamaged       = errors.New("index: the index is damaged and will be made anew") // the next Run rebuilds it
	ErrEngine        = errors.New("index: the engine gave up")                         // the next Run opens another engine; the disk is as after a crash
	ErrOrder         = errors.New("index: a frame out of order")                       // an invalid journal
	ErrRunning       = errors.New("index: runs already")
)

// shut means unavailable for now.
type shut struct{}

func (shut) Error() string     { return "index: not running" }
func (shut) Unavailable() bool { return true }

// Limits of Limits.Files.
const (
	MaxFiles = 256
	MinFiles = 74 // the engine keeps 64 tables open, and 10 other files
)

// Limits are the sizes of an index. Zero means the default.
type Limits struct {
	Frames    int           // frames of a tail before it is written: 200,000
	Tail      int64         // bytes of a tail before it is written: 64 MiB
	Keys      int           // idempotency keys and refs of a tail before it is written: 250,000
	Interval  time.Duration // after which a tail of Few frames is written: 1 min
	Few       int           // 1,000
	Ring      int           // offered frames that are not folded: 8,192
	RingBytes int64         // of their bodies: 16 MiB
	Cache     int64         // bytes of cached tables: 64 MiB
	Files     int           // open tables: MaxFiles, at least MinFiles
	Waiters   int           // readers in Await: 256
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
	l.Files = or(l.Files, MaxFiles)
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

const tailOver = 8 << 20 // bytes that a tail takes in excess of its limit: its last frames, and blocks that are not full

const openTable = 16 << 10 // bytes that an open table takes

// Bytes is the largest memory of an index, without engines that have stopped.
func Bytes(l Limits) int64 {
	l = l.withDefaults()
	const (
		drafts = 4 << 20  // the largest frame that is read
		engine = 24 << 20 // a compaction, a table that is written, memory tables
	)
	order := l.Tail / (linkedSize + 16) * orderedSize // no table has more rows
	return 2*(l.Tail+tailOver) + order + order/4 + drafts + l.RingBytes + int64(l.Ring)*sealedSize +
		l.Cache + int64(l.Files)*openTable + engine
}

// A Journal has the frames. Only Run calls its methods.
type Journal interface {
	// Chain returns the journal of a durable frame and the root after it; ok is false if there is
	// no such durable frame.
	Chain(types.LSN) (journal types.JournalID, root types.Root, ok bool, err error)
	// Range yields the durable frames from one on, in order, until the last one or until each
	// returns an error, which Range returns. each copies what it keeps.
	Range(from types.LSN, each func(record.Sealed) error) error
}

// Config has the parameters of an index.
type Config struct {
	Dir     string        // created if missing; used by one index
	TTL     time.Duration // of a key. If it changes, the index is rebuilt
	Limits  Limits
	Journal Journal
	Views   []View          // of planes that this package does not know
	Indexed func(types.LSN) // called with the last frame in tables, from one goroutine. Nil: not called
	Aged    func() bool     // reports whether an evicted key may be within its TTL. Nil: always
	Log     *slog.Logger    // nil: no log
}

// Indexer is the index. Any goroutine may call its methods; Run must not run twice at once.
//
// Invariants:
//
//	X1  the tables have exactly the frames up to their mark
//	X2  the tails have the frames between that mark and theirs
//	X3  the tables' mark ≤ a tail's mark ≤ the last durable frame offered or read
//	X4  there are at most two tails: one grows, one is being written
type Indexer struct {
	config Config
	limits Limits
	fs     vfs.FS
	width  uint64 // of the buckets of keys, in ms
	ttl    uint64
	eras   eras
	ring   *ring

	sick    chan trouble          // errors found outside of the folding, at most one
	damaged atomic.Bool           // the next Run rebuilds the index
	deaths  atomic.Int64          // number of engines that have stopped in this process
	died    atomic.Pointer[error] // why the last of them stopped
	running atomic.Bool
	strikes int           // runs in a row that could not open the tables
	cache   *pebble.Cache // of all engines: a stopped engine does not free its own

	mu     sync.RWMutex
	store  *store // nil: not running
	tail   *tail  // the one that grows; nil: not running
	frozen *tail  // the one that is being written, or nil
	spare  *tail
	kept   mark          // of the tables
	moved  chan struct{} // closed at the next fold, if a reader waits
	waits  int

	ingests, rebuilds atomic.Uint64
}

// trouble is an error found outside of the folding.
type trouble struct{ error }

// New returns an index that is not running: it folds nothing and returns ErrShut.
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

// Offer passes durable frames in order. It never waits; frames without room are read from the
// journal later.
func (x *Indexer) Offer(batch []record.Sealed) { x.ring.offer(batch) }

// Rebuild removes the index and rebuilds it, by ending Run.
func (x *Indexer) Rebuild() { x.suspect(fmt.Errorf("%w: a rebuild was requested", ErrDamaged)) }

// suspect ends Run; after damage, the next Run rebuilds the index.
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

// Mark returns the last folded frame.
func (x *Indexer) Mark() event.Watermark {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if x.tail == nil {
		return event.Watermark{}
	}
	return event.Watermark{LSN: x.tail.last.lsn, At: x.tail.last.at}
}

// Run opens the index and folds until ctx ends. Then it writes all rows that are in no table yet,
// and waits for a running merge; abandoning it is safe, as in a crash. After an error the index
// is down until the supervisor runs it again.
func (x *Indexer) Run(ctx context.Context) error { return x.RunNotify(ctx, func() {}) }

// RunNotify is Run. It calls following once, when the index has read all durable frames and
// follows the offered ones.
func (x *Indexer) RunNotify(ctx context.Context, following func()) error {
	if !x.running.CompareAndSwap(false, true) {
		return ErrRunning
	}
	defer x.running.Store(false)
	if err := x.mayOpen(); err != nil {
		return err
	}
	select {
	case <-x.sick: //nolint:errcheck // of an earlier run
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

// shut rejects further reads, and closes the tables.
func (x *Indexer) shut() error {
	x.mu.Lock()
	s := x.store
	x.spare, x.store, x.tail, x.frozen = x.tail, nil, nil, nil
	x.wake()
	x.mu.Unlock()
	return s.close()
}

// open opens the tables and accepts their mark only if it is on the chain.
func (x *Indexer) open() (*store, mark, error) {
	if err := x.fs.MkdirAll(x.config.Dir, 0o700); err != nil {
		return nil, mark{}, fmt.Errorf("index: make its directory: %w", err)
	}
	if err := syncDir(x.fs, x.fs.PathDir(x.config.Dir)); err != nil { // otherwise all of it can be gone after a crash
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

// well clears the errors of a removed index.
func (x *Indexer) well() {
	x.damaged.Store(false)
	select {
	case <-x.sick: //nolint:errcheck // obsolete
	default:
	}
}

func (x *Indexer) openStore() (*store, error) {
	return openStore(x.fs, x.config.Dir, x.limits, x.cache, x.config.Log, x.suspect)
}

// believe opens the existing tables. doubt is why they must be rebuilt; err is why that cannot be
// decided.
func (x *Indexer) believe() (s *store, m mark, doubt, err error) {
	if s, err = x.openStore(); err != nil {
		// Tables that cannot be opened count as damaged: one may be missing. But if the disk
		// rejects operations, removing them does not help.
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
