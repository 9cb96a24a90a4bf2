package admission

import (
	"time"

	"macronode/core/types"
)

// An Ended is a request whose API key has ended.
type Ended struct {
	Ticket types.Ticket
	Queued bool          // it is removed from its queue; otherwise it was admitted, and is still to be settled
	Waited time.Duration // in the queue, if Queued
	Bytes  uint64        // of the part of its bodies that waited and is dropped; 0: none
}

// Slots returns the number of slots. KeyAt returns the API key of the request in a slot; 0 if there is none, or EndKey was called.
func (a *Admit) Slots() uint32 { return uint32(len(a.rows)) }
func (a *Admit) KeyAt(slot uint32) types.KeyID {
	if r := &a.rows[slot]; r.state != free && !r.keyEnded {
		return r.key
	}
	return 0
}

// KeyEnded reports whether the request of a ticket has lost its permit because its API key has ended.
func (a *Admit) KeyEnded(t types.Ticket) bool { return a.Lost(t) && a.rows[t.Slot()].keyEnded }

// EndKey takes the permit, or the place in a queue, of the request in a slot that KeyAt has a key for, because that key has ended.
func (a *Admit) EndKey(now types.Instant, slot uint32) Ended {
	r := &a.rows[slot]
	e := Ended{Ticket: r.ticket, Queued: r.state == queued, Bytes: r.part.bytes}
	r.keyEnded = true
	switch r.state {
	case free, lost:
	case queued:
		e.Waited = time.Duration(now - r.since)
		a.queues[r.facet].Drop(slot)
		a.unlist(slot)
		a.leave(r)
	case out:
		a.drop(slot)
		a.revoke(slot)
	}
	return e
}
