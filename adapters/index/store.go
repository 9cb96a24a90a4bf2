package index

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"
)

const (
	tables = "tables" // pebble's
	next   = "next"   // those that are being written

	memtable  = 256 << 10 // nothing is written to it
	blockGoal = 8 << 10
	tableGoal = 16 << 20
	baseGoal  = 256 << 20
)

// A store is the tables on disk. It writes nothing but whole tables that are ingested:
// no log, no memory table.
type store struct {
	db    *pebble.DB
	opts  *pebble.Options
	fence *fence
	fs    vfs.FS // behind the fence
	dir   string

	merges merges
	ill    atomic.Pointer[error] // why nothing more may be ingested
	dead   chan struct{}         // closed: the engine has stopped for good
	last   sync.Once
	sick   func(error) // told once

	life   sync.RWMutex // held by readers as long as they read
	count  atomic.Int64 // tables that there were when one was last ingested
	onDisk atomic.Uint64

	age  atomic.Uint64 // tables have been added so many times
	mu   sync.Mutex
	idle []cursor
}

// openStore opens the tables below dir, or begins them. Sick hears of what the engine
// finds wrong by itself. Cache may be shared with engines that have stopped; nil: the engine
// makes its own.
func openStore(fs vfs.FS, dir string, l Limits, cache *pebble.Cache, log *slog.Logger, sick func(error)) (*store, error) {
	s := &store{fence: newFence(), dir: dir, sick: sick, dead: make(chan struct{})}
	s.fs = &fencedFS{FS: fs, fence: s.fence, late: func() {}, die: func(error) {}}
	if err := fs.RemoveAll(fs.PathJoin(dir, next)); err != nil {
		return nil, fmt.Errorf("index: remove unfinished tables: %w", err)
	}
	if err := fs.MkdirAll(fs.PathJoin(dir, next), 0o700); err != nil {
		return nil, fmt.Errorf("index: make a directory: %w", err)
	}
	s.opts = s.options(&fencedFS{FS: fs, fence: s.fence, late: block, die: s.die}, l, log)
	s.opts.Cache = cache
	if err := s.open(); err != nil {
		s.fence.end()
		return nil, known(fmt.Errorf("index: open the tables: %w", err))
	}
	return s, nil
}

// open does not panic where the engine does, and does not wait where it stops for good.
func (s *store) open() error {
	return s.ask(func() error {
		db, err := pebble.Open(s.fs.PathJoin(s.dir, tables), s.opts)
		if s.db = db; err == nil {
			s.merges.on.Store(true)
			s.measure()
		}
		return err
	})
}

// An errand is what the engine is asked, which may stop for good meanwhile.
type errand struct {
	do   func() error
	dead <-chan struct{} // closed: it never comes back
}

// errDead says that the engine has stopped.
var errDead = errors.New("index: the engine has stopped")

