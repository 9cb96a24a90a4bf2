package sim

import (
	"fmt"
	"math/big"
	"slices"

	"macronode/chaos/charges"
	"macronode/core/accounting"
	"macronode/core/event"
	"macronode/core/flow"
	"macronode/core/pricing"
	"macronode/core/types"
)

// A prepaidCall is a request of the prepaid tenant: in progress, or ended and not recorded yet. At, In and Out are those of its end.
type prepaidCall struct {
	accounting.Request
	list       int    // of the prices that it was reserved by
	declared   uint64 // bytes of its body
	response   uint64 // bytes of its response, if they are known
	of         flow.Reservation
	isReserved bool
	isEnded    bool
	frame      types.LSN // of an unknown outcome: that has recorded it, if any has
	until      types.LSN // of an unknown outcome: the last frame that may have
}

// labels are those of its series.
func (c *prepaidCall) labels() string {
	return fmt.Sprintf("service=%s,method=%s,route=%s", c.Labels.Service, c.Labels.Method, c.Labels.Route)
}

// uses returns what the reservation of a call is for: when it has ended, what it has used.
func (c *prepaidCall) uses(month int64) []prepaidUse {
	requests, in, out := uint64(1), c.declared, c.response
	if c.isEnded {
		if in, out = c.In, c.Out; c.InFrame {
			requests = 0
		}
	}
	var all []prepaidUse
	for _, u := range [...]prepaidUse{{"requests", c.labels(), requests, month}, {"bytes_in", c.labels(), in, month}, {"bytes_out", c.labels(), out, month}} {
		if u.units > 0 {
			all = append(all, u)
		}
	}
	return all
}

// isPriced reports whether a list has a price for any dimension of the call.
func (c *prepaidCall) isPriced(list int) bool {
	for i := range priceLists[list] {
		p := &priceLists[list][i]
		for _, d := range [...]string{"requests", "bytes_in", "bytes_out"} {
			if charges.Applies(p, d, c.labels()) {
				return true
			}
		}
	}
	return false
}

// begins lets a request of an upstream begin, if its account can pay.
func (p *prepaidWorld) begins(w *World) {
	c := &prepaidCall{Request: accounting.Request{Tenant: usageTenant, At: w.status().At, Labels: accounting.NewRequestLabels("gateway", "get", [...]string{"a", "b"}[w.c.Choose("prepaid/route", 2)])},
		declared: uint64(w.c.Choose("prepaid/declared", 4))}
	if w.c.Choose("prepaid/service", 4) == 1 {
		c.Labels = accounting.NewRequestLabels("storage", c.Labels.Method, c.Labels.Route)
	}
	if p.reserves(w, c) && p.responds(w, c) {
		p.open = append(p.open, c)
	}
}

// responds reports whether the response of a call may begin. The size of an object is known.
func (p *prepaidWorld) responds(w *World, c *prepaidCall) bool {
	if c.Labels.Service != "storage" || c.list == postpaid {
		return true
	}
	c.response = responses[w.c.Choose("prepaid/response", len(responses))]
	of, why, lacks := p.recorder.ReserveResponse(c.of, c.At, c.response)
	if least := p.checks(w, c, why, lacks); why != event.None {
		w.note(least != event.None, "prepaid: a response is refused")
		p.recorder.Cancel(c.of)
		return false
	}
	c.of = of
	return true
}

// reserves reports whether a call may be served, and checks that against the books of the read model.
func (p *prepaidWorld) reserves(w *World, c *prepaidCall) bool {
	if c.list = p.list; p.list == postpaid {
		return true
	}
	r := c.Request
	r.In = c.declared
	of, why, lacks := p.recorder.Reserve(&r, p.terms)
	least := p.checks(w, c, why, lacks)
	if of.IsZero() == (why == event.None && c.isPriced(p.list)) {
		w.fail("prepaid-reserves", "%+v has reserved nothing: %v", c.Request, of.IsZero())
	}
	w.note(why == event.None && !of.IsZero(), "prepaid: a request is served")
	w.note(why == event.None && of.IsZero(), "prepaid: a request without a price is served")
	w.note(why != event.None, "prepaid: a request is refused: "+why.Code())
	if why == event.PrepaidExceeded {
		alone, _ := p.judgesAlone(w, c)
		w.note(alone == event.None, "prepaid: a request is refused because of others at the same time")
		w.note(least == event.None, "prepaid: a request is refused because of an unknown outcome")
	}
	c.of, c.isReserved = of, !of.IsZero()
	return why == event.None
}

// checks compares the answer to a call with the books of the read model, and returns whether it may be served by them.
func (p *prepaidWorld) checks(w *World, c *prepaidCall, why event.Problem, lacks event.Shortfall) event.Problem {
	lack := lackOf(p.terms, lacks)
	least, leastLack := p.judges(w, c, false)
	most, mostLack := p.judges(w, c, true)
	switch {
	case why == event.None && least != event.None && most != event.None: // by volume, more units may cost less
		w.fail("prepaid-serves", "%+v is served, which must be refused: %v %+v", c.Request, least.Code(), leastLack)
	case why != most && why != least || lack != leastLack && lack != mostLack:
		w.fail("prepaid-refuses", "%+v gets %q %+v, must be %q %+v or %q %+v", c.Request, why.Code(), lack, least.Code(), leastLack, most.Code(), mostLack)
	}
	return least
}

