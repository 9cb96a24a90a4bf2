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
	tables = "tables" // directory of pebble
	next   = "next"   // tables that are being written

	memtable  = 256 << 10 // unused: nothing is written to it
	blockGoal = 8 << 10
	tableGoal = 16 << 20
	baseGoal  = 256 << 20
)

// A store is the tables on disk. It only ingests whole tables: it has no log and no memory table.
type store struct {
	db    *pebble.DB
	opts  *pebble.Options
	fence *fence
	fs    vfs.FS // behind the fence
	dir   string

	merges merges
	ill    atomic.Pointer[error] // why nothing more may be ingested
	dead   chan struct{}         // closed: the engine has stopped
	last   sync.Once
	sick   func(error) // called once

	life   sync.RWMutex // held by readers while they read
	count  atomic.Int64 // number of tables after the last ingest
	onDisk atomic.Uint64

	age  atomic.Uint64 // number of ingests
	mu   sync.Mutex
	idle []cursor
}

// openStore opens or creates the tables in dir. sick gets errors that the engine finds by itself.
// cache may be shared with stopped engines; nil: the engine creates its own.
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

// open opens the engine. It turns a panic of the engine into an error, and does not wait for an
// engine that stops.
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

// An errand is a call of the engine, which may stop meanwhile.
type errand struct {
	do   func() error
	dead <-chan struct{} // closed: the engine has stopped
}

// errDead reports that the engine has stopped.
var errDead = errors.New("index: the engine has stopped")

// Run makes the call. If the engine stops, or ctx ends, the call is abandoned.
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

// ask makes a call, until it returns or the engine stops.
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
		FormatMajorVersion:    pebble.FormatValueSeparation, // fixed: a later engine may use a newer format
		MaxManifestFileSize:   1 << 20,
		L0CompactionThreshold: 4, L0StopWritesThreshold: 1 << 20, LBaseMaxBytes: baseGoal,
		CompactionConcurrencyRange: func() (int, int) { return 1, 1 },
		Logger:                     engineLog{log, s.die},
		EventListener: &pebble.EventListener{
			BackgroundError: func(err error) { log.Debug("index: engine", "err", err) },
			DataCorruption:  func(c pebble.DataCorruptionInfo) { s.fail(fmt.Errorf("%w: %s: %w", ErrDamaged, c.Path, c.Details)) },
			DiskSlow:        func(pebble.DiskSlowInfo) {},
		},
	}
	// With one merge at a time, the engine need not poll every 100 ms for more merges. The
	// polling goroutine would leak if the tables cannot be opened.
	s.merges.CompactionScheduler = pebble.NewConcurrencyLimitSchedulerWithNoPeriodicGrantingForTest()
	o.Experimental.CompactionScheduler = &s.merges
	o.Experimental.ReadSamplingMultiplier = -1
	o.Experimental.DisableIngestAsFlushable = func() bool { return true } // a flush would make it durable later
	for i := range o.Levels {
		o.Levels[i] = pebble.LevelOptions{BlockSize: blockGoal, FilterPolicy: bloom.FilterPolicy(10),
			Compression: func() *sstable.CompressionProfile { return sstable.FastestCompression }}
		o.TargetFileSizes[i] = tableGoal
	}
	o.EnsureDefaults()
	return o
}

// fail stores the first permanent error: from then on nothing is ingested.
func (s *store) fail(err error) {
	if s.ill.CompareAndSwap(nil, &err) {
		s.sick(err)
	}
}

// die is called by the engine when it wants to end the process, because it no longer knows what
// is on disk. The engine holds its locks, and its next steps would be undefined, so die does not
// return. Goroutines that wait for these locks stay blocked too.
func (s *store) die(err error) {
	s.kill(err)
	block()
}

// kill records that the engine has stopped. The disk is as after a crash.
func (s *store) kill(err error) {
	s.last.Do(func() {
		s.merges.on.Store(false) // a failing merge is retried at once
		s.ill.CompareAndSwap(nil, &err)
		s.sick(err) // before Run can end: the next run must not get the error of this engine
		close(s.dead)
	})
}

// block never returns.
func block() { select {} }

// gone reports whether the engine has stopped. If so, its locks must not be taken.
func (s *store) gone() bool {
	select {
	case <-s.dead:
		return true
	default:
		return false
	}
}

// known marks an error as damaged data.
func known(err error) error {
	if err != nil && pebble.IsCorruptionError(err) && !errors.Is(err, ErrDamaged) {
		err = fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return err
}

// A cursor reads the tables as they were when it was made. Making one is expensive, so it is
// reused until the tables change.
type cursor struct {
	*pebble.Iterator
	age uint64
}

const spares = 16 // most idle cursors

// lend returns a cursor over all ingested tables.
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

// back returns a cursor, and the error of its reading.
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

// end closes a cursor. Its error was already returned to the reader.
func (s *store) end(c cursor) {
	if !s.gone() {
		_ = c.Close()
	}
}

// renew closes idle cursors: they keep merged tables on disk.
func (s *store) renew() {
	s.age.Add(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.idle {
		s.end(c)
	}
	s.idle = s.idle[:0]
}

// get appends a value to to. A cursor drops its error when it is moved, so the error is checked
// each time.
func (c cursor) get(to, key []byte) (value []byte, ok bool, err error) {
	if !c.SeekPrefixGE(key) {
		return to, false, broken(c.Error())
	}
	v, err := c.ValueAndErr()
	return append(to, v...), err == nil, broken(err)
}

// broken classifies an error of reading.
func broken(err error) error {
	if err == nil {
		return nil
	}
	return known(fmt.Errorf("index: read a table: %w", err))
}

// get returns a value.
func (s *store) get(key []byte) (value []byte, ok bool, err error) {
	c, err := s.lend()
	if err != nil {
		return nil, false, err
	}
	value, ok, err = c.get(nil, key)
	s.damaged(err)
	return value, ok, errors.Join(err, s.back(c))
}

// empty returns why tables without a mark must be rebuilt; nil if there are no tables.
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

// damaged reports damage found by a reader to the folding.
func (s *store) damaged(err error) {
	if errors.Is(err, ErrDamaged) {
		s.fail(err)
	}
}

// ingest adds written and synced tables to the index, all of them or none, even after a crash.
func (s *store) ingest(paths []string) error {
	if ill := s.ill.Load(); ill != nil {
		return *ill
	}
	// If the engine stops meanwhile, it must not keep the tail of these tables.
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

// measure updates the disk usage. Readers do not call it, because it takes the engine's lock.
func (s *store) measure() {
	m := s.db.Metrics()
	s.count.Store(m.Total().TablesCount)
	s.onDisk.Store(m.DiskSpaceUsage())
}

// close waits for readers, and closes the engine. A stopped engine is abandoned behind its fence.
// After close, another engine can open the tables.
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

// wipe removes all tables durably.
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

// engineLog is the logger of the engine.
type engineLog struct {
	log *slog.Logger
	die func(error)
}

func (s engineLog) Infof(format string, args ...any) {
	if s.log.Enabled(context.Background(), slog.LevelDebug) {
		s.log.Debug("index: engine", "message", fmt.Sprintf(format, args...))
	}
}

func (s engineLog) Errorf(format string, args ...any) { s.Infof(format, args...) }

func (s engineLog) Fatalf(format string, args ...any) {
	s.die(fmt.Errorf("%w: %s", ErrEngine, fmt.Sprintf(format, args...)))
}
