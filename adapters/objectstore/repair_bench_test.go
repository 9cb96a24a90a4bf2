package objectstore_test

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"macronode/adapters/fs"
	"macronode/adapters/objectstore"
	"macronode/adapters/provider"
	"macronode/core/placement"
	"macronode/core/storage"
)

// repairRates are the budgets of a repair in bytes per second: no repair, the default of storage.repair_rate, and no limit.
var repairRates = []struct {
	name string
	rate float64
}{{"no-repair", 0}, {"50MiBps", 50 << 20}, {"unlimited", 1e15}}

// BenchmarkReadDuringRepair reads objects of 64 KiB of two copies while copies of objects of 1 MiB are written again, and reports how long reads take.
func BenchmarkReadDuringRepair(b *testing.B) {
	for _, r := range repairRates {
		b.Run(r.name, func(b *testing.B) {
			var list []objectstore.Provider
			for _, name := range []string{"a", "b"} {
				list = append(list, objectstore.Provider{Provider: placement.Provider{Name: name, Domain: name, Weight: 1}, Port: provider.Dir{FS: fs.Dir(b.TempDir())}})
			}
			s := objectstore.NewCopies(list, objectstore.Copies{Count: 2, Required: 2}, objectstore.Limits{Uploads: 1, Object: storage.MaxObject})
			small, large := fill(b, s, 64<<10), fill(b, s, 1<<20)
			repair := newRepairLoad(s, large, r.rate)
			var running sync.WaitGroup
			if r.rate > 0 {
				running.Go(repair.work)
			}
			b.SetParallelism(2)
			var mu sync.Mutex
			var all []time.Duration
			b.RunParallel(func(p *testing.PB) {
				var took []time.Duration
				for n := 0; p.Next(); n++ {
					began := time.Now()
					if err := s.Verify(small[n%len(small)]); err != nil {
						b.Error(err)
						return
					}
					took = append(took, time.Since(began))
				}
				mu.Lock()
				defer mu.Unlock()
				all = append(all, took...)
			})
			repair.ended.Store(true)
			running.Wait()
			slices.Sort(all)
			for name, share := range map[string]float64{"p50-µs": 0.5, "p95-µs": 0.95} {
				b.ReportMetric(float64(all[int(share*float64(len(all)-1))].Nanoseconds())/1e3, name)
			}
			b.ReportMetric(float64(repair.bytes.Load())/time.Since(repair.began).Seconds()/1e6, "repaired-MB/s")
			if err := repair.failed; err != nil {
				b.Fatal(err)
			}
		})
	}
}

// fill stores 64 objects of a size.
func fill(b *testing.B, s *objectstore.Store, size int) (all []storage.Stored) {
	b.Helper()
	content := random(size)
	for n := range 64 {
		content[0] = byte(n)
		u, a, err := put(s, content, 64<<10)
		if err != nil {
			b.Fatal(err)
		}
		u.Done()
		all = append(all, storage.Stored{Address: a, Object: storage.Object{Size: uint64(size), File: u.File()}})
	}
	return all
}

// A repairLoad writes copies again until it is ended.
type repairLoad struct {
	store   *objectstore.Store
	objects []storage.Stored
	rate    float64 // bytes per second
	began   time.Time
	bytes   atomic.Int64
	ended   atomic.Bool
	failed  error
}

func newRepairLoad(s *objectstore.Store, objects []storage.Stored, rate float64) *repairLoad {
	return &repairLoad{store: s, objects: objects, rate: rate, began: time.Now()}
}

func (r *repairLoad) work() {
	for n := 0; !r.ended.Load() && r.failed == nil; n++ {
		r.failed = r.store.RepairCopy(r.objects[n%len(r.objects)], 1, r.pace)
	}
}

// pace waits until the budget has the bytes.
func (r *repairLoad) pace(bytes int) error {
	done := r.bytes.Add(int64(bytes))
	time.Sleep(time.Until(r.began.Add(time.Duration(float64(done) / r.rate * 1e9))))
	return nil
}
