// Package queue is a bounded FIFO queue. Its policy, set at creation, decides what happens
// when it is full.
//
//	Push ──► held ──Pop──► gone        full: Reject · DropOldest · Coalesce
package queue

import (
	"errors"

	"macronode/core/types"
)

// ErrFull reports that the pushed item was rejected. The caller may retry later.
var ErrFull = errors.New("queue: full")

// A Policy is what a full queue does with the next item.
type Policy uint8

const (
	// Reject rejects the new item: Push returns ErrFull.
	Reject Policy = iota
	// DropOldest accepts the new item and drops the oldest, which is counted.
	DropOldest
	// Coalesce replaces the newest held item by the new one: for items of
	// which only the latest matters.
	Coalesce
)

// A Hashable can be mixed into a hash, and contains no pointer.
type Hashable interface {
	comparable
	HashInto(h types.Hash64) types.Hash64
}

// Queue is a bounded FIFO queue.
//
// Invariants:
//
//	Q1  0 ≤ held ≤ limit
//	Q2  pushed = popped + dropped + held: every lost item is counted
type Queue[T Hashable] struct {
	policy  Policy
	ring    []T
	head    int
	count   int
	pushed  uint64 // accepted
	popped  uint64
	dropped uint64
}

// New returns a queue of at most limit items, limit ≥ 1.
func New[T Hashable](limit int, policy Policy) Queue[T] {
	types.Assert(limit > 0, "queue: limit below 1")
	return Queue[T]{policy: policy, ring: make([]T, limit)}
}

// Len is the number of items, Limit the largest number, Dropped the number of items that were
// accepted and then dropped for newer ones.
func (q *Queue[T]) Len() int        { return q.count }
func (q *Queue[T]) Limit() int      { return len(q.ring) }
func (q *Queue[T]) Full() bool      { return q.count == len(q.ring) }
func (q *Queue[T]) Dropped() uint64 { return q.dropped }

// Push adds x at the end, or applies the policy if the queue is full.
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

// At returns the i-th oldest item.
func (q *Queue[T]) At(i int) T {
	types.Assert(i < q.count, "queue: no such item")
	return q.ring[q.at(i)]
}

// Set replaces the i-th oldest item in place.
func (q *Queue[T]) Set(i int, x T) {
	types.Assert(i < q.count, "queue: no such item")
	q.ring[q.at(i)] = x
}

// NextNumber returns the number of the item that Push adds next. Items are numbered from 0 in the
// order in which they are pushed.
func (q *Queue[T]) NextNumber() uint64 { return q.pushed }

// Find returns the index of the item with a number; ok is false if the item has left the queue.
// Find has no meaning in a queue that coalesces.
func (q *Queue[T]) Find(number uint64) (i int, ok bool) {
	first := q.pushed - uint64(q.count)
	if number < first || number >= q.pushed {
		return 0, false
	}
	return int(number - first), true
}

// Pop removes the oldest item; ok is false if the queue is empty.
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

// HashInto mixes the items of q, in order, and its counters into h.
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
