package index_test

import (
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"macronode/adapters/index"
	"macronode/core/types"
)

// A hook is called for every operation that changes the disk, numbered from 1.
type hook struct {
	mu sync.Mutex
	n  int
	at func(n int, op errorfs.Op) error
}

func (h *hook) MaybeError(op errorfs.Op) error {
	if op.Kind.ReadOrWrite() == errorfs.OpIsRead {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.n++
	return h.at(h.n, op)
}

func (h *hook) String() string { return "hook" }

// A powered disk can lose its power during operations. Pebble's Link takes two locks that a clone
// needs too; a clone between the two would deadlock.
type powered struct {
	*vfs.MemFS
	links sync.RWMutex // excludes clones during Link
}

func (d *powered) Link(from, to string) error {
	d.links.RLock()
	defer d.links.RUnlock()
	return d.MemFS.Link(from, to)
}

func (d *powered) CrashClone(how vfs.CrashCloneCfg) *vfs.MemFS {
	d.links.Lock()
	defer d.links.Unlock()
	return d.MemFS.CrashClone(how)
}

// TestCrashAtAnyOperation cuts the power before an operation on the disk, each time another one.
// The index agrees with the model at the mark with which it restarts, and after it has caught up.
// Tables that it reported as kept are still there. If only some unsynced names of a directory
// survive, the index may be rebuilt, because the engine creates two of them in a row.
func TestCrashAtAnyOperation(t *testing.T) {
	ops := 1000
	for n := 1; n <= ops; n += 7 * slow {
		w := newWorld(diced(uint64(n)))
		w.frames(40)
		crashed, kept, total := crash(t, w, n)
		ops = total
		if crashed == nil {
			continue
		}
		d := newDesk(t, w, crashed, small(w.pick))
		for d.start(); n%3 == 1 && len(d.done) > 0; d.start() {
			if err := d.ends(); err == nil {
				t.Fatalf("operation %d: it ends by itself", n)
			}
			kept = 0
		}
		if m := d.x.Mark(); uint64(m.LSN) < kept || m.LSN > 40 {
			t.Fatalf("operation %d: it restarts at %v, but had reported %v", n, m, kept)
		}
		same(t, w, d.x)
		d.open().comes()
		same(t, w, d.x)
		if err := d.ends(); err != nil {
			t.Fatalf("operation %d: it ends with %v", n, err)
		}
	}
	if ops < 100 {
		t.Errorf("a run has %d operations on the disk: that is too few to tell", ops)
	}
}

// crash runs an index over w, and returns the disk as it is after a power loss before the n-th
// operation.
func crash(t tb, w *world, n int) (crashed *vfs.MemFS, kept uint64, ops int) {
	t.Helper()
	mem := &powered{MemFS: vfs.NewCrashableMem()}
	d := &desk{}
	h := &hook{at: func(at int, _ errorfs.Op) error {
		if at == n {
			kept = d.kept.Load()
			crashed = mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: []int{0, 50, 100}[n%3], RNG: rand.New(rand.NewPCG(uint64(n), 1))})
		}
		return nil
	}}
	d = newDesk(t, w, errorfs.Wrap(mem, h), small(w.pick)).open()
	for range 3 {
		d.start()
		d.comes()
		if err := d.ends(); err != nil {
			t.Fatalf("it ends with %v", err)
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return crashed, kept, h.n
}

// alone reports whether this process is a child that runs one test, because an engine that stops
// leaves goroutines behind.
func alone() bool { return os.Getenv("INDEXER_ALONE") != "" }

// inChild runs a test in its own process.
func inChild(t *testing.T) {
	t.Helper()
	c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.count=1", "-test.timeout=3m")
	c.Env = append(os.Environ(), "INDEXER_ALONE=1")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("the process ends with %v\n%s", err, out)
	}
}

