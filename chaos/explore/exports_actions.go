package explore

import (
	"fmt"

	"macronode/core/command"
	"macronode/core/event"
	"macronode/core/export"
	"macronode/core/lanes"
	"macronode/core/record"
	"macronode/core/types"
)

// The atomic actions of exports.
type exportsAct uint8

const (
	exportsSeal    exportsAct = iota + 1 // a position is sealed
	exportsOffer                         // the scheduler is offered what is durable
	exportsArrive                        // a send arrives at the sink
	exportsHear                          // the scheduler hears an answer of the sink
	exportsLose                          // a send or its answer is lost
	exportsDelay                         // the scheduler gives up a send that arrives later
	exportsDecide                        // the node decides a command
	exportsRefuse                        // or cannot take it
	exportsSync                          // records are made durable, and commands are answered
	exportsRedrive                       // an operator has a position redelivered
	exportsWait                          // until the next retry
	exportsPower                         // the power fails, and the node starts again
	exportsActs
)

// Say describes an action.
func (w *Exports) Say(a Action) string {
	what := [exportsActs]string{exportsSeal: "seal of lane", exportsOffer: "offer", exportsArrive: "arrives", exportsHear: "hears", exportsLose: "is lost", exportsDelay: "is given up",
		exportsDecide: "the node decides", exportsRefuse: "the node cannot take", exportsSync: "sync", exportsRedrive: "redrive", exportsWait: "time passes", exportsPower: "POWER LOST: records stay"}[exportsAct(a.kind())]
	switch exportsAct(a.kind()) { //nolint:exhaustive // the others have a number at most
	case exportsArrive, exportsHear, exportsLose, exportsDelay:
		return fmt.Sprintf("%s: %+v", what, w.net.words[a.n()])
	case exportsDecide, exportsRefuse:
		return fmt.Sprintf("%s: %+v", what, w.asked.commands[a.n()].of)
	}
	return fmt.Sprintf("%s %d", what, a.n())
}

// Enabled returns the possible actions.
func (w *Exports) Enabled(to []Action) []Action {
	add := func(a exportsAct, n int) { to = append(to, action(act(a), n, false, false)) }
	for i, n := range w.h.plan.positions {
		if w.heads[i] < n {
			add(exportsSeal, i)
		}
	}
	if w.machine.Again() || w.offered != w.heads || w.scanned != w.safe && w.books(w.safe).due != w.books(w.scanned).due {
		add(exportsOffer, 0)
	}
	for i := range int(w.net.count) {
		n := &w.net.words[i]
		if n.isAnswer {
			add(exportsHear, i)
		} else {
			add(exportsArrive, i)
		}
		if w.left.losses > 0 && n.run == w.run {
			add(exportsLose, i)
			if w.left.delays > 0 && !n.isAnswer {
				add(exportsDelay, i)
			}
		}
	}
	for i := range int(w.asked.count) {
		if !w.asked.commands[i].isDecided {
			add(exportsDecide, i)
			if w.left.busy > 0 {
				add(exportsRefuse, i)
			}
			break
		}
	}
	if w.safe != w.last || w.asked.count > 0 && w.asked.commands[0].isDecided {
		add(exportsSync, 0)
	}
	if w.left.redrives > 0 {
		b := w.books(w.safe)
		for i := range exportsLanes {
			if b.quarantined[i]&^b.due[i] != 0 {
				add(exportsRedrive, i)
			}
		}
	}
	if due, any := w.machine.Due(); any && due > w.now && w.left.waits > 0 {
		add(exportsWait, 0)
	}
	if w.left.powers > 0 {
		for n := w.safe; n <= w.last; n++ {
			add(exportsPower, int(n))
		}
	}
	return to
}

