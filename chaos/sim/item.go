package sim

import (
	"fmt"
	"time"

	"macronode/core/event"
	"macronode/core/types"
)

// item draws an operation; one that aims has the property of the goal's class, and no other.
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
	if c.aims && !(g.Op == event.Issue && w.goal.wants(event.CapacityExceeded)) {
		r.Asset = name("EUR/2")
	}
	moves := r.Op <= event.Capture
	r.Amount = types.MinorUnits(uint64(1 + w.c.Choose("amount", 9)))
	if c.aims && w.goal.wants(event.DailyLimitExceeded, event.InsufficientFunds, event.HoldAmountExceeded) {
		r.Amount = types.MinorUnits(9)
	}
	if moves && (aims && (g.Class == Large || g.Class >= Again && w.goal.wants(event.AmountLimitExceeded)) || !c.aims && w.c.Choose("amount/large", 8) == 1) {
		c.special(Large)
		r.Amount = types.MinorUnits(uint64(20 + w.c.Choose("amount/much", 30)))
		if aims && !w.goal.wants(event.AmountLimitExceeded) {
			r.Amount = types.MinorUnits(20 + r.Amount.Lo%10) // what may be moved
		}
	}
	c.ref(w, &r, aims)
	if w.c.Choose("memo", 4) == 1 {
		r.Memo = []byte("for tea")
	}
	c.sides(w, &r, aims)
	return r
}

// refuser returns the operations for which a batch of the goal is rejected; none if it is not, or
// if it is rejected for another property.
func (g Cell) refuser() []event.Op {
	switch g.Outcome {
	case event.InsufficientFunds:
		return []event.Op{event.Transfer, event.Burn, event.Hold}
	case event.HoldAmountExceeded:
		return []event.Op{event.Capture}
	case event.HoldNotActive:
		return []event.Op{event.Capture, event.Release}
	case event.NotBeneficiary:
		return []event.Op{event.Capture}
	case event.BadExpiry:
		return []event.Op{event.Hold}
	case event.DailyLimitExceeded:
		return []event.Op{event.Issue, event.Transfer, event.Burn, event.Hold}
	case event.CapacityExceeded:
		return []event.Op{event.Issue, event.Transfer, event.Hold}
	case event.AccountFrozen:
		return []event.Op{event.Transfer, event.Burn, event.Hold}
	default:
		return nil
	}
}

// featured returns the operations of the item with the property.
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

// ref gives an operation a ref: a new or an earlier one.
func (c *client) ref(w *World, r *event.Item, aims bool) {
	old := aims && c.refs > 0 && (w.goal.Class == OldRef || w.goal.Class >= Again && w.goal.wants(event.RefUsed))
	if !old && !(aims && (w.outlives() || w.goal.wants(event.StaleIndexRead))) && w.c.Choose("ref", 5) != 1 {
		return
	}
	if old || !c.aims && w.c.Choose("ref/old", 3) == 1 && c.refs > 0 {
		c.special(OldRef)
		c.unused = false
	} else {
		c.refs++
	}
	r.Ref.Text = c.named()
	if c.caller != boss.ID && c.tenant == boss.Tenant && (!c.aims || w.goal.wants(event.Forbidden)) && w.c.Choose("ref/reserved", 3) == 1 {
		r.Ref.Text = append([]byte("usage:"), r.Ref.Text...)
	}
}

// named returns the last ref of c.
func (c *client) named() []byte { return fmt.Appendf(nil, "%c%d", c.mark[0]&^32, c.refs) }

// sides sets payer and payee.
func (c *client) sides(w *World, r *event.Item, aims bool) {
	others := []string{"ann", "bob", "shop", "till", "cat", "dog", "eel"}
	other := others[w.c.Choose("to", len(others))]
	if other == c.account || c.aims && w.goal.Class == Barred && r.Op == event.Capture {
		other = "shop"
	}
	if c.aims && w.goal.wants(event.CapacityExceeded) {
		other = elsewhere
	}
	r.From = name(c.account)
	switch r.Op {
	case event.Issue:
		r.From, r.To = types.Name{}, name(c.account)
		r.Amount.Lo += 11
		return
	case event.Transfer:
		r.To = name(other)
	case event.Hold:
		if w.c.Choose("hold/for", 3) == 1 {
			r.To = name(other)
		}
		r.ExpiresAt = c.until(w)
	case event.Capture, event.Release:
		c.ends(w, r, other)
		return
	case event.Freeze, event.Unfreeze:
		r.Asset, r.Amount = types.Name{}, types.Amount{}
		return
	case event.Burn, event.Batch: // no payee
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
		r.Nonce += 1000 // never reached
	case 10:
		c.special(mixed) // correct, if another request of the account comes in between
		r.Nonce++
	}
}

// until draws the expiry of a hold: soon, later, or very far.
func (c *client) until(w *World) types.Time {
	long := []int{9_000, 60_000, 1000}[w.c.Choose("hold/long", 3)]
	r := w.now.Wall.Add(time.Duration(w.c.Choose("hold/until", long)) * time.Millisecond)
	if c.aims && !w.goal.wants(event.BadExpiry) {
		return r.Add(10 * time.Second)
	}
	if long == 1000 {
		r = r.Add(types.MaxHoldDuration + time.Hour)
	}
	return r
}

// ends sets the hold that is captured or released.
func (c *client) ends(w *World, r *event.Item, other string) {
	which := len(c.holds) - 1 - w.c.Choose("hold/which", min(4, len(c.holds)))
	if fresh := c.fresh(&w.goal); c.aims && fresh >= 0 && !w.goal.wants(event.HoldNotActive) {
		which = fresh
	}
	h := &c.holds[which]
	h.tried = true
	r.Hold, r.Asset = h.id, types.Name{Text: h.asset}
	if r.Op == event.Release {
		r.Amount = types.Amount{}
		return
	}
	if c.aims && w.goal.wants(event.NotBeneficiary) {
		if r.To = name("shop"); string(h.to.Text) == "shop" {
			r.To = name("till")
		}
		return
	}
	if r.To = name(other); len(h.to.Text) > 0 && w.c.Choose("hold/another", 4) != 1 {
		r.To = types.Name{Text: h.to.Text}
	}
}
