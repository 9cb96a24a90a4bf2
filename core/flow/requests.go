package flow

import (
	"cmp"

	"macronode/core/accounting"
	"macronode/core/command"
	"macronode/core/event"
	"macronode/core/plane"
	"macronode/core/pricing"
	"macronode/core/types"
)

// PayRequests records the requests of a prepaid tenant that the node has metered, and pays what is due of the lines of the tenant:
// for these requests, and what was not paid before. The requests have been served, so they are recorded also if the payer has too little,
// is frozen or reaches a limit: the rest stays due, as arrears of the lines. Without requests it pays arrears only.
//
// Its problems are those of RecordMetered, and AmountLimitExceeded if a price is larger than an asset may have. As with
// RecordMetered, a command whose outcome is unknown must not be repeated.
type PayRequests struct {
	accounting.RecordMetered
	Terms *Terms
	Key   types.Name // of the transfers; unique, at most MaxTransferKey bytes

	keys   []types.Name // of the transfer in each asset
	prices []uint64     // of each row, those that apply: bit i is price i
}

// ValidateFields returns why c is invalid.
func (c *PayRequests) ValidateFields() error {
	if len(c.Metered) > 0 {
		if err := c.RecordMetered.ValidateFields(); err != nil {
			return err
		}
	} else if c.Caller != 0 || len(c.Header.Key.Text) > 0 {
		return accounting.ErrMetered
	}
	return checkTerms(c.Terms, c.Key, c.keys, len(c.prices) == len(c.Metered))
}

// Seal finds the prices of the rows and computes the digests of c, outside of the step.
func (c *PayRequests) Seal() {
	c.keys, c.prices = c.Terms.keys(c.Key), make([]uint64, len(c.Metered))
	for i := range c.Metered {
		s := &c.Metered[i].Series
		c.prices[i] = c.Terms.pricesOf(string(s.Dimension), s.Labels)
	}
}

const (
	// A frame has the requests, the lines, the transfers, the holds that they end and the keys that it evicts.
	_ = uint(types.MaxRecords - (accounting.MaxMetered + maxLineRecords + pricing.MaxPrices + types.MaxExpiriesPerStep + 1))

	// A frame has a batch, the holds that it ends, the keys that it evicts, and the usage and the lines of its request.
	_ = uint(types.MaxRecords - (1 + types.MaxItems + types.MaxExpiriesPerStep + 1 + 2 + maxLineRecords))
)

// payRequests records the rows of c, and pays what the payer has.
func (p *Prepaid) payRequests(at types.Time, in *PayRequests, f plane.Frame, reply *event.Reply) {
	if reply.Problem, reply.Shortage = p.Plane.CheckMetered(at, in.Tenant, in.Metered, true); reply.Problem != event.None {
		return
	}
	b := &p.bill
	b.begin(p.Plane, in.Tenant, in.Terms)
	for i := range in.Metered {
		b.add(in.prices[i], p.Plane.MonthOfMetered(at, &in.Metered[i]), in.Metered[i].Value)
	}
	b.addArrears(at)
	if reply.Problem = b.price(); reply.Problem != event.None {
		return
	}
	if reply.Shortage = p.Plane.LineShortage(b.newLines()); reply.Shortage.Limit != event.NoLimit {
		reply.Problem = event.UsageCapacity
		return
	}
	reply.Unpaid = p.payAvailable(at, in, f)
	reply.Position = p.Plane.RecordLines(in.Tenant, in.Terms.list, b.changes(), f)
	if len(in.Metered) > 0 {
		reply.Position = p.Plane.AddMetered(at, in.Tenant, in.Metered, true, f)
	}
}

// payAvailable pays of each asset what is due, at most what the payer has and the limits of the wallet permit. A transfer that is rejected leaves no record, but for
// expired holds that it ended, so that the next one goes on. It returns why the first one was rejected.
func (p *Prepaid) payAvailable(at types.Time, in *PayRequests, f plane.Frame) (rejected event.Problem) {
	for i := range in.Terms.assets {
		amount := p.bill.due[i]
		if available := p.bill.available(at, p.wallet, i); available.Less(amount) {
			amount = available
		}
		if amount.IsZero() {
			continue
		}
		if limit := p.wallet.DebitLimit(at, in.Tenant, in.Terms.payer.ID, in.Terms.assets[i].ID); limit.Less(amount) {
			amount = limit
		}
		if amount.IsZero() {
			rejected = cmp.Or(rejected, event.DailyLimitExceeded)
			continue
		}
		var reply event.Reply
		f.Savepoint()
		p.transfer(at, &in.Header, in.Terms, in.keys, i, amount, f, &reply)
		if reply.Problem != event.None && reply.Problem != event.Busy {
			f.Undo()
			rejected = cmp.Or(rejected, reply.Problem)
			continue
		}
		if f.Commit(); reply.Problem == event.Busy {
			break
		}
	}
	return rejected
}

// A RequestUsage is what a request of a prepaid tenant counts as, in the frame of its effect. Its price is due then, and paid with the
// next PayRequests.
type RequestUsage struct {
	accounting.RequestUsage
	terms  *Terms
	prices [2]uint64 // of each row, those that apply
}

// NewRequestUsage returns the usage of a request of a tenant with terms, or of a postpaid one without; nil if it has no labels.
func NewRequestUsage(r *accounting.Request, t *Terms) command.Usage {
	u := accounting.NewRequestUsage(r)
	switch {
	case u == nil:
		return nil
	case t == nil:
		return u
	}
	paid := &RequestUsage{RequestUsage: *u, terms: t}
	for i, row := range u.Rows() {
		paid.prices[i] = t.pricesOf(string(row.Series.Dimension), row.Series.Labels)
	}
	return paid
}

// Bytes is the space that the usage and its lines take in the journal, at most.
func (u *RequestUsage) Bytes() int {
	return u.RequestUsage.Bytes() + accounting.LineBytes(len(u.terms.prices))
}

// CountRequest counts the request of a command that has taken effect, in the same frame. It returns false if the command has no usage,
// or the plane of usage has no room for it.
func (p *Prepaid) CountRequest(at types.Time, usage plane.Plane, h *command.Header, f plane.Frame) bool {
	of, isThere := usage.(*accounting.Plane)
	if !isThere {
		return false
	}
	switch u := h.Usage.(type) {
	case *accounting.RequestUsage:
		return of.CountRequest(at, h.Tenant, u, f)
	case *RequestUsage:
		return p.countRequest(at, of, h.Tenant, u, f)
	}
	return false
}

func (p *Prepaid) countRequest(at types.Time, usage *accounting.Plane, t types.Tenant, u *RequestUsage, f plane.Frame) bool {
	rows := u.Rows()
	if problem, _ := usage.CheckMetered(at, t, rows, true); problem != event.None {
		return false
	}
	p.bill.begin(usage, t, u.terms)
	for i := range rows {
		p.bill.add(u.prices[i], usage.MonthOfMetered(at, &rows[i]), rows[i].Value)
	}
	if usage.LineShortage(p.bill.newLines()).Limit != event.NoLimit {
		return false
	}
	p.bill.price() // a cost that is too large stays as it was
	usage.RecordLines(t, u.terms.list, p.bill.changes(), f)
	usage.AddMetered(at, t, rows, true, f)
	return true
}
