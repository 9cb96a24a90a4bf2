package fair

import "macronode/core/words"

// Change puts other weights and another quantum in the place of those that are: nobody has
// saved, owes or is to pay more than they would have let him. Bounds are set as they are.
// Who waits, waits.
func (q *Queue) Change(weight [words.Classes]int64, quantum int64) {
	q.Weight, q.Quantum = weight, quantum
	for c, ring := range q.rings {
		quanta := int64(1)
		if q.given[c] {
			quanta += weight[c]
		}
		q.saved[c] = min(q.saved[c], quanta*quantum)
		for i, f := range ring {
			most := 2 * quantum
			if i == 0 && q.began[c] {
				most = 3 * quantum
			}
			f.saved = max(min(f.saved, most), -quantum)
			for j := range f.items {
				f.items[j].cost = min(f.items[j].cost, quantum)
			}
		}
	}
}

// Unserved takes out one who waits in a class without weight.
func (q *Queue) Unserved() (place uint32, any bool) {
	for c, ring := range q.rings {
		if q.Weight[c] == 0 && len(ring) > 0 {
			place = ring[0].items[0].place
			return place, q.Drop(place)
		}
	}
	return 0, false
}
