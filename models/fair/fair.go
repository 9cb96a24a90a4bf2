// Package fair is the twin of core/fair: deficit round robin, twice, over plain slices.
package fair

import "macronode/core/words"

// Queue has, of each class, its waiting flows in the order of their turns.
type Queue struct {
	Most    int // queued at once, of a class, of a flow
	Class   [words.Classes]int
	Flow    int
	Quantum int64
	Weight  [words.Classes]int64

	rings [words.Classes][]*flow
	saved [words.Classes]int64
	given [words.Classes]bool // the class has its quanta for this turn
	began [words.Classes]bool // its first flow has its quantum for this turn
	at    int
}

type flow struct {
	name  words.Flow
	saved int64
	items []item
}

type item struct {
	place uint32
	cost  int64
}

// Len is how many are queued of a class.
func (q *Queue) Len(c words.Class) (n int) {
	for _, f := range q.rings[c] {
		n += len(f.items)
	}
	return n
}

func (q *Queue) all() (n int) {
	for c := range q.rings {
		n += q.Len(words.Class(c))
	}
	return n
}

func (q *Queue) find(name words.Flow) *flow {
	for _, f := range q.rings[name.Class] {
		if f.name == name {
			return f
		}
	}
	return nil
}

// Offer queues an item, or says which bound refuses it.
func (q *Queue) Offer(name words.Flow, place uint32, cost int64) (refused string) {
	f := q.find(name)
	switch {
	case q.Weight[name.Class] == 0:
		return "weight"
	case q.all() >= q.Most:
		return "full"
	case q.Len(name.Class) >= q.Class[name.Class]:
		return "class"
	case f != nil && len(f.items) >= q.Flow:
		return "flow"
	}
	if f == nil {
		f = &flow{name: name}
		q.rings[name.Class] = append(q.rings[name.Class], f)
	}
	f.items = append(f.items, item{place, cost})
	return ""
}

// Next serves one, by the book.
func (q *Queue) Next() (place uint32, ok bool) {
	if q.all() == 0 {
		return 0, false
	}
	for {
		c := q.at
		if len(q.rings[c]) > 0 {
			if !q.given[c] {
				q.given[c] = true
				q.saved[c] += q.Weight[c] * q.Quantum
			}
			f := q.turn(c)
			if cost := f.items[0].cost; cost <= q.saved[c] {
				q.saved[c] -= cost
				f.saved -= cost
				place = f.items[0].place
				q.Drop(place)
				return place, true
			}
		}
		q.given[c] = false
		q.at = (c + 1) % len(q.rings)
	}
}

// turn moves flows that cannot pay to the end of the ring, until one can.
func (q *Queue) turn(c int) *flow {
	for {
		f := q.rings[c][0]
		if !q.began[c] {
			q.began[c] = true
			f.saved += q.Quantum
		}
		if f.items[0].cost <= f.saved {
			return f
		}
		q.began[c] = false
		q.rings[c] = append(q.rings[c][1:], f)
	}
}

// Drop takes an item out, wherever it is; false: it is nowhere.
func (q *Queue) Drop(place uint32) bool {
	for c, ring := range q.rings {
		for i, f := range ring {
			for j, x := range f.items {
				if x.place != place {
					continue
				}
				f.items = append(f.items[:j:j], f.items[j+1:]...)
				if len(f.items) == 0 {
					if i == 0 {
						q.began[c] = false
					}
					q.rings[c] = append(ring[:i:i], ring[i+1:]...)
				}
				if len(q.rings[c]) == 0 {
					q.saved[c], q.given[c] = 0, false
					if q.at == c {
						q.at = (c + 1) % len(q.rings)
					}
				}
				return true
			}
		}
	}
	return false
}

// Correct gives a waiting flow back, or takes, up to a quantum.
func (q *Queue) Correct(name words.Flow, by int64) {
	f := q.find(name)
	if f == nil {
		return
	}
	was := f.saved
	switch {
	case by > 0 && was < 2*q.Quantum:
		f.saved = min(was+min(by, q.Quantum), 2*q.Quantum)
	case by < 0 && was > -q.Quantum:
		f.saved = max(was+max(by, -q.Quantum), -q.Quantum)
	}
}
