package history_test

import (
	"flag"
	"syscall"
	"testing"
	"time"

	"macronode/core/types"
	"macronode/models/history"
)

var many = flag.Int("ops", 10_000_000, "of the benchmark's history")

// crowd is a bank of many accounts.
type crowd [1 << 10]wallet

// The operations and answers of a crowd.
type (
	wide struct {
		from, to uint16
		amount   uint32
		nonce    uint32 // 0: an issue; without an amount, a read
	}
	replied struct{ from, to, nonce uint32 }
)

func (c *crowd) Step(_ types.Position, q *wide) (replied, bool) {
	from, to := &c[q.from], &c[q.to]
	switch {
	case q.amount == 0:
		return replied{from: from.has, nonce: uint32(from.nonce)}, false
	case q.nonce > 0 && (uint16(q.nonce) != from.nonce+1 || q.amount > from.has):
		return replied{nonce: uint32(from.nonce)}, false
	case q.nonce > 0:
		from.has -= q.amount
		from.nonce++
	}
	to.has += q.amount
	return replied{from.has, to.has, uint32(from.nonce)}, true
}

// long returns a correct history of 64 clients with overlapping calls, sorted by client, and its
// journal. One call in 64 has no answer; half of these had an effect.
func long(n int) (ops []history.Op[wide, replied], journal []history.Entry) {
	const clients = 64
	dice := types.NewRand(1)
	truth := new(crowd)
	recorders := make([]*history.Recorder[wide, replied], clients)
	for i := range recorders {
		recorders[i] = history.NewRecorder[wide, replied](uint32(i))
	}
	var last types.Position
	for i := range n {
		r, at := recorders[i%clients], types.Instant(i)*1000
		q := wide{from: uint16(dice.Uint64n(1 << 10)), to: uint16(dice.Uint64n(1 << 10)), amount: uint32(dice.Uint64n(4))}
		kind := history.Write
		if q.amount == 0 {
			kind = history.Read
		} else if dice.Uint64n(3) > 0 {
			q.nonce = uint32(truth[q.from].nonce + 1)
		}
		key := r.Call(at-types.Instant(dice.Uint64n(31_000)), kind, q)
		lost := dice.Uint64n(64) == 0
		if lost && dice.Uint64n(2) == 0 {
			continue
		}
		if kind == history.Write {
			last = types.Position{LSN: types.LSN(len(journal) + 1)}
			journal = append(journal, history.Entry{Place: last, Key: key})
		}
		if a, _ := truth.Step(last, &q); !lost {
			r.Return(key, at+types.Instant(dice.Uint64n(31_000)), last, a)
		}
	}
	for i, r := range recorders {
		ops = append(ops, r.Ops()...)
		recorders[i] = nil
	}
	return ops, journal
}

// BenchmarkCertify reports operations per second, and the CPU time of a whole history: go test
// ./models/history -run '^$' -bench Certify -benchtime 1x
func BenchmarkCertify(b *testing.B) {
	ops, journal := long(*many)
	unknown := 0
	for i := range ops {
		if ops[i].Return == history.Never {
			unknown++
		}
	}
	b.ReportAllocs()
	b.ResetTimer()
	before := spent(b)
	for range b.N {
		f := history.Certify(new(crowd), ops, func(yield func(history.Entry) bool) {
			for _, e := range journal {
				if !yield(e) {
					return
				}
			}
		})
		if f != nil {
			b.Fatal(f)
		}
	}
	b.StopTimer()
	b.ReportMetric(float64(len(ops))*float64(b.N)/b.Elapsed().Seconds(), "ops/s")
	b.ReportMetric((spent(b)-before).Seconds()/float64(b.N), "cpu-s/op")
	b.ReportMetric(float64(unknown), "unknown")
	b.Logf("evidence: history.speed = %d in %.1f s of CPU time; %d of them have an unknown outcome", len(ops), (spent(b)-before).Seconds()/float64(b.N), unknown)
}

// spent returns the CPU time of this process.
func spent(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
