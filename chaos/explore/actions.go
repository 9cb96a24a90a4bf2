package explore

import (
	"fmt"
	"time"

	"macronode/core/event"
	"macronode/core/node"
	"macronode/core/types"
)

// The atomic actions: the power may fail between any two.
type act uint8

const (
	actLook    act = iota + 1 // a client reads the mark of the index, and looks up
	actAsk                    // its request reaches the node
	actHear                   // it reads its answer
	actLeave                  // it cancels
	actGone                   // the node handles the cancellation
	actWrite                  // the journal gets a batch, and writes it
	actSync                   // the batch is synced
	actFail                   // the sync fails
	actFold                   // the read model folds the batch
	actListen                 // the node handles an event of the loop
	actPass                   // time passes until the node is due
	actJump                   // time passes
	actIndex                  // the index has all folded frames
	actTable                  // and they are durable
	actPower                  // the power fails
	actKill                   // the process is killed
	actRead                   // a start reads the journal
	actRewrite                // and makes it durable
	actBoot                   // and the node starts
	actDrain                  // a drain begins
	actAbort                  // without waiting
	actUp                     // the public listener is up
	actDown                   // and has ended
	acts
)

func (a act) String() string {
	return [acts]string{"", "looks at the index", "asks", "hears", "leaves", "is known to have left", "write", "sync", "sync fails", "fold", "the node hears",
		"time passes", "time jumps", "index", "index table", "POWER LOST", "KILLED", "recovery reads", "recovery syncs", "boot", "drain", "abort", "listener up", "listener down"}[a]
}

// action returns an action with its parameters: a client, or the number of surviving frames; with
// half a frame after them, and without the index.
func action(a act, n int, torn, lost bool) Action {
	x := Action(a) | Action(n)<<8
	if torn {
		x |= 1 << 16
	}
	if lost {
		x |= 1 << 17
	}
	return x
}

func (a Action) kind() act  { return act(a) }
func (a Action) n() int     { return int(a>>8) & 0xff }
func (a Action) torn() bool { return a>>16&1 == 1 }
func (a Action) lost() bool { return a>>17&1 == 1 }

// Say describes an action.
func (w *World) Say(a Action) string {
	switch a.kind() {
	case actLook, actLeave, actGone:
		return fmt.Sprintf("client %d %v", a.n(), a.kind())
	case actAsk:
		return fmt.Sprintf("client %d asks %v", a.n(), w.next(a.n()))
	case actHear:
		m := w.clients[a.n()].mail
		return fmt.Sprintf("client %d hears %q %v, replayed %v", a.n(), m.Problem.Code(), m.Position, m.Replayed)
	case actWrite:
		return fmt.Sprintf("write %v..%v", w.handed.lsn+1, w.last.lsn)
	case actSync, actFail:
		return fmt.Sprintf("%v, up to %v", a.kind(), w.wrote.lsn)
	case actFold:
		return fmt.Sprintf("fold, up to %v", w.folds.words[0].page.lsn)
	case actListen:
		x := w.late.words[0]
		return fmt.Sprintf("the node hears: %s %v", [...]string{"", "durable", "folded", "refused from", "indexed", "the listener ended"}[x.what], x.page.lsn)
	case actPower, actKill:
		return fmt.Sprintf("%v: frames up to %v stay, of %v emitted, %v synced; torn %v, index lost %v", a.kind(), a.n(), w.last.lsn, w.safe.lsn, a.torn(), a.lost())
	default:
		return a.kind().String()
	}
}

func (w *World) indexing() bool { return w.h.scope.tables > 0 }

// Enabled returns the possible actions.
func (w *World) Enabled(to []Action) []Action {
	add := func(a act, n int) { to = append(to, action(a, n, false, false)) }
	if w.life == over {
		return to
	}
	to = w.crashes(to)
	switch w.life {
	case dead:
		add(actRead, 0)
		return to
	case read:
		if w.safe != w.wrote {
			add(actRewrite, 0)
		} else {
			add(actBoot, 0)
		}
		return to
	case alive, over:
	}
	for i := range w.clients {
		w.moves(i, add)
	}
	w.shell(add)
	w.times(add)
	return to
}

// moves adds the actions of a client.
func (w *World) moves(i int, add func(act, int)) {
	c := &w.clients[i]
	wants := w.next(i) != nil
	switch {
	case c.state == idle && wants && w.indexing():
		add(actLook, i)
	case c.state == idle && wants, c.state == looks:
		add(actAsk, i)
	case c.state == waiting && w.left.leaves > 0 && c.gone == 0:
		add(actLeave, i)
	case c.state == mailed:
		add(actHear, i)
	}
	if c.gone > 0 {
		add(actGone, i)
	}
}

