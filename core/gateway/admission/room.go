package admission

import (
	"macronode/core/event"
	"macronode/core/share"
	"macronode/core/types"
)

// leavesRoom reports whether a request that lasts leaves permits for tenants and peers that come later. Such requests keep their permit
// for up to a day, and peers are as many as there are addresses. So a tenant or peer with permits leaves room for others,
// and one without may take the last one, or wait for it.
func (a *Admit) leavesRoom(in *event.Admit) bool {
	if in.Facet != types.Streams || in.Class == types.ClassInternal {
		return true
	}
	q := &a.queues[in.Facet]
	held := q.Holds(in.Flow())
	return held == 0 || share.Left(0, held, q.Free(in.Class)) > 0
}

// leavesPlaces reports whether a further request leaves places in the queue for callers without a key that come later: its peer has
// queued at most as many as are left.
func (a *Admit) leavesPlaces(in *event.Admit) bool {
	if in.Class != types.ClassAnon {
		return true
	}
	q := &a.queues[in.Facet]
	waits := q.Waits(in.Flow())
	return waits <= a.limits.Facets[in.Facet].PerClass[in.Class]-q.Of(in.Class)
}
