// Package repair decides which copies of objects are restored next, and how fast.
//
//	inventory, scrub, reads, uploads ──► Plan ──► queue ──► Next ──► worker ──► Take … ──► Done
//	                                       │ full
//	                                       ▼
//	                     skipped: Again is true until the next inventory
//
// An object is urgent if one more failure may lose it. Urgent objects are repaired first, and take the place of another one in a
// full queue. The machine is volatile: an inventory at the start of the node plans everything again.
package repair

import (
	"slices"

	"macronode/core/digest"
	"macronode/core/types"
)

// DefaultQueue is the number of objects that may wait for a repair.
const DefaultQueue = 256

// Chunk is the largest number of bytes that Take grants at once.
const Chunk = digest.Group

// Limits of a Machine.
type Limits struct {
	Queue   int    // objects that wait
	Workers int    // objects that are repaired at once
	Rate    uint64 // bytes per second
	Burst   uint64 // bytes at once after a pause, at least two chunks: the times of both are rounded
}

// A Task is an object that may lack a good copy. The worker finds out which.
type Task struct {
	File    uint64 // the number that identifies it
	Address digest.Value
	Size    uint64
	Urgent  bool // at most one good copy is known
	Verify  bool // the contents of its copies are in doubt
	Move    bool // its copies are to be where the placement of its number is
}

// join makes t ask for what o asks for as well.
func (t *Task) join(o *Task) { t.Verify, t.Move = t.Verify || o.Verify, t.Move || o.Move }

// An Outcome is what becomes of a task.
type Outcome uint8

const (
	Queued    Outcome = iota
	Known             // it waits already
	Raised            // it waits already, and has become urgent
	Running           // it is being repaired; Again is true, because its worker may have seen an older state
	Displaced         // it is queued in the place of a task that is not urgent, which is skipped
	Skipped           // the queue is full
	Stopped           // the node drains
)

// Machine is the queue of repairs with its budget.
//
// Invariants:
//
//	R1  at most Limits.Queue tasks wait, and at most Limits.Workers run
//	R2  an object waits or runs at most once
//	R3  an urgent task is skipped only if every waiting task is urgent
//	R4  over any interval the granted bytes are at most Rate × interval + Burst
//	R5  after a skip or a failure Again is true until an inventory begins
type Machine struct {
	limits  Limits
	urgent  []Task // the oldest first
	normal  []Task
	running []Task
	budget  budget
	again   bool
	stopped bool
	skipped uint64
}

// New returns a machine without tasks. Its budget is empty: a node that starts again and again does not exceed it.
func New(now types.Instant, l Limits) *Machine {
	types.Assert(l.Queue > 0 && l.Workers > 0 && l.Rate > 0 && l.Burst >= 2*Chunk, "repair: limits without room")
	return &Machine{limits: l, urgent: make([]Task, 0, l.Queue), normal: make([]Task, 0, l.Queue), running: make([]Task, 0, l.Workers),
		budget: newBudget(now, l.Rate, l.Burst), again: true}
}

// Plan adds a task.
func (m *Machine) Plan(t Task) Outcome {
	is := func(o Task) bool { return o.File == t.File }
	at, urgent := slices.IndexFunc(m.normal, is), slices.IndexFunc(m.urgent, is)
	switch {
	case m.stopped:
		return Stopped
	case slices.ContainsFunc(m.running, is):
		m.again = true
		return Running
	case urgent >= 0:
		m.urgent[urgent].join(&t)
		return Known
	case at >= 0 && t.Urgent:
		t.join(&m.normal[at])
		m.normal = slices.Delete(m.normal, at, at+1)
		m.urgent = append(m.urgent, t)
		return Raised
	case at >= 0:
		m.normal[at].join(&t)
		return Known
	case m.Waiting() < m.limits.Queue:
		m.add(t)
		return Queued
	}
	m.again = true
	m.skipped++
	if !t.Urgent || len(m.normal) == 0 {
		return Skipped
	}
	m.normal = m.normal[:len(m.normal)-1]
	m.add(t)
	return Displaced
}

func (m *Machine) add(t Task) {
	if t.Urgent {
		m.urgent = append(m.urgent, t)
	} else {
		m.normal = append(m.normal, t)
	}
}

// Next returns the task that a free worker begins: the oldest urgent one, else the oldest one.
func (m *Machine) Next() (t Task, ok bool) {
	if m.stopped || len(m.running) == m.limits.Workers {
		return t, false
	}
	for _, queue := range [...]*[]Task{&m.urgent, &m.normal} {
		if len(*queue) > 0 {
			t = (*queue)[0]
			*queue = slices.Delete(*queue, 0, 1)
			m.running = append(m.running, t)
			return t, true
		}
	}
	return t, false
}

// Done ends a task. One that failed is planned again by the next inventory.
func (m *Machine) Done(file uint64, failed bool) {
	at := slices.IndexFunc(m.running, func(t Task) bool { return t.File == file })
	types.Assert(at >= 0, "repair: ends a task that does not run")
	m.running = slices.Delete(m.running, at, at+1)
	m.again = m.again || failed
}

// Take grants n bytes, at most a chunk, or returns how long to wait before it is called again. What was granted is spent, even if
// the read fails.
func (m *Machine) Take(now types.Instant, n int) (wait types.Instant) {
	types.Assert(n >= 0 && n <= Chunk, "repair: takes more than a chunk")
	return m.budget.take(now, uint64(n))
}

// Again reports whether an inventory is needed before the next periodic one.
func (m *Machine) Again() bool { return m.again }

// BeginInventory is called before an inventory reads what there is.
func (m *Machine) BeginInventory() { m.again = false }

// Stop ends planning: no task begins afterwards.
func (m *Machine) Stop() {
	m.stopped = true
	m.urgent, m.normal = m.urgent[:0], m.normal[:0]
}

// Waiting returns the number of waiting tasks, Running that of running ones, and Skipped how many were not queued.
func (m *Machine) Waiting() int    { return len(m.urgent) + len(m.normal) }
func (m *Machine) Running() int    { return len(m.running) }
func (m *Machine) Skipped() uint64 { return m.skipped }

// Moves returns how many tasks that move copies wait or run.
func (m *Machine) Moves() (n int) {
	for _, list := range [...][]Task{m.urgent, m.normal, m.running} {
		for i := range list {
			if list[i].Move {
				n++
			}
		}
	}
	return n
}

// Check returns the number of the first invariant that does not hold; empty: all hold. R3 to R5 are about steps, which the model checks.
func (m *Machine) Check() string {
	if m.Waiting() > m.limits.Queue || len(m.running) > m.limits.Workers {
		return "R1"
	}
	seen := map[uint64]bool{}
	for _, list := range [...][]Task{m.urgent, m.normal, m.running} {
		for _, t := range list {
			if seen[t.File] {
				return "R2"
			}
			seen[t.File] = true
		}
	}
	return ""
}
