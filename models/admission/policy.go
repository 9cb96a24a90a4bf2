package admission

import "macronode/core/types"

// Gone returns the request of a ticket if it waits in a class without weight; for ticket 0, any
// such request.
func (h *Admission) Gone(t types.Ticket) *Request {
	for i := range h.Requests {
		if g := &h.Requests[i]; (t == 0 || g.Ticket == t) && g.State == "queued" && h.Weight[g.Flow.Class] == 0 {
			return g
		}
	}
	return nil
}
