package quota

import "macronode/core/types"

// AdmitTime returns the earliest instant at which one more request is admitted behind a number of
// waiting ones, by the rules of the instance that count requests. The bytes of those requests are
// not known yet. If several rules pace in turn, it may become later.
func (q *Quota) AdmitTime(now types.Instant, ahead int) (at types.Instant) {
	at = max(now, q.latest)
	longest := at
	for i := range q.gauges {
		g := &q.gauges[i]
		if q.paces>>i&1 == 0 || g.Unit != types.UnitRequests || g.Shadow {
			continue
		}
		if g.Rate == 0 {
			return Never
		}
		used := g.used(q.common[i], at).plus(times(uint64(ahead), g.Every, g.Rate, g.most), g.Rate)
		_, wait := g.take(used, g.one)
		longest = max(longest, at.Add(wait))
	}
	return longest
}
