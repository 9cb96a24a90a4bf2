package sim

import (
	"slices"

	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/state"
	"macronode/core/words"
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
	ails := func(c words.Condition) bool { return before.Ailing.Has(c) }
	switch in := s.in.(type) { //nolint:gochecksumtype // the others meet nothing
	case *event.Request:
		told := len(s.replies) > 0 && s.replies[0].Ticket == in.Ticket
		replayed := told && s.replies[0].Replayed
		w.note(replayed && ails(words.Stalled), "replayed while the disk stalls")
		w.note(replayed && ails(words.JournalFailed), "replayed of a journal that has failed")
		w.note(s.begun && before.Phase == words.LameDuck, "decided in the lame duck")
		w.note(s.begun && ails(words.IndexBehind), "the index is down, and a key is new")
	case event.Folded:
		w.note(slices.ContainsFunc(s.replies, func(r event.Reply) bool { return r.Replayed }), "a replay waited for the disk")
		w.note(len(s.replies) > 0 && before.Phase == words.Draining, "answered in a drain")
	case event.Durable:
		w.note(ails(words.Stalled) && !ails(words.JournalFailed), "a stall is over")
		w.note(ails(words.JournalFailed), "the disk answers, and was given up")
	case event.Signal:
		ends := in.What != event.AcceptClock && before.Phase < words.LameDuck
		w.note(ends && ails(words.Stalled), "told to end while the disk stalls")
		w.note(ends && ails(words.JournalFailed), "told to end behind a journal that has failed")
		w.note(in.What == event.AcceptClock && ails(words.ClockDoubted), "a clock that is doubted is believed by word")
	case *event.Revoke:
		w.note(s.begun && w.waiting(in.Key), "a key ends while what it asked waits")
	case *event.Renew:
		w.note(before.Broken != 0, "a change while a breaker is open")
		w.note(ails(words.Stalled), "a change while the disk stalls")
		w.note(ails(words.IndexBehind), "a change while the index is behind")
		w.note(before.Phase >= words.LameDuck, "a change in a drain")
	}
	w.note(after.Broken&^before.Broken != 0 && after.Phase >= words.LameDuck, "a breaker opens in a drain")
	w.note(after.GaveUp > before.GaveUp, "ended, and gave up who waited")
	w.note(int(after.Keys) > w.limits.Idem.Keys*7/8, "the window of keys is nearly full")
}

// note counts what is.
func (w *World) note(is bool, what string) {
	if is {
		w.Saw[what]++
	}
}

// waiting reports that somebody waits who has asked by a key.
func (w *World) waiting(by words.KeyID) bool {
	return slices.ContainsFunc(w.clients, func(c *client) bool { return c.out != 0 && c.sent.Caller == by })
}

// leavesBehind notes what a process left behind that is there no more: what was under way.
func (w *World) leavesBehind() {
	var s event.Status
	if w.node.Status(&s); s.Phase == words.Stopped {
		return
	}
	w.note(s.Phase >= words.LameDuck, "went in a drain")
	w.note(s.Held > 0, "went, and replies waited")
	w.note(s.Ailing.Has(words.Stalled) && !s.Ailing.Has(words.JournalFailed), "went while the disk stalls")
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
	w.note(st.Ledger.Overdue(w.now.Wall, new(record.Record)), "began with holds that are over")
	w.went = 0
}

// shows notes what a frame has together.
func (a *audit) shows(w *World, h record.Head, id words.TxID, r *record.Record) {
	w.note(r.Kind == record.Refused && r.Problem == event.HoldState && a.lapses > 0, "asked to end a hold that lapses in its step")
	w.note(r.Kind == record.Batched && r.Problem != event.None && a.lapses > 0, "a batch is taken back, and not what lapsed for it")
	w.note(r.Kind == record.Moved && a.lapses > 0, "paid of what lapses in its step")
	w.note(r.Kind == record.Forgot && id.Place().Index > 0, "keys are forgotten in a step that decides")
	w.note(r.Kind == record.Moved && a.day != h.At.Day() && a.day > 0, "money moves on another day")
	if r.Kind == record.Moved {
		a.day = h.At.Day()
	}
	if r.Kind == record.Lapsed {
		o, _ := a.twin.Hold(r.Hold)
		w.note(a.twin.Frozen(r.Tenant, o.From), "a hold of a frozen account lapses")
		a.lapses++
	}
}
