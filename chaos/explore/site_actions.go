package explore

import (
	"fmt"
	"time"

	"macronode/core/accounting"
	"macronode/core/command"
	"macronode/core/digest"
	"macronode/core/event"
	"macronode/core/flow"
	"macronode/core/storage"
	"macronode/core/types"
)

// The atomic actions of a site.
type siteAct uint8

const (
	siteAsk     siteAct = iota + 1 // a user's request reaches the node
	siteHear                       // it reads its answer
	siteSync                       // all frames are made durable
	siteConfirm                    // the node hears that
	siteJump                       // time passes
	sitePower                      // the power fails, and the node starts again
	siteActs
)

// Say describes an action.
func (w *Site) Say(a Action) string {
	u := &w.users[a.n()&1]
	switch siteAct(a.kind()) {
	case siteAsk:
		return fmt.Sprintf("user %d asks: %v", a.n(), w.h.plan.scripts[a.n()][u.at])
	case siteHear:
		return fmt.Sprintf("user %d hears %q %v", a.n(), u.mail.Problem.Code(), u.mail.Position)
	case sitePower:
		return fmt.Sprintf("POWER LOST: frames up to %d stay, of %v written, %v synced", a.n(), w.last.lsn, w.safe.lsn)
	default:
		return [siteActs]string{siteSync: "sync", siteConfirm: "the node hears of the sync", siteJump: "time jumps"}[siteAct(a.kind())]
	}
}

// Enabled returns the possible actions.
func (w *Site) Enabled(to []Action) []Action {
	add := func(a siteAct, n int) { to = append(to, action(act(a), n, false, false)) }
	for i := range w.users {
		switch u := &w.users[i]; {
		case u.state == idle && int(u.at) < len(w.h.plan.scripts[i]):
			add(siteAsk, i)
		case u.state == mailed:
			add(siteHear, i)
		}
	}
	if w.safe != w.last {
		add(siteSync, 0)
	}
	if w.confirmed != w.safe {
		add(siteConfirm, 0)
	}
	if w.left.jumps > 0 {
		add(siteJump, 0)
	}
	if w.left.powers > 0 {
		for n := w.safe.lsn; n <= w.last.lsn; n++ {
			add(sitePower, int(n))
		}
	}
	return to
}

// Do does an action, and returns the violated rule.
func (w *Site) Do(a Action) error {
	w.h.err = nil
	switch siteAct(a.kind()) {
	case siteAsk:
		w.ask(a.n())
	case siteHear:
		w.hear(a.n())
	case siteSync:
		w.safe = w.last
	case siteConfirm:
		w.confirm()
	case siteJump:
		w.left.jumps--
		w.pass(w.h.plan.jump)
	case sitePower, siteActs:
		w.power(types.LSN(a.n()))
	}
	return w.h.err
}

// step is one step of the node, with its frame. The model is the one after the frame.
func (w *Site) step(in event.Event, books siteBooks) {
	h := w.h
	h.out.Reset()
	w.node.Step(w.now, in, &h.out)
	if len(h.out.Frames) > 1 {
		h.fail("one step: %d frames", len(h.out.Frames))
	}
	for _, f := range h.out.Frames {
		w.last = h.next(w.last, h.out.Body(f), f.LSN, w.node.StateHash(), books)
	}
}

// event is a step that is not a request of a user. Its answers go out.
func (w *Site) event(in event.Event) {
	w.step(in, w.last.books)
	w.deliver()
}

func (w *Site) deliver() {
	for _, r := range w.h.out.Replies {
		w.reply(r)
	}
}

// tell informs the node of the durable frames.
func (w *Site) confirm() {
	size := 0
	for e := w.safe; e != w.confirmed; e = e.before {
		size += len(e.body)
	}
	w.confirmed = w.safe
	w.event(event.Durable{Upto: w.confirmed.lsn, Bytes: uint64(size)})
	w.event(event.Applied{Upto: w.confirmed.lsn})
}