// Do does an action, and returns the violated rule.
func (w *Exports) Do(a Action) error {
	w.h.err = nil
	switch n := a.n(); exportsAct(a.kind()) {
	case exportsSeal:
		w.heads[n]++
	case exportsOffer:
		w.offers()
	case exportsArrive:
		w.arrives(n)
	case exportsHear:
		if word := w.net.take(n); word.run == w.run {
			w.hears(word, word.outcome)
		}
	case exportsLose:
		w.left.losses--
		w.hears(w.net.take(n), lanes.Retryable)
	case exportsDelay:
		w.left.losses--
		w.left.delays--
		word := w.net.words[n]
		w.net.words[n].run = 0
		w.hears(word, lanes.Retryable)
	case exportsDecide:
		w.decides(n)
	case exportsRefuse:
		w.left.busy--
		w.h.Saw[exportsBusy]++
		c := w.asked.commands[n].of
		w.asked.drop(n)
		w.machine.Answered(w.now, c, lanes.Retry)
	case exportsSync:
		w.syncs()
	case exportsRedrive:
		w.redrives(n)
	case exportsWait:
		w.left.waits--
		w.now, _ = w.machine.Due()
	case exportsPower, exportsActs:
		w.power(uint8(n))
	}
	w.pump()
	return w.h.err
}

// pump takes what the scheduler sends and asks now, as its loop does after each event.
func (w *Exports) pump() {
	for {
		s, ok := w.machine.Next(w.now)
		if !ok {
			break
		}
		w.net.put(exportsWord{lane: w.lane(s.Lane), position: uint8(s.Position), isRow: s.Row, run: w.run, attempt: uint8(s.Attempt)})
	}
	for {
		c, ok := w.machine.NextCommand(w.now)
		if !ok {
			return
		}
		if c.To > c.From {
			w.h.Saw[exportsMany]++
		}
		w.asked.commands[w.asked.count] = exportsCommand{of: c}
		w.asked.count++
	}
}

func (w *Exports) lane(id types.LaneID) uint8 { return uint8(id.Tenant - 1) }

// offers offers the scheduler what is durable.
func (w *Exports) offers() {
	if w.machine.Again() {
		w.machine.BeginScan()
	}
	b := w.books(w.safe)
	for i := range exportsLanes {
		w.machine.Offer(w.h.ids[i].LaneID, uint64(b.cursor[i]), uint64(w.heads[i]))
		for p := uint8(1); p <= b.cursor[i]; p++ {
			if has(b.due[i], p) {
				w.machine.OfferRow(w.h.ids[i].LaneID, uint64(p))
			}
		}
	}
	w.offered, w.scanned = w.heads, w.safe
}

// arrives gives a send to the sink, which answers.
func (w *Exports) arrives(i int) {
	n := w.net.take(i)
	bad := has(w.h.plan.bad[n.lane], n.position) && !n.isRow
	switch {
	case bad:
		n.outcome = lanes.Permanent
	case has(w.stored[n.lane], n.position):
		n.outcome = lanes.Duplicate
		w.h.Saw[exportsTwice]++
	default:
		n.outcome = lanes.OK
		b := w.books(w.safe)
		for p := uint8(1); p < n.position; p++ {
			if !has(w.stored[n.lane], p) && !has(b.quarantined[n.lane], p) {
				w.h.fail("X2: the sink gets %d of lane %d, and not yet %d", n.position, n.lane, p)
			}
		}
		w.stored[n.lane] |= bit(n.position)
	}
	if n.run != w.run { // the answer is ignored
		w.h.Saw[exportsLate]++
		return
	}
	n.isAnswer = true
	w.net.put(n)
}

// hears ends a send.
func (w *Exports) hears(n exportsWord, o lanes.Outcome) {
	r := lanes.Result{Outcome: o}
	if o == lanes.Permanent {
		r.Reason, r.Status = types.ExportRejected, 400
	}
	w.machine.Sent(w.now, lanes.Send{Lane: w.h.ids[n.lane].LaneID, Position: uint64(n.position), Row: n.isRow, Attempt: uint32(n.attempt)}, r)
}

