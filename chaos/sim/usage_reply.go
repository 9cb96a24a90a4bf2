package sim

import (
	"fmt"
	"slices"

	"macronode/core/event"
	meaning "macronode/models/accounting"
)

var usageOutcomes = map[event.Problem]meaning.Outcome{event.EventConflict: meaning.Conflict, event.EventTooOld: meaning.TooOld, event.EventInFuture: meaning.InFuture,
	event.UsageOverflow: meaning.Overflow, event.UsageCapacity: meaning.Capacity,
	// Of a prepaid tenant.
	event.PrepaidExceeded: "insufficient funds", event.AccountFrozen: "account frozen", event.DailyLimitExceeded: "daily limit", event.AmountLimitExceeded: "limit of amounts"}

// replied handles a reply to a client that reports usage; false if it is not of one.
func (u *usageWorld) replied(w *World, r event.Reply) bool {
	if u.attempts[r.Ticket] == nil {
		if u.charger != nil && u.charger.replied(w, r) {
			return true
		}
		if u.prepaid != nil {
			return u.prepaid.replied(w, r)
		}
		return u.meter.reply(w, r)
	}
	a := u.sent[r.Ticket]
	if a == nil { // its client has left
		return true
	}
	if a.counts != nil && r.Counted != (a.counts.isIn && r.Problem == event.None) {
		w.fail("prepaid-counted", "%+v: counted is %v, recorded was %v", r, r.Counted, a.counts.isIn)
	}
	delete(u.sent, r.Ticket)
	c := a.client
	c.out = 0
	w.tell(clients, decider, answeredTone, "usage client %d: %s", c.number, answers(r))
	if r.Problem != event.None && r.Problem != event.OutcomeUnknown && a.recorded.LSN > 0 {
		w.fail("usage-refused-and-recorded", "%v is told, and %v was recorded", r.Problem.Code(), a.recorded)
	}
	switch {
	case r.Problem == event.None:
		a.acknowledged(w, r)
	case r.Problem == event.EventsDeferred && !a.takesReserved(w):
		w.fail("usage-refusal", "%v is deferred, with %d keys of %d", a.events, a.keys, w.limits.Idempotency.Keys)
	case blank(r.Problem):
		w.note(r.Problem == event.EventsDeferred, "usage is deferred: the rest of the window is reserved")
		c.doubts = c.doubts || r.Problem == event.OutcomeUnknown
		w.note(r.Problem == event.StaleIndexRead, "usage is reported with a stale index read")
		w.note(r.Problem == event.OutcomeUnknown && a.recorded.LSN > 0, "a report is recorded, and its outcome is unknown")
	default:
		a.refused(w, r)
	}
	return true
}

// acknowledged handles a success: its answer is that of the model.
func (a *usageAttempt) acknowledged(w *World, r event.Reply) {
	u := w.usage
	if r.Replayed || r.Position != a.recorded {
		w.fail("usage-acknowledged-nothing", "%v is acknowledged, recorded was %v", r.Position, a.recorded)
		return
	}
	answer, status, owner, err := w.fol.Render(nil, r.Position)
	if err != nil && w.unread(err) {
		a.client.doubts = true
		return // the answer was not sent
	}
	if want := fmt.Sprintf(`{"recorded":%d,"duplicate":%d,"late":%d}`, a.counted.Recorded, a.counted.Duplicate, a.counted.Late); err != nil || status != 202 || owner != a.client.tenant || string(answer) != want {
		w.fail("usage-answer", "%v is answered %d %s of tenant %d, %v; the model has %s", r.Position, status, answer, owner, err, want)
	}
	u.reports[r.Position] = true
	for i := range a.events {
		u.acked[a.events[i].usageID] = true
	}
	a.client.ends()
}

// refused handles a refusal, which the model must have predicted.
func (a *usageAttempt) refused(w *World, r event.Reply) {
	why := usageOutcomes[r.Problem]
	if !slices.Contains(a.problems, why) {
		w.fail("usage-refusal", "%v is refused with %v, predicted was %v", a.events, r.Problem.Code(), a.problems)
	}
	if a.terms != nil && lackOf(a.terms, r.Shortfall) != a.expects.lack {
		w.fail("usage-refusal", "%v lacks %+v, predicted was %+v", a.events, r.Shortfall, a.expects.lack)
	}
	if !r.Problem.NeedsNoDurability() && a.saw > w.fol.Mark() {
		w.fail("refusal-before-frame", "%v tells of %v, folded %v", r.Problem, a.saw, w.fol.Mark())
	}
	w.Saw["usage is refused: "+string(why)]++
	a.client.givesUp(w)
}