// pass advances time, until nothing is due.
func (w *Site) pass(gone time.Duration) {
	w.now.Mono += types.Instant(gone)
	w.now.Wall = w.now.Wall.Add(gone)
	for range 10 {
		before := w.last
		if w.event(event.Tick{}); w.last == before {
			return
		}
	}
	w.h.fail("time: the node is not done after ten ticks")
}

// ask is a request that reaches the node. Its answer is predicted.
func (w *Site) ask(i int) {
	h, u := w.h, &w.users[i]
	c := h.plan.scripts[i][u.at]
	u.use++
	before, books := w.last, w.last.books
	problem, changes := books.decide(h, w.now.Wall, u, c)
	u.state, u.want, u.frame = waiting, problem, nil
	if in := w.command(i, c); c.kind == callIssue {
		w.step(in.(*event.Request), books)
	} else {
		w.step(&event.Execute{Command: in}, books)
	}
	if changes {
		if u.frame = w.last; w.last == before {
			h.fail("P1: %v records nothing", c)
		}
	}
	w.deliver()
}

// command returns the command of a call. A retry has the same content, and keys of its own.
func (w *Site) command(i int, c call) command.Command {
	u := &w.users[i]
	name := func(text string) types.Name { return types.Name{ID: digest.Name([]byte(text)), Text: []byte(text)} }
	key := name(fmt.Sprintf("user%d-%d", i, u.use))
	head := command.Header{Ticket: types.NewTicket(uint32(i), u.use), Caller: boss.ID, Tenant: boss.Tenant}
	put := storage.Put{Header: head, Bucket: storage.Bucket(siteBucket), Address: siteAddress(int(c.object)), Size: siteSize, File: storage.File(u.use)<<1 | storage.File(i)}
	switch c.kind {
	case callPut:
		put.Seal()
		return &put
	case callDelete:
		d := &storage.Delete{Header: head, Bucket: put.Bucket, Address: put.Address}
		d.Seal()
		return d
	case callReserve:
		r := &flow.Reserve{Header: head, Size: siteSize}
		r.Header.Key = key
		r.Seal()
		return r
	case callPaid:
		p := &flow.PaidPut{Put: put, Hold: u.hold, Key: key}
		p.Seal()
		return p
	case callCancel:
		r := &flow.Cancel{Header: head, Hold: u.hold}
		r.Header.Key = key
		r.Seal()
		return r
	case callIssue:
		in := &event.Request{Header: head, Item: event.Item{Op: event.Issue, To: name(sitePayer), Asset: name(siteAsset), Amount: types.MinorUnits(c.units())}}
		in.Key = key
		in.Seal(nil)
		return in
	case callReport, callPrepaid, callMetered:
	}
	report := accounting.RecordEvents{Header: head}
	series, err := accounting.NewSeries("requests", nil)
	for n, e := range c.events {
		report.Events = append(report.Events, accounting.Event{Source: "site", ID: fmt.Sprint(e.id), Series: series, Value: uint64(e.units), Time: begin, Place: uint16(n)})
	}
	if c.kind == callMetered {
		w.failed(err)
		return w.metered(c, head, series, key)
	}
	if c.kind == callReport {
		if err == nil {
			err = report.Seal()
		}
		w.failed(err)
		return &report
	}
	paid := &flow.PrepaidEvents{RecordEvents: report, Terms: w.h.terms, Key: key}
	if err == nil {
		err = paid.Seal()
	}
	w.failed(err)
	return paid
}

// metered returns the command of the node that records requests.
func (w *Site) metered(c call, head command.Header, s accounting.Series, key types.Name) *flow.PayRequests {
	head.Caller = 0
	p := &flow.PayRequests{RecordMetered: accounting.RecordMetered{Header: head}, Terms: w.h.terms, Key: key}
	for _, e := range c.events {
		p.Metered = append(p.Metered, accounting.Metered{Series: s, Time: begin, Count: accounting.Count{Value: uint64(e.units), Events: 1}})
	}
	p.Seal()
	return p
}

