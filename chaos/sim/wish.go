package sim

import (
	"fmt"
	"slices"

	"macronode/core/event"
	"macronode/core/types"
)

// wish draws a request: mostly a new one; sometimes an old one again, or an old key for another
// request. In a run with a goal, most lead to the goal, and none is drawn while other clients
// must move first.
func (c *client) wish(w *World) *event.Request {
	c.class, c.doubts, c.boss, c.aims = Plain, false, false, false
	if w.goal.set && (w.c.Choose("goal/free", 5) != 1 || w.goal.wants(event.CapacityExceeded)) {
		if w.goal.wants(event.CapacityExceeded) && c != w.clients[1] && c.tenant == boss.Tenant {
			return c.sealed(w, &event.Request{Item: c.fills(w)})
		}
		if item, any := c.before(w); any {
			if c.boss, c.class = c.caller != boss.ID, mixed; w.goal.once() && item.Op != event.Issue && item.Amount == types.MinorUnits(30) {
				if c.class = Large; w.goal.Op == event.Batch { // it is repeated later
					return c.sealed(w, &event.Request{Item: event.Item{Op: event.Batch}, Atomic: true, Items: []event.Item{item}})
				}
			}
			return c.sealed(w, &event.Request{Item: item})
		}
		if c.idles(w) {
			return nil
		}
		if w.goal.wants(event.IdempotencyCapacity) && w.goal.Class != Again && w.goal.Class != Other && w.held() < limits().Idempotency.PerTenant {
			c.class = mixed
			return c.sealed(w, &event.Request{Item: c.issue(1)})
		}
		c.aims = true
	}
	g := w.goal.Cell
	again := c.aims && (g.Class == Again || g.Class == Other || g.Class == Barred && w.goal.wants(event.IdempotencyConflict))
	if c.aims && w.goal.wants(event.StaleIndexRead) && !w.goal.waited {
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
		case !w.goal.wants(event.IdempotencyCapacity):
			w.forget()
		case w.full(): // of younger keys
			old = *past[0]
		default:
			c.class = mixed
			return c.sealed(w, &event.Request{Item: c.issue(1)})
		}
		crossed := again && g.Class == Again && w.goal.wants(event.IdempotencyConflict)
		if c.crossed = crossed && !c.crossed; c.crossed { // first another request under the key
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

// full reports whether a tenant has reached its limit of keys, after earlier keys were evicted.
func (w *World) full() bool {
	if !w.goal.waited {
		w.goal.waited = true
		w.forget()
	}
	return w.held() >= limits().Idempotency.PerTenant
}

// held returns the number of keys and refs in the window.
func (w *World) held() int {
	var s event.Status
	w.node.Status(&s)
	return int(s.Keys)
}

// waits reports whether a repeated request must wait until its key is evicted.
func (w *World) waits() bool {
	switch {
	case w.goal.wants(event.IdempotencyConflict, event.Busy):
		return false
	case w.goal.wants(event.None, event.InsufficientFunds, event.NonceUsed, event.RefUsed, event.AmountLimitExceeded, event.HoldAmountExceeded, event.HoldNotActive):
		return w.goal.Class == Other || w.c.Choose("goal/waits", 4) == 1
	}
	return true
}

// sealed prepares r for c under a new key.
func (c *client) sealed(w *World, r *event.Request) *event.Request {
	c.keys++
	r.Tenant = c.tenant
	r.Key.Text = c.key(c.keys)
	r.Seal(nil)
	if err := r.ValidateFields(); err != nil && !c.malformed {
		w.fail("wish", "%s wishes for what is no operation: %v: %+v", c.account, err, r)
	}
	c.malformed = false
	return r
}

// key returns the n-th key of c, from 1.
func (c *client) key(n int) []byte { return fmt.Appendf(nil, "%s%d", c.mark, n) }

// items draws the items of a batch. Each debit uses the nonce after those before it.
func (c *client) items(w *World, r *event.Request) {
	paid := types.Nonce(0)
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
			item.Op, item.From, item.To, item.Amount = event.Issue, types.Name{}, name(c.account), types.MinorUnits(6)
			item.Asset = name("EUR/2")
		}
		if item.Nonce > 0 {
			item.Nonce += paid
			paid++
		}
		r.Items = append(r.Items, item)
	}
}

// malform makes r invalid: an amount where there must be none, or none where there must be one.
func (c *client) malform(r *event.Request) {
	c.special(Malformed)
	c.malformed = true
	for _, item := range r.Each {
		if item.Amount.IsZero() {
			item.Amount = types.MinorUnits(1)
		} else {
			item.Amount = types.Amount{}
		}
	}
}

func name(s string) types.Name { return types.Name{Text: []byte(s)} }
