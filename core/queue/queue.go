// Package queue is a bounded first-in first-out, with what happens when it is full
// stated when it is made.
//
//	Push ──► held ──Pop──► gone        full: Reject · DropOldest · Coalesce
package queue

import (
	"errors"

	"macronode/core/types"
)

// ErrFull says that the newest was refused; come back later.
var ErrFull = errors.New("queue: full")

// A Policy is what a full queue does with the next item.
type Policy uint8

const (
	// Reject refuses the newest: whoever pushed is told.
	Reject Policy = iota
	// DropOldest lets the newest in and counts the oldest as dropped.
	DropOldest
	// Coalesce replaces the newest held item by the one that comes: for items of
	// which only the latest matters.
	Coalesce
)

// An Hashable can be mixed, and holds no pointer.
type Hashable interface {
	comparable
	HashInto(h types.Hash64) types.Hash64
}

// Queue holds at most its limit.
//
// Invariants:
//
//	Q1  0 ≤ held ≤ limit
//	Q2  pushed = popped + dropped + held: nothing is lost that is not counted
type Queue[T Hashable] struct {
	policy  Policy
	ring    []T
	head    int
	count   int
	pushed  uint64 // accepted
	popped  uint64
	dropped uint64
}

// New is a queue of at most limit items, limit ≥ 1.
func New[T Hashable](limit int, policy Policy) Queue[T] {
	types.Assert(limit > 0, "queue: no room at all")
	return Queue[T]{policy: policy, ring: make([]T, limit)}
}

// Len is how many items are held; Limit how many may be; Dropped how many were
// accepted and then given up for newer ones.
func (q *Queue[T]) Len() int        { return q.count }
func (q *Queue[T]) Limit() int      { return len(q.ring) }
func (q *Queue[T]) Full() bool      { return q.count == len(q.ring) }
func (q *Queue[T]) Dropped() uint64 { return q.dropped }

// Push adds x at the end, or does what the policy says.
func (q *Queue[T]) Push(x T) error {
	if q.Full() {
		switch q.policy {
		case Reject:
			return ErrFull
		case DropOldest:
			q.head, q.count = q.at(1), q.count-1
		case Coalesce:
			q.count--
		}
		q.dropped++
	}
	q.ring[q.at(q.count)] = x
	q.count++
	q.pushed++
	return nil
}

// At is the i-th oldest item.
func (q *Queue[T]) At(i int) T {
	types.Assert(i < q.count, "queue: no such item")
	return q.ring[q.at(i)]
}

// Set changes the i-th oldest item in its place.
func (q *Queue[T]) Set(i int, x T) {
	types.Assert(i < q.count, "queue: no such item")
	q.ring[q.at(i)] = x
}

// NextNumber is the number of the item that Push adds next: items are numbered from 0 in the
// order in which they are pushed.
func (q *Queue[T]) NextNumber() uint64 { return q.pushed }

// Find is where the item of a number stands among those that are held; false when it has
// left. A queue that coalesces numbers nothing.
func (q *Queue[T]) Find(number uint64) (i int, ok bool) {
	first := q.pushed - uint64(q.count)
	if number < first || number >= q.pushed {
		return 0, false
	}
	return int(number - first), true
}

// Pop removes the oldest item; ok is false when there is none.
func (q *Queue[T]) Pop() (x T, ok bool) {
	if q.count == 0 {
		return x, false
	}
	x = q.ring[q.head]
	q.head, q.count = q.at(1), q.count-1
	q.popped++
	return x, true
}

func (q *Queue[T]) at(i int) int {
	if i += q.head; i >= len(q.ring) {
		i -= len(q.ring)
	}
	return i
}

// HashInto is h after what q holds, in order, and what it has counted.
func (q *Queue[T]) HashInto(h types.Hash64) types.Hash64 {
	h = h.Mix(uint64(q.count)).Mix(q.pushed).Mix(q.popped).Mix(q.dropped)
	for i := range q.count {
		h = q.ring[q.at(i)].HashInto(h)
	}
	return h
}

// CopyTo overwrites dst, reusing its memory.
func (q *Queue[T]) CopyTo(dst *Queue[T]) {
	ring := append(dst.ring[:0], q.ring...)
	*dst = *q
	dst.ring = ring
}

// Check returns the first invariant that does not hold.
func (q *Queue[T]) Check() error {
	switch {
	case q.count < 0 || q.count > len(q.ring):
		return errors.New("Q1: more held than the limit")
	case q.pushed != q.popped+q.dropped+uint64(q.count):
		return errors.New("Q2: an item is neither held nor counted")
	}
	return nil
}