// decides lets the node decide a command of the scheduler. Its answer waits for the records that it shows.
func (w *Exports) decides(i int) {
	c := &w.asked.commands[i]
	h := command.Header{Tenant: c.of.Lane.Tenant}
	b, lane := w.books(w.last), w.lane(c.of.Lane)
	var in command.Command
	switch c.of.Kind {
	case lanes.Settle:
		in = &export.Settle{Header: h, Lane: c.of.Lane, From: c.of.From, To: c.of.To}
		b.cursor[lane] = uint8(c.of.To)
	case lanes.Quarantine:
		in = &export.Quarantine{Header: h, Lane: c.of.Lane, Position: c.of.From, Reason: c.of.Reason, Status: c.of.Status}
		b.cursor[lane] = max(b.cursor[lane], uint8(c.of.From))
		b.quarantined[lane] |= bit(uint8(c.of.From))
		b.due[lane] &^= bit(uint8(c.of.From))
		if !has(w.h.plan.bad[lane], uint8(c.of.From)) {
			w.h.fail("X4: %d of lane %d is quarantined, and the sink has not rejected it", c.of.From, lane)
		}
	case lanes.Resolve:
		in = &export.Resolve{Header: h, Lane: c.of.Lane, Position: c.of.From}
		b.quarantined[lane] &^= bit(uint8(c.of.From))
		b.due[lane] &^= bit(uint8(c.of.From))
		if !has(w.stored[lane], uint8(c.of.From)) {
			w.h.fail("X4: %d of lane %d is redelivered, and not stored", c.of.From, lane)
		}
	}
	c.isDecided = true
	switch problem := w.record(in, b); problem {
	case event.None:
		c.answer = lanes.Done
		w.h.Saw[exportsQuarantined] += uint64(count(c.of.Kind == lanes.Quarantine))
		w.h.Saw[exportsResolved] += uint64(count(c.of.Kind == lanes.Resolve))
	case event.ExportCapacity:
		c.answer = lanes.Full
		w.isFull = true
		w.h.Saw[exportsFull]++
	default:
		w.h.fail("X5: %+v is refused: %s", c.of, problem.Code())
	}
	c.after = w.last
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}

// record decides a command. If it is recorded, the model is the one after it.
func (w *Exports) record(in command.Command, b exportsBooks) event.Problem {
	f := &w.h.frame
	*f = exportsFrame{}
	var reply event.Reply
	if w.plane.Decide(0, in, f, &reply); reply.Problem != event.None || !f.is {
		return reply.Problem
	}
	if !w.plane.Fits(&f.rec) {
		w.h.fail("X5: %T does not fit", in)
	}
	w.plane.Apply(0, types.TxID{}, &f.rec)
	r := &w.log[w.last]
	*r = exportsRecord{f.rec.Kind, f.rec.Tenant, [exportsPayload]byte(f.rec.Payload), b}
	w.last++
	return event.None
}

// syncs makes the records durable, and answers the commands that wait for them.
func (w *Exports) syncs() {
	w.safe = w.last
	for w.asked.count > 0 && w.asked.commands[0].isDecided {
		c := w.asked.commands[0]
		w.asked.drop(0)
		w.machine.Answered(w.now, c.of, c.answer)
	}
}

// redrives has the first quarantined position of a lane redelivered.
func (w *Exports) redrives(lane int) {
	w.left.redrives--
	b := w.books(w.safe)
	p := uint8(1)
	for !has(b.quarantined[lane]&^b.due[lane], p) {
		p++
	}
	now := w.books(w.last)
	if !has(now.quarantined[lane], p) { // resolved meanwhile
		return
	}
	now.due[lane] |= bit(p)
	id := w.h.ids[lane].LaneID
	if problem := w.record(&export.Redrive{Header: command.Header{Tenant: id.Tenant}, Lane: id, Position: uint64(p)}, now); problem != event.None {
		w.h.fail("X5: a redrive of %d is refused: %s", p, problem.Code())
	}
}

// power loses all records after some, and starts the plane and the scheduler again. All sends are on their way, and none is waited for.
func (w *Exports) power(upto uint8) {
	h := w.h
	w.left.powers--
	if upto < w.last {
		h.Saw[exportsLost]++
	}
	if upto > w.safe {
		h.Saw[exportsTail]++
	}
	h.empty.CopyTo(h.view)
	for i := range upto {
		of := &w.log[i]
		r := record.Record{Kind: of.kind, Tenant: of.tenant, Payload: of.body[:]}
		if !h.view.Fits(&r) {
			h.fail("X5: record %d does not fit", i)
			return
		}
		h.view.Apply(0, types.TxID{}, &r)
	}
	if upto == w.last && h.view.Hash() != w.plane.Hash() {
		h.fail("X5: the records give another state")
	}
	h.view.CopyTo(w.plane)
	for i := upto; i < w.last; i++ {
		w.log[i] = exportsRecord{}
	}
	w.last, w.safe = upto, upto
	left := exportsNet{}
	for i := range w.net.count {
		if n := w.net.words[i]; !n.isAnswer {
			n.run = 0
			left.put(n)
		}
	}
	w.net = left
	w.starts()
}
