package sim

import (
	"fmt"
	"slices"
	"time"

	"macronode/core/event"
	"macronode/core/words"
)

// wish makes up a request: mostly a new one; sometimes an old one again, sometimes
// an old key for something else.
func (c *client) wish(w *World) *event.Request {
	c.class, c.doubts = Plain, false
	if len(c.past) > 0 && w.c.Choose("again", 4) == 1 {
		c.special(Again)
		old := *c.past[w.c.Choose("again/which", len(c.past))]
		if w.c.Choose("again/conflict", 3) == 1 {
			c.special(Other)
			old.Items = slices.Clone(old.Items)
			for _, item := range old.Each {
				item.Memo = []byte("for something else")
			}
			old.Seal(nil)
		}
		return &old
	}
	c.keys++
	r := &event.Request{Tenant: c.tenant}
	r.Key.Text = fmt.Appendf(nil, "%s%d", c.mark, c.keys)
	if w.c.Choose("batch", 6) == 1 {
		r.Op, r.Atomic = event.Batch, w.c.Choose("batch/atomic", 2) == 1
		for n := range 1 + w.c.Choose("batch/items", 4) {
			item := c.item(w)
			if item.Op > event.Release {
				item.Op, item.From, item.To, item.Amount = event.Issue, words.Name{}, name(c.account), words.Units(6)
				item.Asset = name("EUR/2")
			}
			if item.Nonce > 0 && w.c.Choose("batch/disorder", 6) != 1 {
				item.Nonce += words.Nonce(n)
			}
			r.Items = append(r.Items, item)
		}
	} else {
		r.Item = c.item(w)
	}
	if w.c.Choose("malformed", 30) == 1 {
		c.malform(r)
	}
	r.Seal(nil)
	if err := r.Sane(); err != nil && c.class != Malformed {
		w.fail("wish", "%s wishes for what is no operation: %v: %+v", c.account, err, r)
	}
	return r
}

// malform makes of r what is no operation: with an amount where there is none, or without.
func (c *client) malform(r *event.Request) {
	c.special(Malformed)
	for _, item := range r.Each {
		if item.Amount.Zero() {
			item.Amount = words.Units(1)
		} else {
			item.Amount = words.Amount{}
		}
	}
}

func name(s string) words.Name { return words.Name{Text: []byte(s)} }

// item makes up one operation.
func (c *client) item(w *World) (r event.Item) {
	ops := []event.Op{event.Issue, event.Issue, event.Issue, event.Transfer, event.Burn, event.Hold, event.Capture, event.Release, event.Issue, event.Issue, event.Transfer, event.Burn,
		event.Hold, event.Hold, event.Capture, event.Capture, event.Release, event.Unfreeze, event.Unfreeze, event.Freeze}
	r.Op = ops[w.c.Choose("op", len(ops))]
	if len(c.holds) == 0 && (r.Op == event.Capture || r.Op == event.Release) {
		r.Op = event.Hold
	}
	r.Asset = name([]string{"EUR/2", "EUR/2", "EUR/2", "EUR/2", "EUR/2", "GBP", "JPY", "XAU"}[w.c.Choose("asset", 8)])
	r.Amount = words.Units(uint64(1 + w.c.Choose("amount", 9)))
	if w.c.Choose("amount/large", 8) == 1 {
		c.special(Large)
		r.Amount = words.Units(uint64(20 + w.c.Choose("amount/much", 30)))
	}
	if w.c.Choose("ref", 5) == 1 {
		if w.c.Choose("ref/old", 3) != 1 || c.refs == 0 {
			c.refs++
		} else {
			c.special(OldRef)
		}
		r.Ref.Text = fmt.Appendf(nil, "%c%d", c.mark[0]&^32, c.refs)
	}
	if w.c.Choose("memo", 4) == 1 {
		r.Memo = []byte("for tea")
	}
	c.sides(w, &r)
	return r
}

// sides fills in who pays and who is paid.
func (c *client) sides(w *World, r *event.Item) {
	others := []string{"ann", "bob", "shop", "till", "cat", "dog", "eel"}
	other := others[w.c.Choose("to", len(others))]
	if other == c.account {
		other = "shop"
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
		r.Until = w.now.Wall.Plus(time.Duration(w.c.Choose("hold/until", []int{9_000, 60_000}[w.c.Choose("hold/long", 2)])) * time.Millisecond)
	case event.Capture, event.Release:
		h := c.holds[len(c.holds)-1-w.c.Choose("hold/which", min(4, len(c.holds)))]
		r.Hold, r.Asset = h.id, words.Name{Text: h.asset}
		if r.Op == event.Capture {
			if r.To = name(other); len(h.to.Text) > 0 && w.c.Choose("hold/another", 4) != 1 {
				r.To = words.Name{Text: h.to.Text}
			}
		} else {
			r.Amount = words.Amount{}
		}
		return
	case event.Freeze, event.Unfreeze:
		r.Asset, r.Amount = words.Name{}, words.Amount{}
		return
	case event.Burn, event.Batch: // nobody is paid
	}
	r.Nonce = c.nonce
	switch w.c.Choose("nonce", 10) {
	case 8:
		if r.Nonce > 1 {
			c.special(NonceLow)
			r.Nonce--
		}
	case 9:
		c.special(NonceHigh)
		r.Nonce++
	}
}
