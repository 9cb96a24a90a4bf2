package admission

import "macronode/core/types"

// Gone is the guest of a ticket, if he waits in a class without weight; of no ticket: any
// such guest.
func (h *House) Gone(t types.Ticket) *Guest {
	for i := range h.Guests {
		if g := &h.Guests[i]; (t == 0 || g.Ticket == t) && g.State == "queued" && h.Weight[g.Flow.Class] == 0 {
			return g
		}
	}
	return nil
}