// shell adds the actions of the loop.
func (w *World) shell(add func(act, int)) {
	flight := w.wrote != w.safe && !w.failing
	if w.handed != w.last && !flight && !w.late.full() {
		add(actWrite, 0)
	}
	if flight && !w.late.full() && !w.folds.full() {
		if add(actSync, 0); w.left.fails > 0 {
			add(actFail, 0)
		}
	}
	if w.folds.count > 0 && !w.late.full() {
		add(actFold, 0)
	}
	if w.late.count > 0 {
		add(actListen, 0)
	}
	if w.indexing() {
		if w.mark != w.folded {
			add(actIndex, 0)
		}
		if w.table != w.mark && w.left.tables > 0 && !w.late.full() {
			add(actTable, 0)
		}
	}
	if d := &w.http; w.h.scope.slow {
		if d.wanted && !d.up {
			add(actUp, 0)
		}
		if d.up && !w.late.full() && (!d.wanted || w.left.downs > 0) {
			add(actDown, 0)
		}
	}
}

// times adds the passing of time, and the drain.
func (w *World) times(add func(act, int)) {
	if due, any := w.node.Due(); any && (w.left.passes > 0 || due <= w.now.Mono || w.began > 0 && w.h.scope.drains > 0) {
		add(actPass, 0)
	}
	if w.left.jumps > 0 {
		add(actJump, 0)
	}
	if w.left.drains > 0 {
		add(actDrain, 0)
	}
	if w.left.aborts > 0 && w.began > 0 {
		add(actAbort, 0)
	}
}

// Do does an action, and returns the violated rule.
func (w *World) Do(a Action) error {
	w.h.err = nil
	w.act(a)
	return w.h.err
}

func (w *World) act(a Action) {
	c := &w.clients[a.n()&1]
	switch a.kind() {
	case actLook:
		c.state, c.asked = looks, w.mark
	case actAsk:
		c.ask(w, w.next(a.n()))
	case actHear:
		c.hear(w)
	case actLeave:
		w.left.leaves--
		w.h.saw(sawLeft)
		c.gone = c.use
		c.forget(w)
	case actGone:
		use := c.gone
		c.gone = 0
		w.step(event.Cancel{Ticket: types.NewTicket(uint32(a.n()), use)})
	case actWrite:
		w.write()
	case actSync:
		w.sync()
	case actFail:
		w.left.fails--
		w.failing = true
		w.h.saw(sawFailed)
		w.late.push(word{what: refused, page: w.wrote.upto(w.safe.lsn + 1)})
	case actFold:
		b := w.folds.pop()
		w.folded = b.page
		w.late.push(word{what: folds, page: b.page})
	case actListen:
		w.listen(w.late.pop())
	case actPass:
		if due, _ := w.node.Due(); due > w.now.Mono && w.left.passes > 0 {
			w.left.passes--
		}
		w.pass(0)
	case actJump:
		w.left.jumps--
		w.pass(w.h.scope.jump)
	case actIndex:
		w.mark = w.folded
	case actTable:
		w.left.tables--
		w.table = w.mark
		w.late.push(word{what: indexed, page: w.table})
	case actDrain:
		w.left.drains--
		w.began = w.now.Mono
		w.step(event.Signal{Kind: event.Drain})
	case actAbort:
		w.left.aborts--
		w.h.saw(sawAborted)
		w.step(event.Signal{Kind: event.Abort})
	case actUp:
		w.http.up = true
		w.step(event.ServiceUp{Service: types.ServiceHTTP})
	case actDown:
		if w.http.wanted {
			w.left.downs--
		}
		w.http = door{}
		w.late.push(word{what: ended, page: w.h.empty})
	default:
		w.power(a)
	}
}

// turn is one step of the node, including its frames.
func (w *World) turn(e event.Event) {
	h := w.h
	h.out.Reset()
	w.node.Step(w.now, e, &h.out)
	if len(h.out.Frames) > 1 {
		h.fail("one step: %d frames", len(h.out.Frames))
	}
	for _, f := range h.out.Frames {
		p := h.next(w.last, h.out.Body(f), f.LSN, w.node.StateHash())
		if p.bad != nil {
			h.fail("%w", p.bad)
		}
		if p.forgot > w.heard {
			h.fail("X8: keys up to %v leave, the index has them up to %v", p.forgot, w.heard)
		}
		for q := p.upto(p.forgot); q != nil && q.lsn > p.before.gone; q = q.before {
			h.saw(sawForgot)
			if q.outcome >= 0 && q.at.Add(h.scope.trail) > p.at {
				h.fail("X8: a key of %v at %d leaves at %d, too early", q.lsn, q.at, p.at)
			}
		}
		if p.lapsed {
			h.saw(sawLapsed)
		}
		if w.flushed == w.last.lsn {
			w.flush = w.now.Mono
		}
		w.last, w.emitted = p, w.now.Mono
	}
}

