package sim

import (
	"slices"

	"macronode/core/event"
	"macronode/core/types"
)

// A client wants one thing at a time, and asks under one key until it knows.
type client struct {
	number    int    // among all
	account   string // its own; two clients may share one
	tenant    types.Tenant
	mark      string // begins its keys
	want      *event.Request
	doubts    bool         // what it wants may be done, and nobody said so
	out       types.Ticket // asked, not answered; 0 when it is not waiting
	nonce     types.Nonce  // what it believes to be next
	told      types.Nonce  // the greatest expected one that it was told
	keys      int
	refs      int
	past      []*event.Request
	holds     []hold         // that it has opened
	asking    *event.Request // has read how far the index is, and not yet asked it
	pass      pass           // at the gate
	caller    types.KeyID
	class     Class          // of what it wants
	aims      bool           // at the goal
	unused    bool           // its last ref was refused
	crossed   bool           // its oldest key has asked for something else last
	boss      bool           // asks as the boss
	malformed bool           // what it wishes for is no operation, on purpose
	sent      *event.Request // that, as it was asked
}

// hold is one that somebody was told of.
type hold struct {
	id    types.TxID
	asset []byte
	tried bool       // to end it
	to    types.Name // its beneficiary, if it has one
}

// people: the third shares its account with the first; the fourth belongs to a
// tenant that has no key here.
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

// move: wish for something, ask for it, or leave.
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

// leave is to wait no longer: it will ask again, because it does not know.
func (c *client) leave(w *World) {
	w.Saw["client left"]++
	w.tell(clients, nobody, trouble, "%s leaves", c.account)
	w.late = append(w.late, event.Cancel{Ticket: c.out})
	w.promise.left[c.out] = true
	delete(w.asked, c.out)
	c.out, c.doubts = 0, true
	w.settles(&c.pass, 0)
}

// giveUp leaves what is not known as it is: only the journal knows what became of it.
func (w *World) giveUp(c *client) {
	w.Saw["client gave up"]++
	c.want, c.asking, c.doubts = nil, nil, false
	_, c.nonce = w.balance(c.account, "EUR/2")
}

// insist is asking without anything else to do.
func (c *client) insist(w *World) {
	if c.want != nil && c.out == 0 {
		c.ask(w)
	}
}

// ask is two moves: how far the index is, and what it says. Some do not ask it, and some
// have to ask again.
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
	if !w.admitted(&c.pass, c.arrival()) {
		if c.pass.why == event.RejectClassDisabled { // strangers are not served here
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
	in.Ticket = types.NewTicket(uint32(w.ticket%8), w.ticket)
	c.out, c.sent = in.Ticket, in
	w.enter, w.asked[in.Ticket] = append(w.enter, in), c
	if w.story != nil {
		w.tell(clients, nobody, plain, "%s asks %s: %s", c.account, in.Key.Text, asks(in))
	}
	w.clerk.bar(in)
	w.said.calls(c.number, in)
	if w.odd("twin", 12, w.odds.twin) {
		w.double(c, in)
	}
	if c.aims && (c.class == w.goal.Class || w.goal.Class >= Barred) {
		w.bend(c, in)
	}
}

// second is that of a request that is sent twice.
type second struct {
	want  *event.Request
	of    *client
	class Class
	pass  *pass
}

// double sends a request a second time, as a proxy does that lost patience.
func (w *World) double(c *client, in *event.Request) {
	p := new(pass)
	if !w.admitted(p, c.arrival()) {
		w.leaves(p)
		return
	}
	again := *in
	again.Items = slices.Clone(in.Items)
	w.ticket++
	again.Ticket = types.NewTicket(uint32(w.ticket%8), w.ticket)
	w.enter, w.twins[again.Ticket] = append(w.enter, &again), second{&again, c, c.class, p}
	w.clerk.bar(&again)
	w.said.calls(c.number, &again)
	w.tell(clients, nobody, trouble, "%s is sent twice", in.Key.Text)
}

// overtake lets the second who waits go first.
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
