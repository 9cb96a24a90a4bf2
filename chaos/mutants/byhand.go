package mutants

// byHand are breaks that somebody chose who read the house and not its checks.
func byHand() []Mutant {
	const (
		decide, apply, window = "core/ledger/decide.go", "core/ledger/apply.go", "core/idem/idem.go"

		turns, asks, waits = "core/node/node.go", "core/node/request.go", "core/node/reply.go"
	)
	return []Mutant{
		one("any amount at once", "ceiling of one movement", decide, "if l.limits.Amount.Less(r.Amount) {", "if false {", ledger, sim),
		one("held for ever", "a hold ends", decide, "r.Until <= at || r.Until > at.Plus(words.HoldFor)", "r.Until <= at", "./core/ledger TestAgreesOnAll$", "./core/ledger TestLapses$", sim),
		one("captured more than is held", "blnk-315", decide, "if s.hold.amount.Less(r.Amount) {", "if false {", ledger, sim),
		one("issued without a count of the day", "day ceiling", apply, "kind.issued, kind.spent, kind.day = r.FromNow, r.Spent, at.Day()", "kind.issued, kind.day = r.FromNow, at.Day()", ledger, sim),
		one("frozen for ever", "unfreeze", apply, "a.frozen = r.Op == event.Freeze", "a.frozen = true", ledger, stories),
		one("asset's holds not summed", "M6", apply, "kind.held, _ = rest.Plus(now)", "kind.held = rest", ledger, stories, sim),
		one("refs that may age", "a ref is for ever", window, "return upto >= w.forgot || !refs && !w.Aged(at)", "return upto >= w.forgot || !w.Aged(at)", idem, sim),
		one("old keys without end", "time of a key", window, "!found && was.ID.Place().LSN > 0 && w.lives(was.At, at)", "!found && was.ID.Place().LSN > 0", idem, sim),
		one("refs that the index has, used again", "a ref is for ever", window, "return was, was.Place().LSN > 0", "return was, false", idem, sim),
		one("forgets one frame less", "I1", window, "if s.ID.Place().LSN > upto {", "if s.ID.Place().LSN >= upto {", idem, stories, sim),
		one("backlog that only grows", "bytes not on disk", turns, "\tn.backlog -= in.Bytes\n", "", stories, sim),
		one("all of it durable at once", "told is durable", turns, "n.durable = max(n.durable, in.Upto)", "n.durable = n.state.LSN", stories, sim),
		one("first lost frame believed", "fsyncgate", turns, "return w.reply.After >= from })", "return w.reply.After > from })", stories, steps, sim),
		one("drain that takes work", "D2", asks, "case !n.booted, n.drain.Closed():\n\t\treturn event.Unavailable", "case !n.booted:\n\t\treturn event.Unavailable", stories, steps, sim),
		one("those not lost, forgotten", "accepted is answered", waits, "case !lost(w):\n\t\t\tn.hold(w)", "case !lost(w):", stories, steps, sim),
		one("answers wait for what is durable alone", "told is folded", waits, "r.After = n.state.LSN", "r.After = n.durable", stories, sim),
		one("all or nothing, or some", "a batch is whole", asks, "\t\tn.undo(d, out)\n", "\t\t_ = d\n", stories, sim),
		one("drain without an end", "D1", "core/drain/drain.go", "if d.phase == words.Draining && !quiet && d.until <= now {", "if false {", "./core/drain", stories),
		one("clock that follows back", "C1", "core/clock/clock.go", "c.at = max(even-slew, c.wall)", "c.at = c.wall", clock, sim),
		one("share never given back", "a tenant's replies", waits, "\tn.crowds(w.of, -1)\n", "", stories, sim),
	}
}
