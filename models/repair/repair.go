// Package repair is the reference model of the queue of repairs, of its budget and of the set of lost objects: one list that is searched from the
// beginning, the list of all grants, and that of all findings. It shares no code with the machine, so that both cannot have the same bug.
package repair

import (
	"math/big"
	"slices"

	"macronode/core/types"
)

// A Task is an object that waits or runs.
type Task struct {
	File    uint64
	Urgent  bool
	Verify  bool
	Move    bool
	Running bool
}

// A Queue is what is known of each object, in the order of arrival.
type Queue struct {
	Tasks          []Task
	Queue, Workers int
	Again, Stopped bool
	Skipped        uint64
}

func (q *Queue) find(file uint64) int {
	return slices.IndexFunc(q.Tasks, func(t Task) bool { return t.File == file })
}

// Waiting returns how many tasks wait.
func (q *Queue) Waiting() (n int) {
	for _, t := range q.Tasks {
		if !t.Running {
			n++
		}
	}
	return n
}

// WaitingFiles returns the objects that wait, the urgent ones first.
func (q *Queue) WaitingFiles() (all []uint64) {
	for _, urgent := range []bool{true, false} {
		for _, t := range q.Tasks {
			if !t.Running && t.Urgent == urgent {
				all = append(all, t.File)
			}
		}
	}
	return all
}

// Plan adds a task, and returns what becomes of it in one word.
func (q *Queue) Plan(file uint64, urgent, verify, move bool) string {
	if q.Stopped {
		return "stopped"
	}
	if at := q.find(file); at >= 0 {
		t := q.Tasks[at]
		switch {
		case t.Running:
			q.Again = true
			return "running"
		case urgent && !t.Urgent:
			q.Tasks = append(slices.Delete(q.Tasks, at, at+1), Task{File: file, Urgent: true, Verify: verify || t.Verify, Move: move || t.Move})
			return "raised"
		}
		q.Tasks[at].Verify, q.Tasks[at].Move = verify || t.Verify, move || t.Move
		return "known"
	}
	outcome := "queued"
	if q.Waiting() == q.Queue {
		q.Again = true
		q.Skipped++
		victim := -1
		for i, t := range q.Tasks {
			if !t.Running && !t.Urgent {
				victim = i
			}
		}
		if victim < 0 || !urgent {
			return "skipped"
		}
		q.Tasks = slices.Delete(q.Tasks, victim, victim+1)
		outcome = "displaced"
	}
	q.Tasks = append(q.Tasks, Task{File: file, Urgent: urgent, Verify: verify, Move: move})
	return outcome
}

// Next returns the object that is repaired next.
func (q *Queue) Next() (next Task, ok bool) {
	if q.Stopped || len(q.Tasks)-q.Waiting() == q.Workers {
		return Task{}, false
	}
	for _, urgent := range []bool{true, false} {
		for i := range q.Tasks {
			if t := &q.Tasks[i]; !t.Running && t.Urgent == urgent {
				t.Running = true
				return *t, true
			}
		}
	}
	return Task{}, false
}

// Done ends a task.
func (q *Queue) Done(file uint64, failed bool) {
	at := q.find(file)
	q.Tasks = slices.Delete(q.Tasks, at, at+1)
	q.Again = q.Again || failed
}

// Stop removes what waits.
func (q *Queue) Stop() {
	q.Stopped = true
	q.Tasks = slices.DeleteFunc(q.Tasks, func(t Task) bool { return !t.Running })
}

// A Budget is the list of all grants.
type Budget struct {
	Rate, Burst uint64
	Start       types.Instant
	grants      []grant
}

type grant struct {
	at    types.Instant
	bytes uint64
}

// Left returns the bytes that may be granted now: the least that any interval which ends now leaves. The budget is empty at the
// start, so an interval from there has no burst.
func (b *Budget) Left(now types.Instant) *big.Rat {
	rate := func(since types.Instant) *big.Rat {
		return new(big.Rat).Mul(new(big.Rat).SetUint64(b.Rate), big.NewRat(int64(now-since), 1e9))
	}
	burst := new(big.Rat).SetUint64(b.Burst)
	left, sum := new(big.Rat).Set(burst), new(big.Rat)
	for i := len(b.grants) - 1; i >= 0; i-- {
		g := b.grants[i]
		sum.Add(sum, new(big.Rat).SetUint64(g.bytes))
		if room := new(big.Rat).Add(rate(g.at), burst); room.Sub(room, sum).Cmp(left) < 0 {
			left = room
		}
	}
	if room := rate(b.Start); room.Sub(room, sum).Cmp(left) < 0 {
		left = room
	}
	return left
}

// Grant notes a grant.
func (b *Budget) Grant(now types.Instant, bytes uint64) {
	b.grants = append(b.grants, grant{now, bytes})
}

// IsStuck reports whether the last passes of a rebalance have moved nothing. moved has the objects of each pass.
func IsStuck(moved []uint64, passes int) bool {
	if len(moved) < passes {
		return false
	}
	for _, n := range moved[len(moved)-passes:] {
		if n > 0 {
			return false
		}
	}
	return true
}
