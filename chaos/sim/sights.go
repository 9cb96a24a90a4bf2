package sim

import (
	"slices"

	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/state"
	"macronode/core/types"
)

// A step is seen by what came, what it found, and what came of it.
type step struct {
	in            event.Event
	before, after *event.Status
	begun         bool // it has a frame
	replies       []event.Reply
}

// sees notes a step that met something else on its way: a coincidence that is easily wrong.
func (w *World) sees(s *step) {
	before, after := s.before, s.after
	ails := func(c types.Condition) bool { return before.DegradedBy.Has(c) }
	switch in := s.in.(type) { //nolint:gochecksumtype // the others meet nothing
	case *event.Request:
		told := len(s.replies) > 0 && s.replies[0].Ticket == in.Ticket
		replayed := told && s.replies[0].Replayed
		w.note(replayed && ails(types.JournalStalled), "replayed while the disk stalls")
		w.note(replayed && ails(types.JournalFailed), "replayed of a journal that has failed")
		w.note(s.begun && before.Phase == types.LameDuck, "decided in the lame duck")
		w.note(s.begun && ails(types.IndexBehind), "the index is down, and a key is new")
	case event.Applied:
		w.note(slices.ContainsFunc(s.replies, func(r event.Reply) bool { return r.Replayed }), "a replay waited for the disk")
		w.note(len(s.replies) > 0 && before.Phase == types.Draining, "answered in a drain")
	case event.Durable:
		w.note(ails(types.JournalStalled) && !ails(types.JournalFailed), "a stall is over")
		w.note(ails(types.JournalFailed), "the disk answers, and was given up")
	case event.Signal:
		ends := in.Kind != event.AcceptClock && before.Phase < types.LameDuck
		w.note(ends && ails(types.JournalStalled), "told to end while the disk stalls")
		w.note(ends && ails(types.JournalFailed), "told to end behind a journal that has failed")
		w.note(in.Kind == event.AcceptClock && ails(types.ClockUntrusted), "a clock that is doubted is believed by word")
	case *event.RevokeKey:
		w.note(s.begun && w.waiting(in.Key), "a key ends while what it asked waits")
	case *event.ApplyPolicy:
		w.note(before.OpenCircuits != 0, "a change while a breaker is open")
		w.note(ails(types.JournalStalled), "a change while the disk stalls")
		w.note(ails(types.IndexBehind), "a change while the index is behind")
		w.note(before.Phase >= types.LameDuck, "a change in a drain")
	}
	w.note(after.OpenCircuits&^before.OpenCircuits != 0 && after.Phase >= types.LameDuck, "a breaker opens in a drain")
	w.note(after.AbortedReplies > before.AbortedReplies, "ended, and gave up who waited")
	w.note(int(after.Keys) > w.limits.Idempotency.Keys*7/8, "the window of keys is nearly full")
}

// note counts what is.
func (w *World) note(is bool, what string) {
	if is {
		w.Saw[what]++
	}
}

// waiting reports that somebody waits who has asked by a key.
func (w *World) waiting(by types.KeyID) bool {
	return slices.ContainsFunc(w.clients, func(c *client) bool { return c.out != 0 && c.sent.Caller == by })
}

// leavesBehind notes what a process left behind that is there no more: what was under way.
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
	w.note(w.promise.durable < st.LSN && st.LSN < w.went, "a part of what was not durable is there")
	w.note(st.Wallet.ExpireNextHold(w.now.Wall, new(record.Record)), "began with holds that are over")
	w.went = 0
}

// shows notes what a frame has together.
func (a *audit) shows(w *World, h record.Header, id types.TxID, r *record.Record) {
	w.note(r.Kind == record.Rejected && r.Problem == event.HoldNotActive && a.lapses > 0, "asked to end a hold that lapses in its step")
	w.note(r.Kind == record.Batched && r.Problem != event.None && a.lapses > 0, "a batch is taken back, and not what lapsed for it")
	w.note(r.Kind == record.Posted && a.lapses > 0, "paid of what lapses in its step")
	w.note(r.Kind == record.KeysForgotten && id.Position().Index > 0, "keys are forgotten in a step that decides")
	w.note(r.Kind == record.Posted && a.day != h.At.Day() && a.day > 0, "money moves on another day")
	if r.Kind == record.Posted {
		a.day = h.At.Day()
	}
	if r.Kind == record.HoldExpired {
		o, _ := a.twin.Hold(r.Hold)
		w.note(a.twin.Frozen(r.Tenant, o.From), "a hold of a frozen account lapses")
		a.lapses++
	}
}
