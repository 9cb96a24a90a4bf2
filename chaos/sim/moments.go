package sim

import (
	"slices"
	"time"

	"macronode/core/event"
	"macronode/core/idempotency"
	"macronode/core/types"
)

// Moves for rare situations. They are moves of visitors, so that a run with a wide gate has none.

// brink advances time to just before the expiry of a hold, and its client makes a request before
// the node ends the hold: to end it, to capture it, or in a batch that is undone. Or another
// request comes, and a snapshot is made with an expired hold. A client without a hold opens one.
func (w *World) brink() {
	c := w.clients[w.c.Choose("brink/who", 3)]
	if c.out != 0 || c.doubts {
		return
	}
	c.want, c.asking, c.class, c.boss, c.aims = nil, nil, mixed, true, false
	b := w.fol.Balance(c.tenant, []byte(c.account), []byte("EUR/2"))
	i := slices.IndexFunc(c.holds, func(h hold) bool { _, stands := w.audit.model.Hold(h.id); return stands })
	if i < 0 {
		item := c.pay(w, b, event.Hold, 2)
		if item.Op == event.Hold {
			item.ExpiresAt = w.now.Wall.Add(time.Duration(1+w.c.Choose("brink/for", 5)) * time.Second)
		}
		c.hurries(w, &event.Request{Item: item})
		return
	}
	o, _ := w.audit.model.Hold(c.holds[i].id)
	w.gone(max(0, min(time.Minute, time.Duration(o.Until-w.now.Wall)*time.Millisecond)))
	pay := event.Item{Op: event.Transfer, From: name(c.account), To: name("shop"), Asset: name("EUR/2"), Amount: types.MinorUnits(1), Nonce: b.NextNonce}
	r := &event.Request{Item: pay}
	switch w.c.Choose("brink/what", 5) {
	case 0:
		r.Item = event.Item{Op: event.Release, From: name(c.account), Hold: o.Hold, Asset: name(o.Asset)}
	case 1:
		r.Item = event.Item{Op: event.Capture, From: name(c.account), To: name(max(o.To, "shop")), Hold: o.Hold, Asset: name(o.Asset), Amount: types.MinorUnits(1)}
	case 2: // the last of them can never be done
		r.Item, r.Atomic, r.Items = event.Item{Op: event.Batch}, true, []event.Item{pay, c.issue(500)}
	case 3:
		r.Item = c.issue(1)
	}
	if c.hurries(w, r); w.odds.snapshot > 0 && w.c.Choose("brink/snapshot", 2) == 1 {
		w.snapshot()
	}
}

// spree makes many small requests with a key each, faster than the index folds.
func (w *World) spree() {
	c := w.clients[w.c.Choose("spree/who", 3)]
	if c.out != 0 || c.doubts {
		return
	}
	for range 3 + w.c.Choose("spree/many", 6) {
		if c.out == 0 && !c.doubts {
			c.want, c.asking, c.class, c.boss, c.aims = nil, nil, mixed, true, false
			c.hurries(w, &event.Request{Item: c.issue(1)})
		}
	}
}

// hurries submits r, and lets the node and its disk work.
func (c *client) hurries(w *World, r *event.Request) {
	c.want = c.sealed(w, r)
	for n := 0; n < 3 && c.want != nil; n++ {
		c.insist(w)
		w.lets()
		w.round()
	}
}

// trusts: an operator trusts the machine's clock.
func (w *World) trusts() {
	if w.odds.clock > 0 {
		w.swayed = true
		w.step(event.Signal{Kind: event.AcceptClock})
	}
}

// closes begins a drain while the gate is full.
func (w *World) closes() {
	if !w.draining && w.odd("gate/closes", 24, w.odds.drain) {
		w.drains()
	}
}

// finds looks up the outcome of a client's key.
func (w *World) finds() {
	c := w.clients[w.c.Choose("find/who", 3)]
	if c.keys == 0 || len(w.clerk.admin) > 0 {
		return
	}
	in := &event.FindOutcome{Ticket: w.own(), Caller: boss.ID, Tenant: boss.Tenant, Key: types.Name{Text: c.key(1 + w.c.Choose("find/which", c.keys))}, IndexedTo: w.index.mark}
	if in.Seal(); w.c.Choose("find/blind", 6) == 1 {
		in.IndexedTo = 0
	} else {
		in.Prior = w.index.seen[idempotency.Key{Tenant: in.Tenant, Name: in.Key.ID}]
	}
	text := string(in.Key.Text)
	known := slices.Clone(w.promise.answers[text])
	w.boss(in.Ticket, in, func(r event.Reply) { w.foundBy(text, known, r) })
}

// foundBy compares a look-up with earlier answers.
func (w *World) foundBy(key string, known []answer, r event.Reply) {
	var s event.Status
	w.node.Status(&s)
	for _, a := range known {
		if isLive := w.audit.ats[a.place.LSN].Add(limits().Idempotency.TTL) > s.At; isLive && (r.Problem == event.NotFound || r.Problem == event.None && r.Position != a.place) {
			w.fail("found-otherwise", "%s was told to stand at %v, and is looked up: %+v", key, a.place, r)
		}
	}
	switch r.Problem { //nolint:exhaustive // the others have no outcome
	case event.None:
		w.Saw["looked up, and found"]++
		w.note(len(known) == 0, "looked up before any answer")
		w.note(r.Position.LSN <= s.Forgot, "looked up, and only the index has it")
	case event.NotFound:
		w.Saw["looked up, and not found"]++
	case event.StaleIndexRead:
		w.Saw["looked up with a stale index read"]++
	}
}
