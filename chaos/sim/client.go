package sim

import (
	"slices"

	"macronode/core/event"
	"macronode/core/types"
)

// A client makes one request at a time, under one key until it has the outcome.
type client struct {
	number    int    // among all
	account   string // its own; two clients may share one
	tenant    types.Tenant
	mark      string // prefix of its keys
	want      *event.Request
	doubts    bool         // the outcome of its request is unknown
	out       types.Ticket // called, not answered; 0: none
	nonce     types.Nonce  // the next nonce that it expects
	answered  types.Nonce  // the largest expected nonce that it got
	keys      int
	refs      int
	past      []*event.Request
	holds     []hold         // opened by it
	asking    *event.Request // has read the mark of the index, and is not submitted yet
	pass      pass           // at the gate
	caller    types.KeyID
	class     Class          // of its request
	aims      bool           // at the goal
	unused    bool           // its last ref was rejected
	crossed   bool           // its oldest key was last used for another request
	boss      bool           // uses the administrator's key
	malformed bool           // its request is invalid on purpose
	sent      *event.Request // the invalid request as sent
}

// hold is a hold that was acknowledged.
type hold struct {
	id    types.TxID
	asset []byte
	tried bool       // a request to end it was made
	to    types.Name // its beneficiary, if it has one
}

// people returns the clients: the third shares its account with the first; the fourth belongs to
// a tenant without a key.
func people() (all []*client) {
	for i, account := range []string{"ann", "bob", "ann", "eve"} {
		tenant := types.DefaultTenant
		if account == "eve" {
			tenant = 2
		}
		all = append(all, &client{number: i, account: account, tenant: tenant, mark: string(rune('a' + i)), nonce: 1, caller: boss.ID})
	}
	return all
}

// move makes a request, submits it, or cancels it.
func (c *client) move(w *World) {
	switch {
	case c.out != 0 && w.odd("leave", 24, w.odds.leave):
		c.leave(w)
	case c.out != 0:
	default:
		if c.want != nil && c.doubts && !(c.aims && w.outlives()) && w.c.Choose("gives-up", 4) == 1 {
			w.giveUp(c)
		}
		if c.want != nil && c.doubts && c.aims && w.outlives() {
			w.forget()
		}
		if c.want == nil {
			c.want = c.wish(w)
		}
		c.insist(w)
	}
}

// leave cancels the request: the client retries later, because the outcome is unknown.
func (c *client) leave(w *World) {
	w.Saw["client left"]++
	w.tell(clients, noLane, trouble, "%s leaves", c.account)
	w.late = append(w.late, event.Cancel{Ticket: c.out})
	w.promise.left[c.out] = true
	delete(w.asked, c.out)
	c.out, c.doubts = 0, true
	w.settles(&c.pass, 0)
}

// giveUp abandons a request with an unknown outcome: only the journal has it.
func (w *World) giveUp(c *client) {
	w.Saw["client gave up"]++
	c.want, c.asking, c.doubts = nil, nil, false
	_, c.nonce = w.balance(c.account, "EUR/2")
}

// insist retries without other moves.
func (c *client) insist(w *World) {
	if c.want != nil && c.out == 0 {
		c.ask(w)
	}
}

// ask has two moves: read the mark of the index, and look up. Some skip the look-up, and some
// have to repeat it.
func (c *client) ask(w *World) {
	if c.asking == nil {
		in := *c.want
		in.Items = slices.Clone(c.want.Items)
		if in.Caller, in.IndexedTo = c.caller, w.index.mark; c.boss {
			in.Caller = boss.ID
		}
		c.asking = &in
		if w.c.Choose("asks/at-once", 2) == 1 {
			return
		}
	}
	if !w.admitted(&c.pass, c.arrival(w)) {
		if c.pass.why == event.RejectClassDisabled { // the class is not served
			c.want, c.asking, c.doubts = nil, nil, false
		}
		return
	}
	in := c.asking
	c.asking = nil
	if blind := w.c.Choose("blind", 6); blind == 1 || blind > 2 && w.goal.wants(event.StaleIndexRead) {
		in.IndexedTo = 0
	} else {
		w.index.look(in)
	}
	w.ticket++
	in.Ticket, in.Permit = types.NewTicket(uint32(w.ticket%8), w.ticket), c.pass.ticket
	c.out, c.sent = in.Ticket, in
	w.enter, w.asked[in.Ticket] = append(w.enter, in), c
	if w.recording != nil {
		w.tell(clients, noLane, plain, "%s asks %s: %s", c.account, in.Key.Text, asks(in))
	}
	w.clerk.bar(in)
	w.testified.calls(c.number, in)
	if w.odd("twin", 12, w.odds.duplicate) {
		w.double(c, in)
	}
	if c.aims && (c.class == w.goal.Class || w.goal.Class >= Barred) {
		w.bend(c, in)
	}
}

// second is the copy of a request that is sent twice.
type second struct {
	want  *event.Request
	of    *client
	class Class
	pass  *pass
}

// double sends a request a second time, as an impatient proxy does.
func (w *World) double(c *client, in *event.Request) {
	p := new(pass)
	if !w.admitted(p, c.arrival(w)) {
		w.leaves(p)
		return
	}
	again := *in
	again.Items = slices.Clone(in.Items)
	w.ticket++
	again.Ticket, again.Permit = types.NewTicket(uint32(w.ticket%8), w.ticket), p.ticket
	w.enter, w.copies[again.Ticket] = append(w.enter, &again), second{&again, c, c.class, p}
	w.clerk.bar(&again)
	w.testified.calls(c.number, &again)
	w.tell(clients, noLane, trouble, "%s is sent twice", in.Key.Text)
}

// overtake reorders two waiting requests.
func (w *World) overtake() {
	if len(w.enter) < 2 || !w.odd("overtake", 8, w.odds.reorder) {
		return
	}
	a, b := w.enter[0], w.enter[1]
	w.enter[0], w.enter[1] = b, a
	w.Saw["overtaken"]++
	if len(a.From.Text) > 0 && string(a.From.Text) == string(b.From.Text) {
		w.Saw["overtaken by its own account's"]++
	}
}