// TestDiskFaults makes the disk reject operations for a while. The index may stop, but never ends
// the process; afterwards it agrees with the model, even if the engine stopped.
func TestDiskFaults(t *testing.T) {
	if !alone() {
		inChild(t)
		return
	}
	ops, ended, gaveUp := 1000, 0, 0
	failsFrom := func(n int) {
		w := newWorld(diced(uint64(n)))
		w.frames(40)
		last := n + w.pick(2)*w.pick(40)
		var well atomic.Bool
		h := &hook{at: func(at int, _ errorfs.Op) error {
			if n <= at && at <= last && !well.Load() {
				return errorfs.ErrInjected
			}
			return nil
		}}
		mem := vfs.NewCrashableMem()
		d := newDesk(t, w, errorfs.Wrap(mem, h), small(w.pick)).open()
		run := func() error {
			d.start()
			err := d.come()
			if err == nil {
				err = d.ends()
			}
			if errors.Is(err, index.ErrEngine) {
				gaveUp++
			}
			return err
		}
		for err := run(); err != nil; err = run() {
			if ended++; errors.Is(err, index.ErrOrder) {
				t.Fatalf("operation %d: %v", n, err)
			}
		}
		well.Store(true)
		if d.kept.Load() != 40 {
			t.Fatalf("operations %d to %d failed: the tables have come to %d of 40", n, last, d.kept.Load())
		}
		d.start()
		if m := d.x.Mark(); m.LSN != types.LSN(40) {
			t.Fatalf("operation %d: it comes back at %v", n, m)
		}
		same(t, w, d.x)
		if err := d.ends(); err != nil {
			t.Fatalf("operation %d: it ends with %v", n, err)
		}
		h.mu.Lock()
		ops = h.n
		h.mu.Unlock()
	}
	// A sample of first operations, then others until the engine has stopped once: which
	// operation stops it depends on the order of its goroutines.
	for first := 1; first <= 7*slow && (first == 1 || gaveUp == 0); first++ {
		for n := first; n <= ops; n += 7 * slow {
			failsFrom(n)
		}
	}
	if ended == 0 || gaveUp == 0 {
		t.Errorf("faults have ended it %d times, the engine %d times", ended, gaveUp)
	}
	t.Logf("%d ends, %d of them of the engine", ended, gaveUp)
}

// engineStoppers are failures that stop the engine: it no longer knows which tables are on disk.
var engineStoppers = map[string]func(errorfs.Op) bool{
	"a manifest write fails": func(op errorfs.Op) bool { return strings.Contains(op.Path, "MANIFEST") },
	"a directory sync fails": func(op errorfs.Op) bool {
		return op.Kind == errorfs.OpFileSync && strings.HasSuffix(op.Path, "tables")
	},
}

// A fullDisk rejects the operations selected by harms with ENOSPC while it is full.
type fullDisk struct {
	vfs.FS
	free atomic.Uint64
}

func (d *fullDisk) GetDiskUsage(string) (vfs.DiskUsage, error) {
	return vfs.DiskUsage{AvailBytes: d.free.Load()}, nil
}

const roomy = 1 << 30 // free bytes of a disk that is not full

func newFullDisk(fs vfs.FS, harms func(errorfs.Op) bool) *fullDisk {
	d := &fullDisk{}
	d.free.Store(roomy)
	d.FS = errorfs.Wrap(fs, &hook{at: func(_ int, op errorfs.Op) error {
		if d.free.Load() == 0 && harms(op) {
			return &os.PathError{Op: "write", Path: op.Path, Err: syscall.ENOSPC}
		}
		return nil
	}})
	return d
}

