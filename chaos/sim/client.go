package sim

import (
	"fmt"

	"macronode/core/event"
	"macronode/core/words"
)

// A client wants one thing at a time, and asks under one key until it knows.
type client struct {
	account string // its own; two clients may share one
	tenant  words.Tenant
	mark    string // begins its keys
	want    *event.Request
	out     words.Ticket // asked, not answered; 0 when it is not waiting
	nonce   words.Nonce  // what it believes to be next
	told    words.Nonce  // the greatest expected one that it was told
	keys    int
	past    []*event.Request
}

// people: the third shares its account with the first; the fourth belongs to a
// tenant that has no key here.
func people() (all []*client) {
	for i, account := range []string{"ann", "bob", "ann", "eve"} {
		tenant := words.DefaultTenant
		if account == "eve" {
			tenant = 2
		}
		all = append(all, &client{account: account, tenant: tenant, mark: string(rune('a' + i)), nonce: 1})
	}
	return all
}

// move: wish for something, ask for it, or leave.
func (c *client) move(w *World) {
	switch {
	case c.out != 0 && w.c.Choose("leave", 24) < w.odds.leave:
		w.Saw["client left"]++
		w.late = append(w.late, event.Cancel{Ticket: c.out})
		w.promise.left[c.out] = true
		delete(w.asked, c.out)
		c.out = 0 // it will ask again: it does not know
	case c.out != 0:
	case c.want == nil:
		c.want = c.wish(w)
	default:
		c.ask(w)
	}
}

// insist is asking without anything else to do.
func (c *client) insist(w *World) {
	if c.want != nil && c.out == 0 {
		c.ask(w)
	}
}

func (c *client) ask(w *World) {
	w.ticket++
	in := *c.want
	in.Ticket = words.NewTicket(uint32(w.ticket%8), w.ticket)
	c.out = in.Ticket
	w.enter, w.asked[in.Ticket] = append(w.enter, &in), c
}

// wish makes up a request: mostly a new one; sometimes an old one again, sometimes
// an old key for something else.
func (c *client) wish(w *World) *event.Request {
	if len(c.past) > 0 && w.c.Choose("again", 4) == 1 {
		old := *c.past[w.c.Choose("which past", len(c.past))]
		if w.c.Choose("conflict", 3) == 1 {
			old.Amount = words.Units(old.Amount.Lo + 1)
			old.Seal(nil)
		}
		return &old
	}
	c.keys++
	r := &event.Request{Caller: boss.ID, Tenant: c.tenant, Op: event.Op(1 + w.c.Choose("op", 3))}
	r.Key.Text = fmt.Appendf(nil, "%s%d", c.mark, c.keys)
	r.Asset.Text = []byte([]string{"EUR/2", "EUR/2", "EUR/2", "GBP", "JPY", "XAU"}[w.c.Choose("asset", 6)])
	r.Amount = words.Units(uint64(1 + w.c.Choose("amount", 9)))
	if w.c.Choose("much", 8) == 1 {
		r.Amount = words.Units(uint64(30 + w.c.Choose("how much", 20)))
	}
	if r.Op != event.Issue {
		r.From.Text, r.Nonce = []byte(c.account), c.nonce
		switch w.c.Choose("nonce", 10) {
		case 8:
			r.Nonce = max(1, r.Nonce-1)
		case 9:
			r.Nonce++
		}
	} else {
		r.To.Text = []byte(c.account)
		r.Amount.Lo += 5
	}
	if r.Op == event.Transfer {
		others := []string{"ann", "bob", "shop", "till", "cat", "dog", "eel"}
		if r.To.Text = []byte(others[w.c.Choose("to", len(others))]); string(r.To.Text) == c.account {
			r.To.Text = []byte("shop")
		}
	}
	if w.c.Choose("memo", 4) == 1 {
		r.Memo = []byte("for tea")
	}
	r.Seal(nil)
	return r
}

// reply is what comes back for a ticket.
func (w *World) reply(r event.Reply) {
	c := w.asked[r.Ticket]
	if c == nil {
		if !w.promise.left[r.Ticket] {
			w.fail("a reply for nobody: %+v", r)
		}
		return
	}
	delete(w.asked, r.Ticket)
	c.out = 0
	if r.After > w.fol.Mark() || r.After > w.promise.durable {
		w.fail("a reply before its frame: %+v, folded %v, durable %v", r, w.fol.Mark(), w.promise.durable)
	}
	if at := w.promise.saw[r.Ticket]; !blank(r.Problem) && !r.Replayed && at > w.fol.Mark() {
		w.fail("%v tells of %v, folded %v", r.Problem, at, w.fol.Mark())
	}
	w.Saw[fmt.Sprint("told ", r.Problem)]++
	switch r.Problem {
	case event.None:
		c.learn(w, r)
	case event.NonceAhead:
		c.want, c.nonce, c.told = nil, r.Nonce, max(c.told, r.Nonce)
	case event.Busy, event.Unavailable, event.Unknown, event.InProgress, event.IdempotencyFull:
		return // it asks again, under the same key
	case event.Forbidden:
		if c.tenant == boss.Tenant && w.fol.Bootstrapped() && r.After > 2 {
			w.fail("forbidden to the boss: %+v", r)
		}
		if c.tenant != boss.Tenant {
			c.want = nil
		}
	case event.IdempotencyConflict:
		if !w.promise.knows(c.want) {
			w.fail("conflict on a key that never asked anything else: %s", c.want.Key.Text)
		}
		c.want = nil
	default:
		c.want = nil
	}
}

// blank problems tell nothing that a crash could take back. The list is written out
// here, because the node's own is what is on trial.
func blank(p event.Problem) bool {
	switch p {
	case event.Busy, event.Unavailable, event.Unknown, event.InProgress, event.IdempotencyFull, event.BadRequest:
		return true
	default:
		return false
	}
}

// learn reads an answer, which is true for ever.
func (c *client) learn(w *World, r event.Reply) {
	answer, status, owner, err := w.fol.Render(nil, r.Place)
	if err != nil && w.disk.Dead() {
		return // the power went while it was read: nobody was told
	}
	if err != nil || owner != c.tenant {
		w.fail("no answer at %v for tenant %d: %s", r.Place, owner, answer)
		return
	}
	if r.Replayed {
		w.Saw["replayed"]++
	}
	w.promise.told(w, c.want, r, answer)
	if !r.Replayed {
		c.past = append(c.past, c.want)
	}
	if status == 200 && c.want.Op != event.Issue {
		c.nonce = max(c.nonce, c.want.Nonce+1)
	} else if status != 200 {
		w.Saw[fmt.Sprint("stored ", status)]++
		_, c.nonce = w.balance(c.account, "EUR/2")
	}
	c.want = nil
}

func (w *World) balance(account, asset string) (words.Amount, words.Nonce) {
	b := w.fol.Balance(words.DefaultTenant, []byte(account), []byte(asset))
	return b.Amount, b.Next
}
