package sim

import (
	"errors"
	"fmt"
	"slices"

	"macronode/adapters/journalfile"
	"macronode/chaos/world"
	"macronode/core/event"
	"macronode/core/types"
)

// reply handles the reply to a ticket.
func (w *World) reply(r event.Reply) {
	if then := w.clerk.admin[r.Ticket]; then != nil {
		delete(w.clerk.admin, r.Ticket)
		then(r)
		return
	}
	w.checkReply(r)
	if w.exportsReply(r) || slices.ContainsFunc(w.planes, func(p planeWorkload) bool { return p.replied(w, r) }) {
		return
	}
	if lasts(r.Problem) {
		w.fail("refusal-without-record", "%v is told and not kept: %+v", r.Problem, r)
	}
	if r.Problem != event.None {
		w.testified.returns(r, nil)
	}
	if two, ok := w.copies[r.Ticket]; ok {
		delete(w.copies, r.Ticket)
		w.settles(two.pass, 300)
		w.again(two, r)
		return
	}
	c := w.asked[r.Ticket]
	if c == nil {
		if !w.promise.left[r.Ticket] {
			w.fail("reply-for-nobody", "a reply for nobody: %+v", r)
		}
		return
	}
	delete(w.asked, r.Ticket)
	c.out = 0
	w.settles(&c.pass, 300)
	if at := w.promise.saw[r.Ticket]; !blank(r.Problem) && !r.Replayed && at > w.fol.Mark() {
		w.fail("refusal-before-frame", "%v tells of %v, folded %v", r.Problem, at, w.fol.Mark())
	}
	w.Saw["replied "+r.Problem.Code()]++
	if w.recording != nil {
		w.tell(clients, decider, answeredTone, "%s: %s", c.want.Key.Text, answers(r))
	}
	w.counts(c, c.sent, c.class, r)
	if w.asleep && r.Problem == event.OutcomeUnknown {
		w.Saw["woke from a pause and gave up"]++
	}
	switch r.Problem {
	case event.StaleIndexRead:
		w.Saw["sent back to look again"]++
		return
	case event.None:
		c.learn(w, r)
	case event.NonceAhead:
		if c.want.Op != event.Batch { // there it follows from the items before
			c.nonce, c.answered = r.Nonce, max(c.answered, r.Nonce)
		}
		c.want = nil
	case event.OutcomeUnknown:
		c.doubts = true
		return
	case event.Busy, event.Unavailable, event.InProgress, event.IdempotencyCapacity:
		return // it retries under the same key
	case event.Forbidden, event.RefReserved, event.Unauthorized:
		c.forbidden(w, r)
	case event.IdempotencyConflict:
		if !w.testified.otherwise(c.number, c.want) {
			w.fail("conflict", "conflict on a key that never asked anything else: %s", c.want.Key.Text)
		}
		c.want = nil
	default:
		c.want = nil
	}
}

// checkReply checks what holds for every reply.
func (w *World) checkReply(r event.Reply) {
	if w.clerk.bars[r.Ticket] && !blank(r.Problem) && r.Problem != event.Unauthorized {
		w.fail("revoked-key", "a key that was revoked: %+v", r)
	}
	if r.After > w.fol.Mark() || r.After > w.promise.durable {
		w.fail("reply-before-frame", "a reply before its frame: %+v, folded %v, durable %v", r, w.fol.Mark(), w.promise.durable)
	}
}

// forbidden is correct for clients without a key or with the key of another account only.
func (c *client) forbidden(w *World, r event.Reply) {
	switch {
	case c.tenant != boss.Tenant:
		c.want = nil
	case c.caller != boss.ID:
		w.note(r.Problem == event.RefReserved, "a reserved ref is refused")
		c.caller, c.want = boss.ID, nil
	case r.Problem == event.RefReserved, w.fol.Bootstrapped() && r.After > 2:
		w.fail("forbidden", "forbidden to the boss: %+v", r)
	}
}

// blank problems show nothing that a crash could undo. The list is repeated here, because the
// node's own is under test.
func blank(p event.Problem) bool {
	switch p {
	case event.Busy, event.Unavailable, event.OutcomeUnknown, event.InProgress, event.IdempotencyCapacity, event.StaleIndexRead, event.BadRequest, event.EventsDeferred:
		return true
	default:
		return false
	}
}

// again checks the answer to the copy of a request: that of the first, or none.
func (w *World) again(two second, r event.Reply) {
	want := two.want
	w.counts(two.of, want, two.class, r)
	w.Saw["copy got "+r.Problem.Code()]++
	if r.Problem != event.None {
		return
	}
	answer, _, _, err := w.fol.Render(nil, r.Position)
	if err == nil {
		w.testified.returns(r, answer)
		w.promise.answered(w, want, r, answer)
		return
	}
	if !w.unread(err) {
		w.fail("no-answer", "no answer at %v: %v", r.Position, err)
	}
}

// unread reports whether err is a disk error, so that no answer was sent.
func (w *World) unread(err error) bool {
	if errors.Is(err, world.ErrRead) {
		w.Saw["an answer that the disk did not give"]++
	}
	return w.disk.Dead() || errors.Is(err, world.ErrRead) || w.harmed && errors.Is(err, journalfile.ErrDamaged)
}

// lasts reports whether a problem is stored, so that a record has it. This list is repeated too.
func lasts(p event.Problem) bool {
	switch p {
	case event.AmountLimitExceeded, event.SupplyLimitExceeded, event.InsufficientFunds, event.NonceUsed, event.RefUsed, event.HoldNotActive, event.NotBeneficiary, event.HoldAmountExceeded:
		return true
	default:
		return false
	}
}

// comesAgain reports whether a request may be repeated later: not with a nonce that may become
// valid, nor a batch that may use a ref twice.
func (c *client) comesAgain() bool {
	return c.class < NonceHigh && !(c.class == OldRef && c.want.Op == event.Batch) || c.class == Again || c.class == Other
}

// learn handles an answer, which is permanent.
func (c *client) learn(w *World, r event.Reply) {
	answer, status, owner, err := w.fol.Render(nil, r.Position)
	if err != nil && w.unread(err) {
		return // the answer was not sent
	}
	if err != nil || owner != c.tenant {
		w.fail("no-answer", "no answer at %v for tenant %d: %s", r.Position, owner, answer)
		return
	}
	if r.Replayed {
		w.Saw["replayed"]++
	}
	if r.Replayed && r.Position.LSN <= w.audit.forgot {
		w.Saw["replayed of the index"]++
	}
	w.testified.returns(r, answer)
	w.promise.answered(w, c.want, r, answer)
	if !r.Replayed && c.comesAgain() {
		c.past = append(c.past, c.want)
	}
	if status != 200 {
		w.Saw[fmt.Sprint("stored ", status)]++
	}
	_, c.nonce = w.balance(c.account, "EUR/2")
	if c.want.Op == event.Hold && status == 200 {
		c.holds = append(c.holds, hold{id: types.NewTxID(w.jour.ID(), r.Position), asset: c.want.Asset.Text, to: c.want.To})
	}
	c.want = nil
}

func (w *World) balance(account, asset string) (types.Amount, types.Nonce) {
	b := w.fol.Balance(types.DefaultTenant, []byte(account), []byte(asset))
	return b.Amount, b.NextNonce
}
