package sim

import (
	"fmt"
	"slices"
	"time"

	"macronode/core/event"
	"macronode/core/words"
)

// wish makes up a request: mostly a new one; sometimes an old one again, sometimes
// an old key for something else. In a life with a goal most are on the way there, and
// nothing is wished for where others have to come first.
func (c *client) wish(w *World) *event.Request {
	c.class, c.doubts, c.boss, c.aims = Plain, false, false, false
	if w.goal.set && (w.c.Choose("goal/free", 5) != 1 || w.goal.wants(event.TooMany)) {
		if w.goal.wants(event.TooMany) && c != w.clients[1] && c.tenant == boss.Tenant {
			return c.sealed(w, &event.Request{Item: c.fills(w)})
		}
		if item, any := c.before(w); any {
			if c.boss, c.class = c.caller != boss.ID, mixed; w.goal.once() && item.Op != event.Issue && item.Amount == words.Units(30) {
				if c.class = Large; w.goal.Op == event.Batch { // it comes again
					return c.sealed(w, &event.Request{Item: event.Item{Op: event.Batch}, Atomic: true, Items: []event.Item{item}})
				}
			}
			return c.sealed(w, &event.Request{Item: item})
		}
		if c.idles(w) {
			return nil
		}
		if w.goal.wants(event.IdempotencyFull) && w.goal.Class != Again && w.goal.Class != Other && w.held() < limits().Idem.Share {
			c.class = mixed
			return c.sealed(w, &event.Request{Item: c.issue(1)})
		}
		c.aims = true
	}
	g := w.goal.Cell
	again := c.aims && (g.Class == Again || g.Class == Other || g.Class == Barred && w.goal.wants(event.IdempotencyConflict))
	if c.aims && w.goal.wants(event.LookAgain) && !w.goal.waited {
		w.goal.waited = true
		w.forget()
	}
	past := c.past
	if again {
		past = c.kept(g.Op)
	}
	if len(past) > 0 && (again || !c.aims && w.c.Choose("again", 4) == 1) {
		c.class = Again
		old := *past[w.c.Choose("again/which", len(past))]
		switch {
		case !again || !w.waits():
		case !w.goal.wants(event.IdempotencyFull):
			w.forget()
		case w.full(): // of keys that are younger
			old = *past[0]
		default:
			c.class = mixed
			return c.sealed(w, &event.Request{Item: c.issue(1)})
		}
		crossed := again && g.Class == Again && w.goal.wants(event.IdempotencyConflict)
		if c.crossed = crossed && !c.crossed; c.crossed { // first something else comes of the key
			w.forget()
		}
		if crossed {
			old = *past[0]
		}
		if again && g.Class != Again || c.crossed || !again && w.c.Choose("again/conflict", 3) == 1 {
			c.class = Other
			old.Items = slices.Clone(old.Items)
			for _, item := range old.Each {
				item.Memo = []byte("for something else")
			}
			old.Seal(nil)
		}
		return &old
	}
	r := &event.Request{}
	if c.aims && g.Op == event.Batch || !c.aims && w.c.Choose("batch", 6) == 1 {
		r.Op, r.Atomic = event.Batch, w.c.Choose("batch/atomic", 2) == 1
		c.items(w, r)
	} else {
		r.Item = c.item(w, c.class == Plain)
	}
	if c.aims && (g.Class == Malformed || g.Class >= Barred && w.goal.wants(event.BadRequest)) || !c.aims && w.c.Choose("malformed", 30) == 1 {
		c.malform(r)
	}
	return c.sealed(w, r)
}

// full reports that a tenant has as many keys as it may, after those of before were
// forgotten once.
func (w *World) full() bool {
	if !w.goal.waited {
		w.goal.waited = true
		w.forget()
	}
	return w.held() >= limits().Idem.Share
}

// held is how many keys and refs the window has.
func (w *World) held() int {
	var s event.Status
	w.node.Status(&s)
	return int(s.Keys)
}

// waits reports that what is asked again shall be asked when its key is forgotten.
func (w *World) waits() bool {
	switch {
	case w.goal.wants(event.IdempotencyConflict, event.Busy):
		return false
	case w.goal.wants(event.None, event.InsufficientFunds, event.NonceUsed, event.RefUsed, event.OverAmount, event.OverHold, event.HoldState):
		return w.goal.Class == Other || w.c.Choose("goal/waits", 4) == 1
	}
	return true
}