// Run does it. Where the engine stops, or ctx ends, it is left.
func (e errand) Run(ctx context.Context) error {
	done := make(chan error, 1)
	go func() {
		defer func() {
			if why := recover(); why != nil {
				done <- fmt.Errorf("it panics: %v", why)
			}
		}()
		done <- e.do()
	}()
	select {
	case err := <-done:
		return err
	case <-e.dead:
		return errDead
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// ask runs an errand to its end, or to the engine's.
func (s *store) ask(do func() error) error {
	if s.gone() {
		return *s.ill.Load()
	}
	err := errand{do, s.dead}.Run(context.Background())
	if errors.Is(err, errDead) {
		return *s.ill.Load()
	}
	return err
}

func (s *store) options(fs vfs.FS, l Limits, log *slog.Logger) *pebble.Options {
	o := &pebble.Options{
		FS: fs, DisableWAL: true, CacheSize: l.Cache, MaxOpenFiles: l.Files,
		MemTableSize: memtable, MemTableStopWritesThreshold: 2,
		FormatMajorVersion:    pebble.FormatValueSeparation, // named: a later engine goes on with it
		MaxManifestFileSize:   1 << 20,
		L0CompactionThreshold: 4, L0StopWritesThreshold: 1 << 20, LBaseMaxBytes: baseGoal,
		CompactionConcurrencyRange: func() (int, int) { return 1, 1 },
		Logger:                     said{log, s.die},
		EventListener: &pebble.EventListener{
			BackgroundError: func(err error) { log.Debug("index: engine", "err", err) },
			DataCorruption:  func(c pebble.DataCorruptionInfo) { s.fail(fmt.Errorf("%w: %s: %w", ErrDamaged, c.Path, c.Details)) },
			DiskSlow:        func(pebble.DiskSlowInfo) {},
		},
	}
	// With one merge at a time nobody need look every 100 ms whether there may be more, and
	// the goroutine that would is left behind where the tables cannot be opened.
	s.merges.CompactionScheduler = pebble.NewConcurrencyLimitSchedulerWithNoPeriodicGrantingForTest()
	o.Experimental.CompactionScheduler = &s.merges
	o.Experimental.ReadSamplingMultiplier = -1
	o.Experimental.DisableIngestAsFlushable = func() bool { return true } // that would be durable later
	for i := range o.Levels {
		o.Levels[i] = pebble.LevelOptions{BlockSize: blockGoal, FilterPolicy: bloom.FilterPolicy(10),
			Compression: func() *sstable.CompressionProfile { return sstable.FastestCompression }}
		o.TargetFileSizes[i] = tableGoal
	}
	o.EnsureDefaults()
	return o
}

// fail keeps the first thing that went wrong beyond repair: from then on nothing is
// ingested.
func (s *store) fail(err error) {
	if s.ill.CompareAndSwap(nil, &err) {
		s.sick(err)
	}
}

// die is called by the engine when it wants the process to end, because it no longer
// knows what is on disk. The engine holds its locks, and what it would do next is undefined,
// so die does not return. Other goroutines that wait for these locks stay blocked as well.
func (s *store) die(err error) {
	s.kill(err)
	block()
}

// kill notes that the engine has stopped. What is on disk is as after a crash.
func (s *store) kill(err error) {
	s.last.Do(func() {
		s.merges.on.Store(false) // a merge that fails is tried again at once
		s.ill.CompareAndSwap(nil, &err)
		s.sick(err) // before Run can end: the next one must not hear of this engine
		close(s.dead)
	})
}

// block does not return.
func block() { select {} }

// gone reports that the engine has stopped for good: nobody may want its locks.
func (s *store) gone() bool {
	select {
	case <-s.dead:
		return true
	default:
		return false
	}
}

// known marks an error of damaged data as ours.
func known(err error) error {
	if err != nil && pebble.IsCorruptionError(err) && !errors.Is(err, ErrDamaged) {
		err = fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return err
}

// A cursor reads the tables as they were when it was made. Making one is dear, so it is
// given back and lent again until there are other tables.
type cursor struct {
	*pebble.Iterator
	age uint64
}

const spares = 16 // cursors that nobody has

// lend is a cursor over all that was ingested.
func (s *store) lend() (cursor, error) {
	age := s.age.Load()
	s.mu.Lock()
	for len(s.idle) > 0 {
		c := s.idle[len(s.idle)-1]
		s.idle = s.idle[:len(s.idle)-1]
		if c.age == age {
			s.mu.Unlock()
			return c, nil
		}
		s.end(c)
	}
	s.mu.Unlock()
	it, err := s.db.NewIter(&pebble.IterOptions{UseL6Filters: true})
	if err != nil {
		return cursor{}, broken(err)
	}
	return cursor{it, age}, nil
}

// back takes a cursor, and says what was wrong with its reading.
func (s *store) back(c cursor) error {
	err := broken(c.Error())
	if err == nil {
		s.mu.Lock()
		if len(s.idle) < spares && c.age == s.age.Load() {
			s.idle = append(s.idle, c)
			s.mu.Unlock()
			return nil
		}
		s.mu.Unlock()
	}
	if !s.gone() {
		err = errors.Join(err, broken(c.Close()))
	}
	s.damaged(err)
	return err
}

// end closes a cursor of which what was wrong was told to who read.
func (s *store) end(c cursor) {
	if !s.gone() {
		_ = c.Close()
	}
}

// renew closes the cursors that nobody has: they hold tables that were merged since.
func (s *store) renew() {
	s.age.Add(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.idle {
		s.end(c)
	}
	s.idle = s.idle[:0]
}

// get copies a value to the end of to. The cursor forgets what was wrong when it is
// moved again, so it is asked each time.
func (c cursor) get(to, key []byte) (value []byte, ok bool, err error) {
	if !c.SeekPrefixGE(key) {
		return to, false, broken(c.Error())
	}
	v, err := c.ValueAndErr()
	return append(to, v...), err == nil, broken(err)
}

// broken is an error of reading.
func broken(err error) error {
	if err == nil {
		return nil
	}
	return known(fmt.Errorf("index: read a table: %w", err))
}

// get is one value.
func (s *store) get(key []byte) (value []byte, ok bool, err error) {
	c, err := s.lend()
	if err != nil {
		return nil, false, err
	}
	value, ok, err = c.get(nil, key)
	s.damaged(err)
	return value, ok, errors.Join(err, s.back(c))
}

// empty says why tables without a mark are no beginning, unless there are none.
func (s *store) empty() (doubt, err error) {
	c, err := s.lend()
	if err != nil {
		return nil, err
	}
	if c.First() {
		doubt = errors.New("its tables have no mark")
	}
	return doubt, errors.Join(broken(c.Error()), s.back(c))
}

// damaged makes damage that a reader found known to who folds.
func (s *store) damaged(err error) {
	if errors.Is(err, ErrDamaged) {
		s.fail(err)
	}
}

// ingest makes tables that were written and synced part of the index, all of them or
// none, also after a crash.
func (s *store) ingest(paths []string) error {
	if ill := s.ill.Load(); ill != nil {
		return *ill
	}
	// Where the engine stops meanwhile, the tail of these tables must not be kept by it.
	if err := s.ask(func() error { return s.db.Ingest(context.Background(), paths) }); err != nil {
		return known(fmt.Errorf("index: ingest: %w", err))
	}
	s.renew()
	s.measure()
	if ill := s.ill.Load(); ill != nil {
		return *ill
	}
	return nil
}

// measure looks how much there is on disk: not for who asks, because it wants the
// engine's lock.
func (s *store) measure() {
	m := s.db.Metrics()
	s.count.Store(m.Total().TablesCount)
	s.onDisk.Store(m.DiskSpaceUsage())
}

// close waits for those who read, and ends the engine. One that has stopped is left behind
// its fence. After close, another engine can open the tables.
func (s *store) close() error {
	defer s.fence.end()
	return s.ask(func() error {
		s.life.Lock()
		defer s.life.Unlock()
		s.renew()
		if err := s.db.Close(); err != nil {
			return fmt.Errorf("index: close the tables: %w", err)
		}
		return nil
	})
}

// wipe takes all tables away, and makes sure that a crash does not bring them back.
func wipe(fs vfs.FS, dir string) error {
	for _, name := range [...]string{next, tables} {
		if err := fs.RemoveAll(fs.PathJoin(dir, name)); err != nil {
			return fmt.Errorf("index: remove the tables: %w", err)
		}
	}
	return syncDir(fs, dir)
}

func syncDir(fs vfs.FS, dir string) error {
	d, err := fs.OpenDir(dir)
	if err != nil {
		return fmt.Errorf("index: open a directory: %w", err)
	}
	if err := errors.Join(d.Sync(), d.Close()); err != nil {
		return fmt.Errorf("index: sync a directory: %w", err)
	}
	return nil
}

// said is where the engine's words go.
type said struct {
	log *slog.Logger
	die func(error)
}

func (s said) Infof(format string, args ...any) {
	if s.log.Enabled(context.Background(), slog.LevelDebug) {
		s.log.Debug("index: engine", "says", fmt.Sprintf(format, args...))
	}
}

func (s said) Errorf(format string, args ...any) { s.Infof(format, args...) }

func (s said) Fatalf(format string, args ...any) {
	s.die(fmt.Errorf("%w: %s", ErrEngine, fmt.Sprintf(format, args...)))
}