func (w *Site) failed(err error) {
	if err != nil {
		w.h.fail("a call: %w", err)
	}
}

// reply handles an answer of the node.
func (w *Site) reply(r event.Reply) {
	i := int(r.Ticket.Slot())
	if i >= len(w.users) {
		return // the site's own
	}
	h, u := w.h, &w.users[i]
	switch {
	case u.state != waiting || uint32(r.Ticket>>32) != u.use:
		h.fail("P1: an answer without a request: %+v", r)
	case r.After > w.confirmed.lsn:
		h.fail("P1: the answer shows %v, durable is %v", r.After, w.confirmed.lsn)
	case r.Problem != u.want:
		h.fail("P1: user %d gets %q, the model has %q", i, r.Problem.Code(), u.want.Code())
	case u.frame != nil && r.Position.LSN != u.frame.lsn:
		h.fail("P1: user %d gets %v, its outcome is in %v", i, r.Position, u.frame.lsn)
	}
	u.state, u.mail = mailed, event.Reply{Problem: r.Problem, Position: r.Position}
}

// hear handles a user's answer.
func (w *Site) hear(i int) {
	h, u := w.h, &w.users[i]
	c := h.plan.scripts[i][u.at]
	switch u.mail.Problem {
	case event.None:
		h.Saw[siteDone]++
		if c.kind == callReserve {
			u.hold = types.NewTxID(siteJournal, u.mail.Position)
		}
	case event.PaymentRequired, event.PaymentExpired, event.PrepaidExceeded, event.HoldNotActive:
		h.Saw[siteUnpaid]++
	default:
		h.Saw[siteRejected]++
	}
	if u.frame != nil {
		w.facts[i] = u.frame
	}
	w.proceed(u)
}

// proceed goes on with the next call.
func (w *Site) proceed(u *user) {
	u.at++
	u.tries = w.h.plan.tries
	u.state, u.mail, u.want, u.frame = idle, event.Reply{}, event.None, nil
}

// power loses all frames after one, and starts the node again.
func (w *Site) power(upto types.LSN) {
	h, stays := w.h, w.last.upto(upto)
	w.left.powers--
	if stays != w.last {
		h.Saw[siteLost]++
	}
	if stays != w.confirmed {
		h.Saw[siteTail]++
	}
	for i := range w.users {
		if w.facts[i] != nil {
			h.Saw[siteAcknowledged]++
		}
		if u := &w.users[i]; u.state != idle {
			w.repeat(i, u, stays)
		}
	}
	w.last, w.safe = stays, stays
	w.confirmed = h.empty
	w.boot()
}

// repeat lets a user make its call once more. Without attempts left it goes on.
func (w *Site) repeat(i int, u *user, stays *entry) {
	if u.frame != nil && stays.has(u.frame) {
		w.h.Saw[siteRetried]++
	}
	if u.tries--; u.tries == 0 || w.h.plan.scripts[i][u.at].kind == callMetered { // the node never repeats what it has metered
		w.proceed(u)
		return
	}
	u.state, u.mail, u.want, u.frame = idle, event.Reply{}, event.None, nil
	for u.at > 0 && w.h.plan.scripts[i][u.at].kind == callPaid { // from its reservation on
		u.at--
	}
}

// boot folds the journal and starts a node. All that was read is durable.
func (w *Site) boot() {
	h := w.h
	st := h.fresh()
	if h.fold(w.last); h.err != nil {
		return
	}
	h.view.CopyTo(&st)
	w.node = h.start(st)
	w.confirmed = w.last
	w.event(event.Recovered{Recovery: event.Recovery{Journal: siteJournal}})
	if !st.Keys.Bootstrapped() {
		w.event(&event.CreateKey{Ticket: types.NewTicket(9, 1), Key: boss})
	}
	for c := range types.NumServices {
		w.event(event.ServiceUp{Service: c})
	}
}