// judges returns whether a call may be served: the books, all calls that are not recorded, and this one, are to be paid of the
// available balance. What is being recorded, or was by an unknown outcome, may count although the books have it.
func (p *prepaidWorld) judges(w *World, c *prepaidCall, most bool) (event.Problem, prepaidLack) {
	all := append([]*prepaidCall{c}, p.open...)
	all = append(append(all, p.counted...), p.recorder.taken...)
	if a := p.attempts[p.payer.out]; a != nil { // of an object that is being stored
		all = append(all, a.call)
	}
	mark := w.fol.Mark()
	if f := p.recorder.flight; f != nil && (most || f.recorded.LSN == 0 || f.recorded.LSN > mark) {
		all = append(all, f.calls...)
	}
	p.unsure = slices.DeleteFunc(p.unsure, func(u *prepaidCall) bool { return u.until <= mark })
	for _, u := range p.unsure {
		if u.frame > mark || most {
			all = append(all, u)
		}
	}
	return p.judgesAll(w, c, all)
}

// judgesAlone is judges as if there were no other calls.
func (p *prepaidWorld) judgesAlone(w *World, c *prepaidCall) (event.Problem, prepaidLack) {
	return p.judgesAll(w, c, []*prepaidCall{c})
}

func (p *prepaidWorld) judgesAll(w *World, c *prepaidCall, all []*prepaidCall) (event.Problem, prepaidLack) {
	if !c.isPriced(p.list) {
		return event.None, prepaidLack{}
	}
	var uses []prepaidUse
	for _, o := range all {
		switch {
		case o == c || o.isReserved && o.list == p.list:
			uses = append(uses, o.uses(monthOf(c.At))...)
		case o.isReserved:
			shared := slices.DeleteFunc(o.uses(monthOf(c.At)), func(u prepaidUse) bool { return !u.isPricedByBoth(o.list, p.list) })
			w.note(len(shared) > 0, "prepaid: a request of other prices counts")
			uses = append(uses, shared...)
		}
	}
	b := p.of(w.fol.Mark())
	bill := b.bill(p.list, c.At, uses, true)
	if bill.tooBig {
		return event.AmountLimitExceeded, prepaidLack{}
	}
	if bill.fresh > 0 && len(b.lines)+bill.fresh > p.room {
		return event.UsageCapacity, prepaidLack{}
	}
	if lack := b.lack(c.At, &bill); lack != (prepaidLack{}) {
		return event.PrepaidExceeded, lack
	}
	owes := new(big.Int)
	for _, n := range bill.due {
		owes.Add(owes, n)
	}
	if owes.Sign() > 0 && b.money.Frozen(usageTenant, prepaidPayer) {
		return event.AccountFrozen, prepaidLack{}
	}
	return event.None, prepaidLack{}
}

// isPricedByBoth reports whether two lists have a price of the same line for a use. Each dimension has one price in a list, at most.
func (u *prepaidUse) isPricedByBoth(was, is int) bool {
	for i := range priceLists[is] {
		p := &priceLists[is][i]
		if charges.Applies(p, u.dimension, u.labels) && slices.ContainsFunc(priceLists[was], func(of pricing.Price) bool { return charges.LineID(&of) == charges.LineID(p) }) {
			return true
		}
	}
	return false
}

// responses are the sizes of responses. That of the last costs more than a payment may move.
var responses = [...]uint64{0, 1, 2, 3, 0, 5, 8, 0, 1, 170}

// ends lets a request end: it counts, or was not served.
func (p *prepaidWorld) ends(w *World) {
	if len(p.open) == 0 {
		return
	}
	i := w.c.Choose("prepaid/which", len(p.open))
	c := p.open[i]
	p.open = append(p.open[:i:i], p.open[i+1:]...)
	if w.c.Choose("prepaid/served", 5) == 1 {
		p.recorder.Cancel(c.of)
		return
	}
	c.In, c.Out = uint64(w.c.Choose("prepaid/in", 5)), responses[w.c.Choose("prepaid/out", len(responses))]
	p.counts(w, c)
}

// counts hands a call that was served to the recorder.
func (p *prepaidWorld) counts(w *World, c *prepaidCall) {
	c.At, c.isEnded = max(1, w.status().At), true
	p.recorder.Count(c.Request, c.of)
	p.counted = append(p.counted, c)
	w.note(c.isReserved && p.list != c.list, "prepaid: a request ends by other prices than it was reserved by")
}

// counted returns what a call counts as in a frame, for the certificate.
func (c *prepaidCall) counted(at types.LSN, prepaid bool) charges.Request {
	r := charges.Request{Tenant: usageTenant, Frame: at, Labels: c.labels(), Counts: map[string]uint64{"requests": 1, "bytes_in": c.In, "bytes_out": c.Out}, Prepaid: prepaid}
	if c.InFrame {
		r.Counts["requests"] = 0
	}
	return r
}
