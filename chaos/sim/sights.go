package sim

import (
	"slices"

	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/state"
	"macronode/core/types"
)

// A step is an event, the state before it, and its effects.
type step struct {
	in            event.Event
	before, after *event.Status
	begun         bool // it has a frame
	replies       []event.Reply
}

// sees notes error-prone coincidences of a step.
func (w *World) sees(s *step) {
	before, after := s.before, s.after
	degradedBy := func(c types.Condition) bool { return before.DegradedBy.Has(c) }
	switch in := s.in.(type) { //nolint:gochecksumtype // the others have none
	case *event.Request:
		answered := len(s.replies) > 0 && s.replies[0].Ticket == in.Ticket
		replayed := answered && s.replies[0].Replayed
		w.note(replayed && degradedBy(types.JournalStalled), "replayed while the disk stalls")
		w.note(replayed && degradedBy(types.JournalFailed), "replayed of a journal that has failed")
		w.note(s.begun && before.Phase == types.LameDuck, "decided in the lame duck")
		w.note(s.begun && degradedBy(types.IndexBehind), "the index is down, and a key is new")
		w.note(s.begun && degradedBy(types.ObjectsUnavailable), "money moves while objects cannot be read")
	case event.Applied:
		w.note(slices.ContainsFunc(s.replies, func(r event.Reply) bool { return r.Replayed }), "a replay waited for the disk")
		w.note(len(s.replies) > 0 && before.Phase == types.Draining, "answered in a drain")
	case event.Durable:
		w.note(degradedBy(types.JournalStalled) && !degradedBy(types.JournalFailed), "a stall is over")
		w.note(degradedBy(types.JournalFailed), "the disk answers, and was given up")
	case event.Signal:
		ends := in.Kind != event.AcceptClock && before.Phase < types.LameDuck
		w.note(ends && degradedBy(types.JournalStalled), "drain while the disk stalls")
		w.note(ends && degradedBy(types.JournalFailed), "drain after a journal failure")
		w.note(in.Kind == event.AcceptClock && degradedBy(types.ClockUntrusted), "an untrusted clock is accepted by an operator")
	case *event.RevokeKey:
		w.note(s.begun && w.waiting(in.Key), "a key is revoked while its request waits")
		w.note(s.begun && degradedBy(types.DiskFull), "a key is revoked on a full disk")
	case *event.ApplyPolicy:
		w.note(before.OpenCircuits != [event.NumCallers]uint64{}, "a change while a breaker is open")
		w.note(degradedBy(types.JournalStalled), "a change while the disk stalls")
		w.note(degradedBy(types.IndexBehind), "a change while the index is behind")
		w.note(before.Phase >= types.LameDuck, "a change in a drain")
	}
	opens := func(by event.Callers) bool { return after.OpenCircuits[by]&^before.OpenCircuits[by] != 0 }
	w.note((opens(event.Authenticated) || opens(event.Anonymous)) && after.Phase >= types.LameDuck, "a breaker opens in a drain")
	w.note(after.AbortedReplies > before.AbortedReplies, "drain gave up waiting replies")
	w.note(int(after.Keys) > w.limits.Idempotency.Keys*7/8, "the window of keys is nearly full")
}

// note counts what is true.
func (w *World) note(is bool, what string) {
	if is {
		w.Saw[what]++
	}
}

// waiting reports whether a request of a key waits.
func (w *World) waiting(by types.KeyID) bool {
	return slices.ContainsFunc(w.clients, func(c *client) bool { return c.out != 0 && c.sent.Caller == by })
}

// leavesBehind notes what was in progress when a process ended.
func (w *World) leavesBehind() {
	var s event.Status
	if w.node.Status(&s); s.Phase == types.Stopped {
		return
	}
	w.note(s.Phase >= types.LameDuck, "went in a drain")
	w.note(s.HeldReplies > 0, "went, and replies waited")
	w.note(s.DegradedBy.Has(types.JournalStalled) && !s.DegradedBy.Has(types.JournalFailed), "went while the disk stalls")
	w.went = s.LSN
}

// comesUpon notes what a start found.
func (w *World) comesUpon(st *state.State, frames []record.Sealed) {
	if len(frames) == 0 {
		return
	}
	h, _, err := record.Open(frames[len(frames)-1].Body)
	w.note(err == nil && h.Count == 0, "began behind a time frame")
	w.note(w.promise.durable < st.LSN && st.LSN < w.went, "a part of the unsynced data is there")
	w.note(st.Wallet.ExpireNextHold(w.now.Wall, new(record.Record)), "began with holds that are over")
	w.went = 0
}

// shows notes coincidences within a frame.
func (a *audit) shows(w *World, h record.Header, id types.TxID, r *record.Record) {
	w.note(r.Kind == record.Rejected && r.Problem == event.HoldNotActive && a.lapses > 0, "a hold expires in the step that should end it")
	w.note(r.Kind == record.Batched && r.Problem != event.None && a.lapses > 0, "a batch is undone, and its expiries are kept")
	w.note(r.Kind == record.Posted && a.lapses > 0, "paid of what lapses in its step")
	w.note(r.Kind == record.KeysForgotten && id.Position().Index > 0, "keys are forgotten in a step that decides")
	w.note(r.Kind == record.Posted && a.day != h.At.Day() && a.day > 0, "money moves on another day")
	if r.Kind == record.Posted {
		a.day = h.At.Day()
	}
	if r.Kind == record.HoldExpired {
		o, _ := a.model.Hold(r.Hold)
		w.note(a.model.Frozen(r.Tenant, o.From), "a hold of a frozen account lapses")
		a.lapses++
	}
}
