package drr

import "macronode/core/types"

// Change replaces weights and quantum. Savings and debts are cut to what the new ones permit.
// Limits and shares are set as they are. Waiting items stay.
func (q *Queue) Change(weight [types.NumClasses]int64, quantum int64) {
	q.Weight, q.Quantum = weight, quantum
	for c := range q.rings {
		ring := q.waiting(types.Class(c))
		quanta := int64(1)
		if q.given[c] {
			quanta += weight[c]
		}
		q.saved[c] = min(q.saved[c], quanta*quantum)
		for i, f := range ring {
			most := 2 * quantum
			if i == 0 && q.began[c] && len(q.rings[c]) > 0 {
				most = 3 * quantum
			}
			f.saved = max(min(f.saved, most), -quantum)
			for j := range f.items {
				f.items[j].cost = min(f.items[j].cost, quantum)
			}
		}
		q.places(types.Class(c))
	}
}

// Unserved removes an item that waits in a class without weight.
func (q *Queue) Unserved() (place uint32, any bool) {
	for c, weight := range q.Weight {
		if weight == 0 && q.Len(types.Class(c)) > 0 {
			return q.evict(types.Class(c)), true
		}
	}
	return 0, false
}

// Evict removes a waiting item of the first class that has any.
func (q *Queue) Evict() (place uint32, any bool) {
	for c := range q.rings {
		if q.Len(types.Class(c)) > 0 {
			return q.evict(types.Class(c)), true
		}
	}
	return 0, false
}

func (q *Queue) evict(c types.Class) (place uint32) {
	place = q.waiting(c)[0].items[0].place
	q.Drop(place)
	return place
}