// TestReopensEngineAfterFullDisk fills the disk until the engine stops. While the disk is
// full, no engine is opened. When there is room again, another engine opens in the same
// process and the index has everything.
func TestReopensEngineAfterFullDisk(t *testing.T) {
	if !alone() {
		inChild(t)
		return
	}
	for what, harms := range engineStoppers {
		disk := newFullDisk(vfs.NewMem(), harms)
		w := grown(1, 30, 30)
		d := newDesk(t, w, disk, index.Limits{Frames: 7})
		d.start()
		disk.free.Store(0)
		d.open()
		if err := <-d.done; !errors.Is(err, index.ErrEngine) {
			t.Fatalf("%s: it ends with %v", what, err)
		}
		for range 20 { // more often than engines may stop
			d.start()
			if err := <-d.done; !errors.Is(err, syscall.ENOSPC) {
				t.Fatalf("%s: on a full disk it ends with %v", what, err)
			}
		}
		disk.free.Store(roomy)
		d.start()
		d.comes()
		same(t, w, d.x)
		if err := d.ends(); err != nil {
			t.Fatalf("%s: it ends with %v", what, err)
		}
		if s := d.x.Stats(); s.Rebuilt > 0 {
			t.Errorf("%s: the tables were thrown away: %+v", what, s)
		}
		d.start()
		same(t, w, d.x)
		if err := d.ends(); err != nil || d.kept.Load() != 30 {
			t.Fatalf("%s: after another start it has %d frames and ends with %v", what, d.kept.Load(), err)
		}
	}
}

// TestFailingDiskUsesUpNoEngines: while a disk refuses all writes, no engine is opened after
// the first has stopped, so that the index opens again however long the failure lasts.
func TestFailingDiskUsesUpNoEngines(t *testing.T) {
	if !alone() {
		inChild(t)
		return
	}
	var ill atomic.Bool
	h := &hook{at: func(_ int, op errorfs.Op) error {
		if ill.Load() && op.Kind == errorfs.OpFileWrite {
			return errorfs.ErrInjected
		}
		return nil
	}}
	w := grown(1, 30, 30)
	d := newDesk(t, w, errorfs.Wrap(vfs.NewMem(), h), index.Limits{Frames: 7})
	d.start()
	ill.Store(true)
	d.open()
	if err := <-d.done; err == nil || errors.Is(err, index.ErrEngine) {
		t.Fatalf("it ends with %v, want that a table cannot be written", err)
	}
	stopped := 0
	for range 3 * index.MaxEngineFailures {
		d.start()
		err := <-d.done
		if err == nil {
			t.Fatal("it runs on a disk that fails")
		}
		if errors.Is(err, index.ErrEngine) {
			stopped++
		}
	}
	if stopped != 1 {
		t.Errorf("%d engines stopped, want one", stopped)
	}
	ill.Store(false)
	d.start()
	d.comes()
	same(t, w, d.x)
	if err := d.ends(); err != nil {
		t.Fatal(err)
	}
}

// TestStoppedEngineChangesNothing: after a run ended because the engine stopped, no operation
// reaches the disk until the next run.
func TestStoppedEngineChangesNothing(t *testing.T) {
	if !alone() {
		inChild(t)
		return
	}
	for what, harms := range engineStoppers {
		var ended atomic.Bool
		var late atomic.Int64
		disk := newFullDisk(vfs.NewMem(), func(op errorfs.Op) bool {
			if ended.Load() {
				late.Add(1)
			}
			return harms(op)
		})
		d := newDesk(t, grown(1, 60, 60), disk, index.Limits{Frames: 7})
		d.start()
		disk.free.Store(0)
		d.open()
		if err := <-d.done; !errors.Is(err, index.ErrEngine) {
			t.Fatalf("%s: it ends with %v", what, err)
		}
		ended.Store(true)
		lock, err := disk.Lock("index/tables/LOCK")
		if err != nil {
			t.Fatalf("%s: the engine that stopped holds the lock: %v", what, err)
		}
		_ = lock.Close()
		if n := late.Load(); n > 1 { // one is the lock above
			t.Errorf("%s: %d operations came late", what, n)
		}
	}
}