// sealed gives r to c, under a new key.
func (c *client) sealed(w *World, r *event.Request) *event.Request {
	c.keys++
	r.Tenant = c.tenant
	r.Key.Text = fmt.Appendf(nil, "%s%d", c.mark, c.keys)
	r.Seal(nil)
	if err := r.Sane(); err != nil && !c.malformed {
		w.fail("wish", "%s wishes for what is no operation: %v: %+v", c.account, err, r)
	}
	c.malformed = false
	return r
}

// items makes up those of a batch. Each that pays uses the nonce after those before it.
func (c *client) items(w *World, r *event.Request) {
	paid := words.Nonce(0)
	most := 1 + w.c.Choose("batch/items", 4)
	if c.aims && w.goal.Class == OldRef {
		most = max(most, 2)
	}
	if c.aims && w.goal.Outcome != event.None && decided(w.goal.Outcome) {
		most, r.Atomic = 2, true
	}
	for n := range most {
		item := c.item(w, n == most-1)
		if c.aims && n < most-1 && len(w.goal.refuser()) == 0 {
			item = c.issue(12)
		}
		if item.Op > event.Release {
			item.Op, item.From, item.To, item.Amount = event.Issue, words.Name{}, name(c.account), words.Units(6)
			item.Asset = name("EUR/2")
		}
		if item.Nonce > 0 {
			item.Nonce += paid
			paid++
		}
		r.Items = append(r.Items, item)
	}
}

// malform makes of r what is no operation: with an amount where there is none, or without.
func (c *client) malform(r *event.Request) {
	c.special(Malformed)
	c.malformed = true
	for _, item := range r.Each {
		if item.Amount.Zero() {
			item.Amount = words.Units(1)
		} else {
			item.Amount = words.Amount{}
		}
	}
}

func name(s string) words.Name { return words.Name{Text: []byte(s)} }

// item makes up one operation; one that aims has what the goal's class is, and nothing else
// that is special.
func (c *client) item(w *World, last bool) (r event.Item) {
	ops := []event.Op{event.Issue, event.Issue, event.Issue, event.Transfer, event.Burn, event.Hold, event.Capture, event.Release, event.Issue, event.Issue, event.Transfer, event.Burn,
		event.Hold, event.Hold, event.Capture, event.Capture, event.Release, event.Unfreeze, event.Unfreeze, event.Freeze}
	g := w.goal.Cell
	aims := c.aims && last
	r.Op = ops[w.c.Choose("op", len(ops))]
	switch {
	case c.aims && g.Op != event.Batch:
		r.Op = g.Op
	case c.aims:
		ops = g.featured()
		if !last {
			ops = g.refuser()
		}
		if len(ops) > 0 {
			r.Op = ops[w.c.Choose("goal/item", len(ops))]
		}
	}
	if len(c.holds) == 0 && (r.Op == event.Capture || r.Op == event.Release) {
		if r.Op = event.Hold; c.aims {
			c.special(mixed)
		}
	}
	r.Asset = name([]string{"EUR/2", "EUR/2", "EUR/2", "EUR/2", "EUR/2", "GBP", "JPY", "XAU"}[w.c.Choose("asset", 8)])
	if c.aims && !(g.Op == event.Issue && w.goal.wants(event.TooMany)) {
		r.Asset = name("EUR/2")
	}
	moves := r.Op <= event.Capture
	r.Amount = words.Units(uint64(1 + w.c.Choose("amount", 9)))
	if c.aims && w.goal.wants(event.OverDay, event.InsufficientFunds, event.OverHold) {
		r.Amount = words.Units(9)
	}
	if moves && (aims && (g.Class == Large || g.Class >= Again && w.goal.wants(event.OverAmount)) || !c.aims && w.c.Choose("amount/large", 8) == 1) {
		c.special(Large)
		r.Amount = words.Units(uint64(20 + w.c.Choose("amount/much", 30)))
		if aims && !w.goal.wants(event.OverAmount) {
			r.Amount = words.Units(20 + r.Amount.Lo%10) // what may be moved
		}
	}
	c.ref(w, &r, aims)
	if w.c.Choose("memo", 4) == 1 {
		r.Memo = []byte("for tea")
	}
	c.sides(w, &r, aims)
	return r
}

// refuser are the operations of the item for which a batch of the goal is refused; none, where
// it is not, or for what is special about it.
func (g Cell) refuser() []event.Op {
	switch g.Outcome {
	case event.InsufficientFunds:
		return []event.Op{event.Transfer, event.Burn, event.Hold}
	case event.OverHold:
		return []event.Op{event.Capture}
	case event.HoldState:
		return []event.Op{event.Capture, event.Release}
	case event.BadExpiry:
		return []event.Op{event.Hold}
	case event.OverDay:
		return []event.Op{event.Issue, event.Transfer, event.Burn}
	case event.TooMany:
		return []event.Op{event.Issue, event.Transfer, event.Hold}
	case event.AccountFrozen:
		return []event.Op{event.Transfer, event.Burn, event.Hold}
	default:
		return nil
	}
}