// carry delivers the effects of a turn.
func (w *World) carry() {
	h := w.h
	for _, r := range h.out.Replies {
		w.reply(r)
	}
	for _, op := range h.out.ServiceCommands {
		w.child(op)
	}
	if w.phase() == types.Stopped {
		w.stopped()
	}
}

func (w *World) step(e event.Event) {
	w.turn(e)
	w.carry()
}

// stopped handles the end of the process.
func (w *World) stopped() {
	w.life = over
	w.h.saw(sawStopped)
	for i := range w.clients {
		if w.clients[i].state == waiting {
			w.h.fail("X7: stopped, and client %d is not answered", i)
		}
	}
}

// child carries out a service command.
func (w *World) child(op event.ServiceCommand) {
	switch {
	case op.Service == types.ServiceHTTP && w.h.scope.slow:
		w.http.wanted = op.Verb == event.StartService
		w.http.killed = op.Verb == event.KillService
	case op.Verb != event.StartService:
		w.late.push(word{what: ended, page: w.h.empty})
	}
}

// write is the first move of the sealer.
func (w *World) write() {
	first := w.last.upto(w.handed.lsn + 1)
	w.handed = w.last
	if w.failing {
		w.late.push(word{what: refused, page: first})
		return
	}
	if w.wrote = w.last; w.h.scope.lies.early {
		w.synced()
	}
}

// sync is the second.
func (w *World) sync() {
	if !w.h.scope.lies.early {
		w.synced()
	}
	w.safe = w.wrote
}

// synced reports a batch to the node and the read model.
func (w *World) synced() {
	bytes := 0
	for p := w.wrote; p != w.safe; p = p.before {
		bytes += len(p.body)
	}
	w.late.push(word{what: durable, page: w.wrote, bytes: uint32(bytes)})
	w.folds.push(word{what: folds, page: w.wrote})
}

// listen delivers an event of the loop to the node.
func (w *World) listen(x word) {
	switch x.what {
	case durable:
		w.flushed, w.flush = x.page.lsn, w.now.Mono
		w.step(event.Durable{Upto: x.page.lsn, Bytes: uint64(x.bytes)})
	case folds:
		w.step(event.Applied{Upto: x.page.lsn})
	case refused:
		w.step(event.FlushFailed{From: x.page.lsn, Fault: event.SyncFailed})
	case indexed:
		w.heard = x.page.lsn
		w.step(event.Indexed{Upto: x.page.lsn})
	case ended:
		w.step(event.ServiceDown{Service: types.ServiceHTTP})
	}
}

// pass advances time by an amount, or until the node is due, with a Tick at the end. Then the
// Tick does something or moves Due; before Due, it does nothing.
func (w *World) pass(gone time.Duration) {
	due, any := w.node.Due()
	if gone == 0 && any {
		gone = time.Duration(max(0, due-w.now.Mono))
	}
	w.now.Mono += types.Instant(gone)
	w.now.Wall += types.Time((gone + time.Millisecond - 1) / time.Millisecond)
	last := w.last
	w.step(event.Tick{})
	acted := w.last != last || len(w.h.out.Replies) > 0 || len(w.h.out.ServiceCommands) > 0
	if acted && (!any || due > w.now.Mono) {
		w.h.fail("a tick acts: at %d, due %d %v", w.now.Mono, due, any)
	}
	if w.life != alive {
		return
	}
	if next, again := w.node.Due(); again && !acted && any && due <= w.now.Mono && next <= due {
		w.h.fail("due for ever: %d, after a tick that did nothing at %d", next, w.now.Mono)
	}
}

// phase returns the phase of the drain.
func (w *World) phase() types.Phase {
	var v node.SpecView
	w.node.SpecView(&v)
	return v.Phase
}

// forget resets a client that cancelled: the outcome is unknown to it.
func (c *client) forget(w *World) {
	c.since = 0
	c.state, c.mail, c.wish, c.saw, c.want, c.observed, c.asked = idle, event.Reply{}, nil, 0, fact{}, verdict{}, nil
	if c.tries == 0 {
		c.at++
		c.tries = w.h.scope.tries
	}
}