// TestStaysDownAfterTooManyEngineFailures: each stopped engine leaves memory behind, so after a
// number of them the index reports that the process must be restarted.
func TestStaysDownAfterTooManyEngineFailures(t *testing.T) {
	if !alone() {
		inChild(t)
		return
	}
	var ill atomic.Bool
	h := &hook{at: func(_ int, op errorfs.Op) error {
		if ill.Load() && strings.Contains(op.Path, "MANIFEST") {
			return errorfs.ErrInjected
		}
		return nil
	}}
	mem := vfs.NewMem()
	w := grown(1, 30, 30)
	d := newDesk(t, w, errorfs.Wrap(mem, h), index.Limits{Frames: 7})
	failures, before := 0, inUse()
	for range 100 {
		ill.Store(false)
		d.gate = make(chan struct{})
		d.start()
		ill.Store(true)
		d.open()
		err := <-d.done
		if !errors.Is(err, index.ErrEngine) {
			t.Fatalf("it ends with %v", err)
		}
		if strings.Contains(err.Error(), "restart the process") {
			break
		}
		failures++
	}
	if failures != index.MaxEngineFailures || d.x.Stats().Abandoned != failures {
		t.Errorf("the engine stopped %d times, want %d; abandoned are %d", failures, index.MaxEngineFailures, d.x.Stats().Abandoned)
	}
	if kept, most := inUse()-before, index.MaxEngineFailures*index.AbandonedBytes(d.c.Limits); kept > most {
		t.Errorf("the engines that stopped keep %d bytes, at most %d are counted", kept, most)
	}
	ill.Store(false)
	if err := d.x.Run(t.Context()); !errors.Is(err, index.ErrEngine) {
		t.Errorf("it runs again, and ends with %v", err)
	}
	d = newDesk(t, w, mem, index.Limits{Frames: 7}).open() // a new process
	d.start()
	d.comes()
	same(t, w, d.x)
	if err := d.ends(); err != nil {
		t.Error(err)
	}
}

// inUse is the memory of the heap and of all stacks.
func inUse() int64 {
	runtime.GC()
	runtime.GC() // objects with a finalizer are freed by the second
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// A spell is a time in which the disk rejects every operation, including reads.
type spell struct {
	n          atomic.Int64
	from, upto int64
}

func (s *spell) MaybeError(errorfs.Op) error {
	if n := s.n.Add(1); s.from <= n && n < s.upto {
		return errorfs.ErrInjected
	}
	return nil
}

func (s *spell) String() string { return "spell" }

// TestReopenWithDiskFaults opens existing tables while the disk rejects operations, from each
// operation on: one, several, or all. The index stops or continues; it never hangs, and never
// ends the process.
func TestReopenWithDiskFaults(t *testing.T) {
	if !alone() {
		inChild(t)
		return
	}
	whole := vfs.NewCrashableMem()
	d := newDesk(t, grown(1, 60, 60), whole, index.Limits{Frames: 7}).open()
	d.start()
	d.comes()
	if err := d.ends(); err != nil {
		t.Fatal(err)
	}
	w := grown(1, 90, 90)
	for _, long := range []int64{1, 5, 1 << 40} {
		tried, ended := 0, 0
		for n, ops := int64(1), int64(100); n <= ops; n += 1 + 2*(slow-1) {
			tried++
			fs := whole.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 1))})
			s := &spell{from: n, upto: n + long}
			d := newDesk(t, w, errorfs.Wrap(fs, s), index.Limits{Frames: 7}).open()
			over := make(chan error, 1)
			go func() {
				d.start()
				if err := d.come(); err != nil {
					over <- err
					return
				}
				over <- d.ends()
			}()
			select {
			case err := <-over:
				if err != nil {
					ended++
				}
				ops = max(ops, min(s.n.Load(), 400))
			case <-time.After(time.Minute):
				t.Fatalf("operations %d to %d failed: it hangs", n, n+long)
			}
		}
		// The number of stops depends on background work. More than none shows that the faults
		// reach the engine.
		if ended < tried/20 || ended == 0 {
			t.Errorf("%d of %d faults ended it: too few to tell", ended, tried)
		}
		t.Logf("%d operations that fail: %d of %d ended it", long, ended, tried)
	}
}
