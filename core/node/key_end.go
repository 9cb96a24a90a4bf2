package node

import (
	"macronode/core/event"
	"macronode/core/types"
)

// keyHasEnded reports whether an API key is revoked or has expired. It may not be durable yet: in doubt nothing goes on. If the key
// expires later, n looks again then.
func (n *Node) keyHasEnded(at types.Time, key types.KeyID) bool {
	end, ends := n.state.Keys.EndOf(key)
	switch {
	case !ends:
		return false
	case end <= at:
		return true
	case n.nextKeyEnd == 0 || end < n.nextKeyEnd:
		n.nextKeyEnd = end
	}
	return false
}

// endRequests takes the permits and the places in queues of all requests whose API key has ended, and grants them to others. What the
// requests have already caused stands: a command that was decided is answered.
func (n *Node) endRequests(now types.Instant, at types.Time, out *event.Effects) {
	n.nextKeyEnd = 0
	before := len(out.Decisions)
	for slot := range n.admission.Slots() {
		key := n.admission.KeyAt(slot)
		if key == 0 || !n.keyHasEnded(at, key) {
			continue
		}
		e := n.admission.EndKey(now, slot)
		if e.Queued {
			n.quota.Undo(now, slot)
		}
		n.rejectAdmission(event.Decision{Ticket: e.Ticket, Reason: event.RejectKeyEnded, Waited: e.Waited}, out)
		if e.Bytes > 0 {
			n.rejectPart(now, e.Ticket, e.Bytes, event.RejectKeyEnded, out)
		}
	}
	if len(out.Decisions) > before {
		n.grantPermits(now, out)
	}
}
