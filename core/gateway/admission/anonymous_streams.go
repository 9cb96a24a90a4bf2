package admission

import (
	"macronode/core/event"
	"macronode/core/types"
)

// leavesRoom reports whether a request that lasts leaves permits for callers without a key that come later. Such requests
// keep their permit for up to a day, and peers are as many as there are addresses. So a peer gets a further permit only if
// afterwards it has at most one more than are left for others: each next peer may take half of what is left, and a peer
// without a permit may take the last one.
func (a *Admit) leavesRoom(in *event.Admit) bool {
	if in.Facet != types.Streams || in.Class != types.ClassAnon {
		return true
	}
	q := &a.queues[in.Facet]
	held := q.Holds(in.Flow())
	return held == 0 || held < q.Free(in.Class)
}
