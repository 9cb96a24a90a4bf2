// Package queue is the reference model of core/queue: a list.
package queue

// Queue is a list of at most Limit items, and the outcome of all others.
type Queue struct {
	Limit   int
	Full    string // policy when full: "reject", "drop oldest", "coalesce"
	Held    []int
	Gone    []int // popped, in order
	Dropped []int // accepted, then dropped for newer ones
	Refused []int
}

// Push reports whether x was accepted.
func (q *Queue) Push(x int) bool {
	n := len(q.Held)
	switch {
	case n < q.Limit:
	case q.Full == "drop oldest":
		q.Dropped, q.Held = append(q.Dropped, q.Held[0]), q.Held[1:]
	case q.Full == "coalesce":
		q.Dropped, q.Held = append(q.Dropped, q.Held[n-1]), q.Held[:n-1]
	default:
		q.Refused = append(q.Refused, x)
		return false
	}
	held := append([]int{}, q.Held...)
	q.Held = append(held, x)
	return true
}

// Pop removes the oldest item.
func (q *Queue) Pop() (x int, ok bool) {
	if len(q.Held) == 0 {
		return 0, false
	}
	x, q.Held = q.Held[0], q.Held[1:]
	q.Gone = append(q.Gone, x)
	return x, true
}
