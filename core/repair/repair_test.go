package repair_test

import (
	"math/big"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"macronode/core/repair"
	"macronode/core/types"
	model "macronode/models/repair"
)

var outcomes = map[repair.Outcome]string{repair.Queued: "queued", repair.Known: "known", repair.Raised: "raised", repair.Running: "running",
	repair.Displaced: "displaced", repair.Skipped: "skipped", repair.Stopped: "stopped"}

// TestQueueAgreesWithModel plans, begins and ends repairs in any order.
func TestQueueAgreesWithModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits := repair.Limits{Queue: rapid.IntRange(1, 4).Draw(t, "queue"), Workers: rapid.IntRange(1, 3).Draw(t, "workers"), Rate: 1, Burst: 2 * repair.Chunk}
		m, want := repair.New(0, limits), &model.Queue{Queue: limits.Queue, Workers: limits.Workers, Again: true}
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				if bad := m.Check(); bad != "" {
					t.Fatalf("%s does not hold", bad)
				}
				moves := 0
				for _, task := range want.Tasks {
					if task.Move {
						moves++
					}
				}
				if m.Moves() != moves {
					t.Fatalf("%d moves, want %d", m.Moves(), moves)
				}
				if got, is := m.WaitingFiles(), want.WaitingFiles(); !slices.Equal(got, is) {
					t.Fatalf("%v wait, want %v", got, is)
				}
				if m.Again() != want.Again || m.Waiting() != want.Waiting() || m.Skipped() != want.Skipped || m.Running() != len(want.Tasks)-want.Waiting() {
					t.Fatalf("again %v, %d waiting, %d skipped, want %+v", m.Again(), m.Waiting(), m.Skipped(), want)
				}
			},
			"plan": func(t *rapid.T) {
				task := repair.Task{File: rapid.Uint64Range(1, 8).Draw(t, "file"), Urgent: rapid.Bool().Draw(t, "urgent"), Verify: rapid.Bool().Draw(t, "verify"), Move: rapid.Bool().Draw(t, "move")}
				if got, outcome := outcomes[m.Plan(task)], want.Plan(task.File, task.Urgent, task.Verify, task.Move); got != outcome {
					t.Fatalf("%+v is %s, want %s", task, got, outcome)
				}
			},
			"next": func(t *rapid.T) {
				got, ok := m.Next()
				next, is := want.Next()
				if got.File != next.File || got.Verify != next.Verify || got.Move != next.Move || ok != is {
					t.Fatalf("next is %+v, %v, want %+v, %v", got, ok, next, is)
				}
			},
			"done": func(t *rapid.T) {
				for _, task := range want.Tasks {
					if task.Running {
						failed := rapid.Bool().Draw(t, "failed")
						m.Done(task.File, failed)
						want.Done(task.File, failed)
						return
					}
				}
			},
			"inventory": func(*rapid.T) {
				m.BeginInventory()
				want.Again = false
			},
			"stop": func(t *rapid.T) {
				if rapid.IntRange(0, 9).Draw(t, "stops") == 0 {
					m.Stop()
					want.Stop()
				}
			},
		})
	})
}

// TestBudgetHoldsOverEveryInterval takes bytes at any times: no interval has more than the rate and the burst, what is refused would
// exceed them, and after the wait it is granted.
func TestBudgetHoldsOverEveryInterval(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := types.Instant(rapid.Int64Range(0, 1e12).Draw(t, "start"))
		limits := repair.Limits{Queue: 1, Workers: 1, Rate: rapid.Uint64Range(1<<10, 1<<40).Draw(t, "rate"), Burst: rapid.Uint64Range(2*repair.Chunk, 1<<24).Draw(t, "burst")}
		m, want := repair.New(now, limits), &model.Budget{Rate: limits.Rate, Burst: limits.Burst, Start: now}
		slack := new(big.Rat).Mul(new(big.Rat).SetUint64(limits.Rate), big.NewRat(64, 1e9)) // of rounding: a nanosecond for each grant
		t.Repeat(map[string]func(*rapid.T){
			"pass": func(t *rapid.T) { now += types.Instant(rapid.Int64Range(0, 1e8).Draw(t, "time")) },
			"take": func(t *rapid.T) {
				n := rapid.IntRange(0, repair.Chunk).Draw(t, "bytes")
				bytes := new(big.Rat).SetUint64(uint64(n))
				wait := m.Take(now, n)
				if left := want.Left(now); wait == 0 && bytes.Cmp(left) > 0 {
					t.Fatalf("%d bytes are granted, %v are left", n, left)
				} else if wait > 0 && bytes.Cmp(left.Sub(left, slack)) <= 0 {
					t.Fatalf("%d bytes are refused, %v are left", n, left)
				}
				if wait > 0 {
					now += wait
					if m.Take(now, n) != 0 {
						t.Fatalf("%d bytes are refused after the wait", n)
					}
				}
				want.Grant(now, uint64(n))
			},
		})
	})
}

// TestStepsAllocateNothing: reads of objects plan repairs.
func TestStepsAllocateNothing(t *testing.T) {
	m := repair.New(0, repair.Limits{Queue: 4, Workers: 2, Rate: 1 << 20, Burst: 2 * repair.Chunk})
	file, now := uint64(0), types.Instant(0)
	if n := testing.AllocsPerRun(100, func() {
		file++
		now += 1e9
		m.Plan(repair.Task{File: file})
		m.Plan(repair.Task{File: file, Urgent: true})
		if _, ok := m.Next(); ok {
			m.Done(file, true)
		}
		m.Take(now, 100)
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
