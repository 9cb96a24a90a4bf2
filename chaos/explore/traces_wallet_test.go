package explore

import (
	"macronode/core/event"
	"macronode/core/node"
	"macronode/core/record"
	"macronode/core/types"
)

// walletPlan stays within Wallet: no holds, no batches, no expired keys.
func walletPlan() Plan {
	pay := transfer(2, "ann", "bob", 3, 1)
	return Plan{powers: 1, kills: 1, fails: 1, passes: 2, torn: true, patience: 2 * second, waiters: 1,
		scripts: [][]wish{{issue(1, "ann", 5), pay, burn(3, "ann", 9, 2)}, {pay, transfer(2, "ann", "bob", 4, 1), burn(4, "bob", 1, 1), burn(0, "ann", 5, 1)}}}
}

// walletTeller translates a run to steps of Wallet. Each request is a client of its own; one
// without an outcome retries for ever.
type walletTeller struct {
	steps           []observed
	asks            int
	cur             [2]int      // the clients of the specification, by client of the world
	held            map[int]int // clients with held replies, and their frames
	durable, folded int
	failed          bool
	was             *page
	wish            *wish
}

func newWalletTeller() *walletTeller { return &walletTeller{held: map[int]int{}} }

func (t *walletTeller) trace() []observed { return t.steps }

func (t *walletTeller) may(*World, Action) bool { return true }

func (t *walletTeller) tell(x ...any) { t.steps = append(t.steps, x) }

// frames counts the frames up to a page that have an outcome.
func frames(p *page) (n int) {
	for ; p.before != nil; p = p.before {
		if p.outcome >= 0 {
			n++
		}
	}
	return n
}

func (w *World) framesTo(lsn types.LSN) int {
	if p := w.last.upto(lsn); p != nil {
		return frames(p)
	}
	return 0
}

func (t *walletTeller) before(w *World, a Action) {
	if t.was = w.last; a.kind() == actAsk {
		t.wish = w.next(a.n())
	}
}

// ask returns a new client.
func (t *walletTeller) ask(i int) (client int) {
	t.asks++
	t.cur[i] = t.asks
	one, side := &t.wish.r, func(n types.Name) string {
		if len(n.Text) == 0 {
			return "nobody"
		}
		return string(n.Text)
	}
	t.tell("Ask", t.asks, string(one.Key.Text), one.Op.String(), side(one.From), side(one.To), int(one.Amount.Lo), int(one.Nonce))
	return t.asks
}

func (t *walletTeller) after(w *World, a Action) {
	if w.life != alive {
		return
	}
	if a.kind() == actBoot {
		n := frames(w.last)
		t.tell("Begin", n)
		t.durable, t.folded, t.failed, t.held = n, n, false, map[int]int{}
		return
	}
	if a.kind() == actAsk {
		t.decided(w, a.n())
	}
	var v node.SpecView
	w.node.SpecView(&v)
	if n := w.framesTo(v.Durable); n > t.durable {
		t.tell("Sync", n)
		t.durable = n
	}
	if v.Failed && !t.failed && t.durable < frames(w.last) {
		t.failed = true
		t.tell("Fail")
		for c, after := range t.held { //nolint:maporder // each alone
			if after > t.durable {
				delete(t.held, c)
			}
		}
	}
	for n := w.framesTo(v.Folded); t.folded < n; {
		t.folded++
		t.tell("Follow", t.folded)
	}
	for i := range w.clients {
		t.heard(w, i)
	}
}

// decided adds the step of a request, if it is decided.
func (t *walletTeller) decided(w *World, i int) {
	c := &w.clients[i]
	if t.cur[i] = 0; c.state == mailed && blank(c.mail.Problem) {
		return // nothing is decided
	}
	k := t.ask(i)
	switch {
	case w.last == t.was || w.last.outcome < 0:
		t.tell("Step", k)
		t.held[k] = frames(w.last)
	default:
		var r record.Record
		_, rest, _ := record.Open(w.last.body)
		for range w.last.outcome + 1 {
			rest, _ = record.Next(rest, &r)
		}
		if t.held[k] = frames(w.last); r.Kind == record.Posted {
			t.tell("Moved", k, int(r.Seq), int(r.FromBalance.Lo), int(r.ToBalance.Lo))
		} else {
			t.tell("Refused", k, map[event.Problem]string{event.NonceUsed: "used", event.InsufficientFunds: "short"}[r.Problem], int(r.Nonce))
		}
	}
}

// heard adds the end of a request: its reply leaves, or its client loses patience.
func (t *walletTeller) heard(w *World, i int) {
	c, k := &w.clients[i], t.cur[i]
	_, held := t.held[k]
	if c.state != mailed || !held {
		return
	}
	delete(t.held, k)
	switch m := c.mail; {
	case blank(m.Problem):
		t.tell("Patience", k)
	case m.Problem == event.None:
		t.tell("Leave", k, "record", w.framesTo(m.Position.LSN), 0)
	case m.Problem == event.NonceAhead:
		t.tell("Leave", k, "ahead", 0, int(c.observed.nonce))
	default:
		t.tell("Leave", k, "conflict", 0, 0)
	}
}
