package index_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"macronode/adapters/index"
	"macronode/core/command"
	"macronode/core/digest"
	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/types"
)

// shelf is a journal in memory, with a number of durable frames.
type shelf struct {
	mu     sync.RWMutex // the owner reads frames without it
	frames []record.Sealed
	upto   atomic.Uint64
}

// add appends a frame that is not durable yet.
func (s *shelf) add(f record.Sealed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.frames = append(s.frames, f)
}

func (s *shelf) at(lsn types.LSN) record.Sealed {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.frames[lsn-1]
}

func (s *shelf) Chain(lsn types.LSN) (types.JournalID, types.Root, bool, error) {
	if lsn == 0 || uint64(lsn) > s.upto.Load() {
		return 0, types.Root{}, false, nil
	}
	f := s.at(lsn)
	return f.Journal, f.Root, true, nil
}

func (s *shelf) Range(from types.LSN, each func(record.Sealed) error) error {
	for n := uint64(from); n <= s.upto.Load(); n++ {
		if err := each(s.at(types.LSN(n))); err != nil {
			return err
		}
	}
	return nil
}

// A mill is a journal of transfers between a number of accounts, generated on demand so that only
// the index takes memory.
type mill struct{ frames, accounts int }

func (m mill) root(lsn types.LSN) (r types.Root) {
	binary.LittleEndian.PutUint64(r[:], uint64(lsn))
	return r
}

func (m mill) Chain(lsn types.LSN) (types.JournalID, types.Root, bool, error) {
	return 5, m.root(lsn), int(lsn) <= m.frames, nil
}

func (m mill) Range(from types.LSN, each func(record.Sealed) error) error {
	dice := types.NewRand(uint64(from))
	name := func(to []byte, prefix string, n uint64) types.Name {
		return types.Name{Text: strconv.AppendUint(append(to[:0], prefix...), n, 10)}
	}
	var body, key, a, b []byte
	eur := types.Name{Text: []byte("EUR/2")}
	for lsn := from; int(lsn) <= m.frames; lsn++ {
		r := record.Record{Kind: record.Posted, Op: event.Transfer, Tenant: 1, Caller: 7, Key: name(key, "order-2026-", uint64(lsn)*7919),
			From: name(a, "user:", dice.Uint64n(uint64(m.accounts))), To: name(b, "shop:", dice.Uint64n(uint64(m.accounts))),
			Asset: eur, Amount: types.MinorUnits(1 + dice.Uint64n(10_000)), Nonce: types.Nonce(lsn), Seq: types.Seq(lsn),
			FromBalance: types.MinorUnits(dice.Uint64n(1 << 40)), ToBalance: types.MinorUnits(dice.Uint64n(1 << 40)), DebitedToday: types.MinorUnits(dice.Uint64n(1 << 30))}
		binary.LittleEndian.PutUint64(r.Hash[:], uint64(lsn)*0x9e3779b97f4a7c15)
		binary.LittleEndian.PutUint64(r.Hash[8:], uint64(lsn)*0xd6e8feb86659fd93)
		key, a, b = r.Key.Text, r.From.Text, r.To.Text
		body, _ = record.Add(record.Begin(body[:0], lsn, types.Time(1_700_000_000_000+lsn/28)), 0, &r)
		if err := each(record.Sealed{Journal: 5, LSN: lsn, Body: body, Prev: m.root(lsn - 1), Root: m.root(lsn)}); err != nil {
			return err
		}
	}
	return nil
}

func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func rss() string {
	b, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(b)) {
		if strings.HasPrefix(line, "VmRSS") {
			return strings.TrimSpace(strings.TrimPrefix(line, "VmRSS:"))
		}
	}
	return ""
}

// size returns the number of frames of a benchmark.
func size(otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv("INDEXER_FRAMES")); err == nil {
		return n
	}
	return otherwise
}

// BenchmarkFold reads transfers from the journal and writes them to tables, with the engine's
// background work. The time for generating the frames is reported too.
func BenchmarkFold(b *testing.B) {
	for _, accounts := range []int{1000, 1_000_000} {
		b.Run(fmt.Sprintf("accounts=%d", accounts), func(b *testing.B) {
			m := mill{size(1_000_000), accounts}
			was := cpu()
			_ = m.Range(1, func(record.Sealed) error { return nil })
			made := cpu() - was
			for range b.N {
				x := index.New(index.Config{Dir: b.TempDir(), TTL: 24 * time.Hour, Journal: m})
				was, began := cpu(), time.Now()
				stop, done := fold(b, x, m)
				b.ReportMetric(float64(m.frames)/time.Since(began).Seconds(), "frames/s")
				b.Logf("rss %s, bound %d MiB, %+v", rss(), index.Bytes(index.Limits{})>>20, x.Stats())
				stop()
				if err := <-done; err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(cpu()-was-made)/1000/float64(m.frames), "µs-cpu/frame")
			}
		})
	}
}

// fold runs x until it has all of m.
func fold(b *testing.B, x *index.Indexer, m mill) (stop func(), done chan error) {
	b.Helper()
	ctx, stop := context.WithCancel(context.Background())
	done = make(chan error, 1)
	go func() { done <- x.Run(ctx) }()
	for !x.AwaitFrame(ctx, types.LSN(m.frames)) {
		runtime.Gosched()
	}
	return stop, done
}

// BenchmarkLook looks up unused keys among all keys within their TTL.
func BenchmarkLook(b *testing.B) {
	m := mill{size(1_000_000), 1000}
	dir := b.TempDir()
	for range 2 { // everything in tables
		x := index.New(index.Config{Dir: dir, TTL: 24 * time.Hour, Journal: m})
		stop, done := fold(b, x, m)
		if s := x.Stats(); s.Tail == 0 {
			b.Run(fmt.Sprintf("keys=%d", m.frames), func(b *testing.B) { look(b, x) })
			b.Logf("rss %s, bound %d MiB, %+v", rss(), index.Bytes(index.Limits{})>>20, x.Stats())
		}
		stop()
		if err := <-done; err != nil {
			b.Fatal(err)
		}
	}
}

func look(b *testing.B, x *index.Indexer) {
	ids := make([]types.NameHash, 1<<16)
	for i := range ids {
		ids[i] = digest.Name(fmt.Appendf(nil, "none-%d", i))
	}
	in, n := event.Request{Header: command.Header{Tenant: 1}}, 0
	b.ReportAllocs()
	was := cpu()
	for b.Loop() {
		in.Key.ID = ids[n%len(ids)]
		n++
		if err := x.Look(&in); err != nil || in.Prior.ID.Position().LSN > 0 {
			b.Fatal(err, in.Prior)
		}
	}
	b.ReportMetric(float64(cpu()-was)/1000/float64(n), "µs-cpu/op")
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "misses/s")
}
