package sim

import (
	"fmt"
	"slices"
	"time"

	"macronode/core/accounting"
	"macronode/core/command"
	"macronode/core/event"
	"macronode/core/flow"
	"macronode/core/storage"
	"macronode/core/types"
	meaning "macronode/models/accounting"
)

// A prepaidClient makes one request at a time, and repeats it until it has the outcome. Its requests count in the frame of their effect.
// Those of objects need credit; those of the wallet are always served.
type prepaidClient struct {
	want   *prepaidAsk
	key    string
	out    types.Ticket // called, not answered; 0: none
	doubts bool         // the outcome of an attempt is unknown
}

// A prepaidAsk is what the client wants: an operation on money, or for op 0 to store an object.
type prepaidAsk struct {
	op      event.Op
	asset   string
	amount  uint64
	content int
	seconds int // of a hold
}

// A prepaidAttempt is one submitted request.
type prepaidAttempt struct {
	ask      *prepaidAsk
	call     *prepaidCall
	list     int  // by which it counts in its frame
	isIn     bool // it is counted in a frame
	hasFrame bool // it has taken effect
}

// move makes a request, repeats it, or gives up.
func (c *prepaidClient) move(w *World) {
	switch {
	case c.out != 0 && w.odd("prepaid/leave", 24, w.odds.leave):
		w.late = append(w.late, event.Cancel{Ticket: c.out})
		w.promise.left[c.out] = true
		w.usage.prepaid.attempts[c.out].ends(w, false)
		c.out, c.doubts = 0, true
	case c.out != 0:
	case c.want == nil:
		c.want = c.wish(w)
		c.ask(w)
	case w.c.Choose("prepaid/gives-up", 8) == 1:
		c.ends()
	default:
		c.ask(w)
	}
}

func (c *prepaidClient) ends() { *c = prepaidClient{} }

// wish draws a request: mostly the account is filled, with little.
func (c *prepaidClient) wish(w *World) *prepaidAsk {
	a := &prepaidAsk{asset: [...]string{euro, pound, euro}[w.c.Choose("prepaid/asset", 3)], amount: [...]uint64{3, 9, 20, 35}[w.c.Choose("prepaid/amount", 4)]}
	switch what := w.c.Choose("prepaid/what", 16); {
	case what < 7:
		a.op = event.Issue
	case what == 7:
		a.op = event.Transfer
	case what == 8:
		a.op, a.seconds = event.Hold, 1+w.c.Choose("prepaid/hold", 9)
	case what == 9:
		a.op = event.Freeze
	case what < 12:
		a.op = event.Unfreeze
	default:
		a.content = w.c.Choose("prepaid/content", len(plainContents.texts))
	}
	return a
}

// ask submits the request.
func (c *prepaidClient) ask(w *World) {
	p, a := w.usage.prepaid, c.want
	call := &prepaidCall{list: postpaid, Request: accounting.Request{Tenant: usageTenant, At: w.status().At, Labels: accounting.NewRequestLabels("wallet", "post", "pay"), In: uint64(w.c.Choose("prepaid/body", 3))}}
	if a.op == 0 {
		call.Labels, call.declared = accounting.NewRequestLabels("storage", "put", "put"), call.In
		if !p.reserves(w, call) {
			c.ends()
			return
		}
	}
	if c.key == "" && a.op != 0 {
		p.serial++
		c.key = fmt.Sprint("p", p.serial)
	}
	w.ticket++
	head := command.Header{Ticket: types.NewTicket(w.ticket%8, w.ticket), Caller: usageKey, Tenant: usageTenant, Usage: flow.NewRequestUsage(&call.Request, p.terms)}
	c.out = head.Ticket
	p.attempts[c.out] = &prepaidAttempt{ask: a, call: call, list: p.list}
	w.usage.enter = append(w.usage.enter, a.event(w, head, c.key))
	w.tell(clients, noLane, plain, "the payer asks: %s of %d %s", a.op, a.amount, a.asset)
}

// event returns the command of a request.
func (a *prepaidAsk) event(w *World, head command.Header, key string) event.Event {
	if a.op == 0 {
		put := &storage.Put{Header: head, Bucket: storage.Bucket("one"), Address: plainContents.addresses[a.content], Size: plainContents.sizeOf(plainContents.texts[a.content]), File: storage.File(w.ticket)}
		put.Seal()
		return &event.Execute{Command: put}
	}
	head.Key = storage.ObjectName(key)
	head.IndexedTo, head.Prior = w.index.mark, w.index.prior(usageTenant, head.Key.ID)
	in := &event.Request{Header: head, Item: event.Item{Op: a.op, From: name(prepaidPayer), Asset: name(a.asset), Amount: types.MinorUnits(a.amount)}}
	_, next := w.balanceOf(usageTenant, prepaidPayer, a.asset)
	in.Nonce = next
	switch a.op { //nolint:exhaustive // the payer has no others
	case event.Issue:
		in.From, in.To, in.Nonce = types.Name{}, name(prepaidPayer), 0
	case event.Transfer:
		in.To = name(prepaidOther)
	case event.Hold:
		in.ExpiresAt = w.status().At.Add(time.Duration(a.seconds) * time.Second)
	case event.Freeze, event.Unfreeze:
		in.Asset, in.Amount, in.Nonce = types.Name{}, types.Amount{}, 0
	}
	in.Seal(nil)
	return in
}