// featured are the operations of the item that has what is special, behind it.
func (g Cell) featured() []event.Op {
	switch g.Class {
	case Large:
		return []event.Op{event.Issue, event.Transfer, event.Burn, event.Hold}
	case NonceLow, NonceHigh:
		return []event.Op{event.Transfer, event.Burn, event.Hold}
	default:
		return nil
	}
}

// ref gives an operation a name of the caller's own: a new one, or one of before.
func (c *client) ref(w *World, r *event.Item, aims bool) {
	old := aims && c.refs > 0 && (w.goal.Class == OldRef || w.goal.Class >= Again && w.goal.wants(event.RefUsed))
	if !old && !(aims && (w.outlives() || w.goal.wants(event.LookAgain))) && w.c.Choose("ref", 5) != 1 {
		return
	}
	if old || !c.aims && w.c.Choose("ref/old", 3) == 1 && c.refs > 0 {
		c.special(OldRef)
		c.unused = false
	} else {
		c.refs++
	}
	r.Ref.Text = c.named()
}

// named is the last ref of c.
func (c *client) named() []byte { return fmt.Appendf(nil, "%c%d", c.mark[0]&^32, c.refs) }

// sides fills in who pays and who is paid.
func (c *client) sides(w *World, r *event.Item, aims bool) {
	others := []string{"ann", "bob", "shop", "till", "cat", "dog", "eel"}
	other := others[w.c.Choose("to", len(others))]
	if other == c.account || c.aims && w.goal.Class == Barred && r.Op == event.Capture {
		other = "shop"
	}
	if c.aims && w.goal.wants(event.TooMany) {
		other = elsewhere
	}
	r.From = name(c.account)
	switch r.Op {
	case event.Issue:
		r.From, r.To = words.Name{}, name(c.account)
		r.Amount.Lo += 11
		return
	case event.Transfer:
		r.To = name(other)
	case event.Hold:
		if w.c.Choose("hold/for", 3) == 1 {
			r.To = name(other)
		}
		r.Until = c.until(w)
	case event.Capture, event.Release:
		c.ends(w, r, other)
		return
	case event.Freeze, event.Unfreeze:
		r.Asset, r.Amount = words.Name{}, words.Amount{}
		return
	case event.Burn, event.Batch: // nobody is paid
	}
	r.Nonce = c.nonce
	how := w.c.Choose("nonce", 11)
	if c.aims {
		how = 0
		if aims {
			how = map[Class]int{NonceLow: 8, NonceHigh: 9}[w.goal.Class]
			switch {
			case w.goal.Class == Barred && w.goal.wants(event.NonceUsed):
				how = 8
			case w.goal.Class == Barred && w.goal.wants(event.NonceAhead):
				how = 9
			}
		}
	}
	switch how {
	case 8:
		if r.Nonce > 1 {
			c.special(NonceLow)
			r.Nonce--
		}
	case 9:
		c.special(NonceHigh)
		r.Nonce += 1000 // nobody comes there
	case 10:
		c.special(mixed) // right, if another of the account asks in between
		r.Nonce++
	}
}

// until is the end of a hold: soon, later, or so far ahead that it may as well have none.
func (c *client) until(w *World) words.Time {
	long := []int{9_000, 60_000, 1000}[w.c.Choose("hold/long", 3)]
	r := w.now.Wall.Plus(time.Duration(w.c.Choose("hold/until", long)) * time.Millisecond)
	if c.aims && !w.goal.wants(event.BadExpiry) {
		return r.Plus(10 * time.Second)
	}
	if long == 1000 {
		r = r.Plus(words.HoldFor + time.Hour)
	}
	return r
}

// ends fills in which hold is captured or released.
func (c *client) ends(w *World, r *event.Item, other string) {
	which := len(c.holds) - 1 - w.c.Choose("hold/which", min(4, len(c.holds)))
	if fresh := c.fresh(); c.aims && fresh >= 0 && !w.goal.wants(event.HoldState) {
		which = fresh
	}
	h := &c.holds[which]
	h.tried = true
	r.Hold, r.Asset = h.id, words.Name{Text: h.asset}
	if r.Op == event.Release {
		r.Amount = words.Amount{}
		return
	}
	if r.To = name(other); len(h.to.Text) > 0 && w.c.Choose("hold/another", 4) != 1 {
		r.To = words.Name{Text: h.to.Text}
	}
}
