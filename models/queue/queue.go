// Package queue is what a bounded queue means: a list that somebody watches.
package queue

// Queue is a list of at most Limit things, and what became of all others.
type Queue struct {
	Limit   int
	Full    string // what happens then: "reject", "drop oldest", "coalesce"
	Held    []int
	Gone    []int // popped, in their order
	Dropped []int // accepted, then given up for newer ones
	Refused []int
}

// Push says whether x was let in.
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

// Pop takes the oldest.
func (q *Queue) Pop() (x int, ok bool) {
	if len(q.Held) == 0 {
		return 0, false
	}
	x, q.Held = q.Held[0], q.Held[1:]
	q.Gone = append(q.Gone, x)
	return x, true
}
