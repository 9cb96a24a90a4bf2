package sim

import (
	"macronode/core/event"
	"macronode/core/types"
)

// replied handles a reply to a storage client; false if it is not of one.
func (s *storageWorld) replied(w *World, r event.Reply) bool {
	if s.attempts[r.Ticket] == nil {
		return false
	}
	a := s.sent[r.Ticket]
	if s.files != nil {
		defer s.files.answered(w, s.attempts[r.Ticket], r)
	}
	if a == nil { // its client has left
		return true
	}
	delete(s.sent, r.Ticket)
	a.client.out = 0
	a.client.upload = nil
	w.tell(clients, decider, answeredTone, "storage client %d: %s", a.client.number, answers(r))
	if r.Problem != event.None && r.Problem != event.OutcomeUnknown && a.recorded.LSN > 0 {
		w.fail("storage-refused-and-recorded", "%v is told, and %v was recorded: %+v", r.Problem.Code(), a.recorded, *a.ask)
	}
	switch {
	case r.Problem == event.None:
		a.acknowledged(w, r)
	case r.Problem == event.OutcomeUnknown:
		a.client.unknown()
	case blank(r.Problem) && !(r.Problem == event.InProgress && a.ask != nil && a.ask.upload.LSN > 0):
		// it is repeated
	default:
		a.refused(w, r.Problem)
	}
	return true
}

// acknowledged handles a success.
func (a *storageAttempt) acknowledged(w *World, r event.Reply) {
	c, s := a.client, w.storage
	switch c.key = ""; a.step {
	case stepIssue:
	case stepReserve:
		if a.want == event.PaymentRequired && !r.Replayed {
			w.fail("storage-reserves-too-much", "%v reserves more than is available", r.Position)
		}
		c.hold = types.NewTxID(w.jour.ID(), r.Position)
	case stepCancel:
		c.ends()
	case stepCommand:
		did := s.oracle.recorded[r.Position]
		if did == "" || !r.Replayed && r.Position != a.recorded {
			w.fail("storage-acknowledged-nothing", "%+v: %v is acknowledged, recorded was %v: %q", *a.ask, r.Position, a.recorded, did)
		}
		s.acked[r.Position] = did
		a.sees(w)
		if a.ask.kind == askBegin {
			s.uploads = append(s.uploads, storageUpload{a.ask.bucket, a.ask.name, r.Position})
		}
		c.ends()
	}
}

// sees counts the probes of an acknowledged command.
func (a *storageAttempt) sees(w *World) {
	w.note(a.replaces && a.ask.isPut(), "an object is replaced")
	w.note(a.ask.isPut() && a.ask.upload.LSN > 0, "an upload is completed")
	w.note(a.paid, "a paid put is acknowledged")
}

// refused handles a refusal, which the oracle must have predicted.
func (a *storageAttempt) refused(w *World, why event.Problem) {
	c := a.client
	c.key = ""
	switch a.step {
	case stepIssue:
		c.ends()
	case stepReserve:
		wrong := (why == event.PaymentRequired) != (a.want == event.PaymentRequired)
		if wrong && why != event.DailyLimitExceeded && why.General() != event.CapacityExceeded {
			w.fail("storage-reserve-refused", "%v is told, predicted was %q", why.Code(), a.want.Code())
		}
		w.note(why == event.PaymentRequired, "a reservation is refused for want of money")
		c.ends()
	case stepCancel:
		if why != event.HoldNotActive {
			w.fail("storage-cancel-refused", "%v is told", why.Code())
		}
		c.ends()
	case stepCommand:
		if why != a.want && !(why == event.PaymentExpired && a.paid && a.want == event.None) {
			w.fail("storage-refusal", "%+v is refused with %v, predicted was %q", *a.ask, why.Code(), a.want.Code())
		}
		a.seesRefusal(w, why)
		if gone := why == event.NotFound && a.ask.upload.LSN > 0; gone {
			w.storage.forgets(a.ask.upload)
		}
		if c.cancels = a.paid && why != event.PaymentExpired; !c.cancels {
			c.ends()
		}
	}
}

// seesRefusal counts the probes of a refused command.
func (a *storageAttempt) seesRefusal(w *World, why event.Problem) {
	upload := a.ask.upload.LSN > 0
	w.note(why == event.QuotaExceeded && a.ask.isPut(), "a put is refused by a quota")
	w.note(why == event.CapacityExceeded, "a command finds a table full")
	w.note(why == event.PreconditionFailed && a.ask.kind == askPutNamed, "a conditional put is refused")
	w.note(why == event.InProgress && upload, "a stale completion is refused")
	w.note(why == event.PaymentRequired && !a.paid, "a put without a payment is refused")
	w.note(why == event.PaymentExpired && a.late, "a paid put comes after its hold expired")
}

// forgets removes an upload that has ended from those that clients know.
func (s *storageWorld) forgets(id types.Position) {
	for i := range s.uploads {
		if s.uploads[i].id == id {
			s.uploads = append(s.uploads[:i], s.uploads[i+1:]...)
			return
		}
	}
}

// insist submits what storage clients still want, without choices of new requests.
func (s *storageWorld) insist(w *World) {
	if s.files != nil && !s.files.tends(w) {
		return
	}
	for _, c := range s.clients {
		if c.want != nil && c.out == 0 {
			c.ask(w)
		}
	}
}

// busy reports whether a storage client has a request.
func (s *storageWorld) busy() bool {
	for _, c := range s.clients {
		if c.want != nil {
			return true
		}
	}
	return s.files != nil && s.files.store == nil
}