// balanceOf returns what the read model has of an account.
func (w *World) balanceOf(t types.Tenant, account, asset string) (types.Amount, types.Nonce) {
	b := w.fol.Balance(t, []byte(account), []byte(asset))
	return b.Amount, b.NextNonce
}

// ends ends the request of an attempt: it was served or not. What its frame has counted is left out.
func (a *prepaidAttempt) ends(w *World, isServed bool) {
	c, p := a.call, w.usage.prepaid
	if c.Out = 0; isServed {
		c.Out = uint64(w.c.Choose("prepaid/answer", 3))
	}
	if c.InFrame = isServed && a.isIn; c.InFrame {
		c.In = 0
	}
	if !isServed || c.InFrame && c.Out == 0 {
		p.recorder.Cancel(c.of)
		return
	}
	p.counts(w, c)
}

// replied handles a reply to the payer; false if it is not to one.
func (p *prepaidWorld) replied(w *World, r event.Reply) bool {
	if p.recorder.replied(w, r) {
		return true
	}
	a := p.attempts[r.Ticket]
	if a == nil {
		return false
	}
	c := &p.payer
	if c.out != r.Ticket { // it has left
		return true
	}
	c.out = 0
	if r.Counted != (a.isIn && r.Problem == event.None) {
		w.fail("prepaid-counted", "%+v: counted is %v, recorded was %v", r, r.Counted, a.isIn)
	}
	a.ends(w, r.Problem == event.None && !r.Replayed || r.Replayed)
	w.note(r.Problem == event.None && r.Replayed, "prepaid: a replay counts as a request")
	w.note(!r.Counted && a.hasFrame && r.Problem == event.None, "prepaid: a request has no room in the frame of its effect")
	w.note(r.Problem == event.OutcomeUnknown && a.isIn, "prepaid: a request is counted in its frame, and its outcome is unknown")
	w.note(r.Problem != event.None && a.ask.op == 0 && !blank(r.Problem), "prepaid: an object is refused, and does not count")
	w.tell(clients, decider, answeredTone, "the payer: %s", answers(r))
	if !blank(r.Problem) || a.ask.op == 0 {
		c.ends()
	} else {
		c.doubts = c.doubts || r.Problem == event.OutcomeUnknown
	}
	return true
}

// inFrame returns what the request counts as in its frame.
func (a *prepaidAttempt) inFrame(at types.Time) (rows []meaning.Metered) {
	c := a.call
	if c.In > 0 {
		rows = append(rows, meaning.Metered{Dimension: "bytes_in", Labels: c.labels(), Value: c.In, Events: 1, Time: int64(at)})
	}
	return append(rows, meaning.Metered{Dimension: "requests", Labels: c.labels(), Value: 1, Events: 1, Time: int64(at)})
}

// takesEffect compares what a frame counts of a request that took effect with the model.
func (p *prepaidWorld) takesEffect(w *World, a *prepaidAttempt, f *usageFrame, lines map[prepaidLine]prepaidSum) {
	a.hasFrame = true
	rows := a.inFrame(f.at)
	b, o := p.last(), w.usage.oracle
	copied := *o.book
	var outcome prepaidOutcome
	problems := copied.Meter(int64(f.at), usageTenant, rows)
	if a.list != postpaid {
		copied = *o.book
		problems = copied.MeterPrepaid(int64(f.at), usageTenant, rows)
		outcome = prepaidOutcome{list: a.list, bill: b.bill(a.list, f.at, usesOf(rows, f.at), false)}
		if outcome.bill.fresh > 0 && len(b.lines)+outcome.bill.fresh > p.room {
			problems = append(problems, usageOutcomes[event.UsageCapacity])
		}
	}
	if len(problems) > 0 {
		if len(f.metered)+len(lines) > 0 {
			w.fail("prepaid-no-room", "%v counts %+v, which has no room: %v", f.lsn, f.metered, problems)
		}
		return
	}
	if !slices.EqualFunc(f.metered, rows, sameMetered) || f.isPrepaid(len(rows)) != (a.list != postpaid) {
		w.fail("prepaid-in-frame", "%v counts %+v, %d of them prepaid; it must be %+v by list %d", f.lsn, f.metered, f.prepaidRows, rows, a.list)
		return
	}
	a.isIn = true
	p.history = append(p.history, a.call.counted(f.lsn, a.list != postpaid))
	if a.list != postpaid {
		p.enters(w, f, &outcome, lines, nil)
		w.Saw["prepaid: a request is counted in the frame of its effect"]++
		w.note(a.ask != nil && a.ask.op == 0, "prepaid: an object is counted in its frame")
		last := p.last()
		due := last.bill(a.list, f.at, nil, true)
		w.note(last.lack(f.at, &due) != (prepaidLack{}), "prepaid: a request of the wallet makes arrears")
	}
	o.meters(f, rows, a.list != postpaid)
}

// asks gives a report of events the terms of the tenant. Its request may count in the same frame.
func (p *prepaidWorld) asks(w *World, a *usageAttempt, head *command.Header) {
	a.list, a.terms = p.list, p.terms
	if w.c.Choose("prepaid/events-count", 3) != 1 {
		return
	}
	call := &prepaidCall{list: postpaid, Request: accounting.Request{Tenant: usageTenant, Labels: accounting.NewRequestLabels("accounting", "post", "events"), In: uint64(w.c.Choose("prepaid/body", 3))}}
	a.counts = &prepaidAttempt{call: call, list: p.list}
	head.Usage = flow.NewRequestUsage(&call.Request, p.terms)
}
