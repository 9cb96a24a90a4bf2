package graph

import "slices"

// QueueSizes are the constants of Queue.tla, for two callers of one tenant.
type QueueSizes struct{ Slots, Limit, Share, Asks, Leaves int }

// The records of Queue.tla.
type (
	pass struct{ slot, gen int } // a ticket
	desk struct {                // a slot
		gen           int
		waits, marked bool
		reply         []pass
	}
	heldItem struct {
		ticket pass
		n      int
		gone   bool
	}
	caller struct {
		pc     string
		slot   int
		ticket pass
	}
)

// QueueState is a state. Shared parts are never changed.
type QueueState struct {
	free         []int
	slot         []desk
	ring         []pass // all of one tenant
	held         []heldItem
	crowd        int
	gone         []pass
	caller       [2]caller
	out, count   int
	asks, leaves int
}

func (p pass) String() string { return fields("slot", num(p.slot), "gen", num(p.gen)) }

func (d desk) String() string {
	return fields("gen", num(d.gen), "waits", truth(d.waits), "marked", truth(d.marked), "reply", seq(each(d.reply, pass.String)...))
}

func (c caller) String() string {
	return fields("pc", c.pc, "slot", num(c.slot), "ticket", c.ticket.String())
}

func (s *QueueState) String() string {
	ring := each(s.ring, func(p pass) string { return fields("ticket", p.String(), "of", "t") })
	held := each(s.held, func(x heldItem) string {
		return fields("ticket", x.ticket.String(), "of", "t", "n", num(x.n), "gone", truth(x.gone))
	})
	return fields("free", seq(each(s.free, num)...), "slot", seq(each(s.slot, desk.String)...), "ring", seq(ring...), "held", seq(held...),
		"crowd", fields("t", num(s.crowd), "u", "0"), "gone", seq(each(s.gone, pass.String)...),
		"caller", fields("c1", s.caller[0].String(), "c2", s.caller[1].String()), "out", fields("t", num(s.out), "u", "0"),
		"count", num(s.count), "spent", fields("asks", num(s.asks), "leaves", num(s.leaves)))
}

func (s *QueueState) copied() *QueueState {
	c := *s
	c.slot = slices.Clone(s.slot)
	return &c
}

// back resets a caller and frees its slot.
func (s *QueueState) back(c int) {
	s.free = append(slices.Clone(s.free), s.caller[c].slot)
	s.caller[c] = caller{pc: "out"}
}

// deliver passes a reply to its caller, if it still waits.
func (s *QueueState) deliver(p pass) {
	if d := &s.slot[p.slot-1]; d.waits && d.gen == p.gen {
		d.waits, d.reply = false, append(slices.Clone(d.reply), p)
	}
}

// Queue is Queue.tla.
func Queue(z QueueSizes) Spec[*QueueState] {
	first := &QueueState{caller: [2]caller{{pc: "out"}, {pc: "out"}}, slot: make([]desk, z.Slots)}
	for i := range z.Slots {
		first.free = append(first.free, i+1)
	}
	return Spec[*QueueState]{
		Init: first,
		Next: func(s *QueueState, step func(string, *QueueState)) {
			s.node(z, step)
			idle := len(s.ring)+len(s.held)+len(s.gone) == 0 && s.asks == z.Asks
			for c := range s.caller {
				idle = idle && s.caller[c].pc == "out"
				s.calls(z, c, step)
			}
			if idle {
				step("Done", s)
			}
		},
	}
}

// node is Decide, Serve and Cancel.
func (s *QueueState) node(z QueueSizes, step func(string, *QueueState)) {
	if len(s.ring) > 0 {
		t := s.copied()
		p := s.ring[0]
		if t.ring = s.ring[1:]; len(s.held) >= z.Limit || s.crowd >= z.Share {
			t.deliver(p)
		} else {
			t.count, t.crowd = s.count+1, s.crowd+1
			t.held = append(slices.Clone(s.held), heldItem{ticket: p, n: t.count})
		}
		step("Decide", t)
	}
	if len(s.held) > 0 {
		t, x := s.copied(), s.held[0]
		t.held, t.out, t.crowd = s.held[1:], x.n, s.crowd-1
		if !x.gone {
			t.deliver(x.ticket)
		}
		step("Serve", t)
	}
	if len(s.gone) > 0 {
		t := s.copied()
		t.gone, t.held = s.gone[1:], slices.Clone(s.held)
		t.slot[s.gone[0].slot-1].marked = false
		for i := range t.held {
			t.held[i].gone = t.held[i].gone || t.held[i].ticket == s.gone[0]
		}
		step("Cancel", t)
	}
}

// calls are the steps of a caller.
func (s *QueueState) calls(z QueueSizes, c int, step func(string, *QueueState)) {
	x, t := s.caller[c], s.copied()
	switch x.pc {
	case "out":
		if len(s.free) == 0 || s.asks == z.Asks {
			return
		}
		at := s.free[0]
		d := &t.slot[at-1]
		t.asks, t.free = s.asks+1, s.free[1:]
		d.gen, d.waits = d.gen+1, true
		t.caller[c] = caller{"in", at, pass{at, d.gen}}
		step("Take", t)
	case "in":
		if len(s.ring) < z.Slots {
			t.ring, t.caller[c].pc = append(slices.Clone(s.ring), x.ticket), "waits"
			step("Push", t)
		}
		if s.leaves < z.Leaves {
			u := s.copied()
			u.leaves, u.slot[x.slot-1].waits = s.leaves+1, false
			u.back(c)
			step("GiveUp", u)
		}
	case "waits":
		s.waits(z, c, step)
	case "leaves":
		if d := &t.slot[x.slot-1]; !d.marked {
			d.marked, t.gone = true, append(slices.Clone(s.gone), x.ticket)
		}
		t.back(c)
		step("Mark", t)
	}
}

// waits is Hear and Leave.
func (s *QueueState) waits(z QueueSizes, c int, step func(string, *QueueState)) {
	at := s.caller[c].slot - 1
	if d := s.slot[at]; len(d.reply) > 0 {
		t := s.copied()
		t.slot[at].reply = d.reply[1:]
		t.back(c)
		step("Hear", t)
	}
	if s.leaves == z.Leaves {
		return
	}
	t := s.copied()
	t.leaves++
	if d := &t.slot[at]; d.waits {
		d.waits, t.caller[c].pc = false, "leaves"
	} else {
		d.reply = nil
		t.back(c)
	}
	step("Leave", t)
}
