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

// byAnother are those of twenty breaks of another reader, some weeks later, that nothing saw when he made them, and
// those that one technique alone saw.
func byAnother() []Mutant {
	return []Mutant{
		alone("only the loop's own timer can be beside what the disk says", one("a tick before what the disk has said", "a flush in time is not slow", "adapters/loop/loop.go",
			"\tfor len(l.late) > 0 && len(l.events) < l.batch {", "\tif ticks {\n\t\tl.events, ticks = append(l.events, event.Tick{}), false\n\t}\n\tfor len(l.late) > 0 && len(l.events) < l.batch {",
			"./adapters/loop TestATickComesBehindWhatTheDiskSaid$")),
		alone("the follower's room is its own", one("room of who waits no longer", "room to wait is given back", "adapters/follower/follower.go",
			"\t\tcase <-ctx.Done():\n\t\t\tf.leave()\n", "\t\tcase <-ctx.Done():\n", "./adapters/follower TestAwait$")),
		alone("no life gives a rule another route", one("another route pays for the one before", "what is counted is of one route", "core/quota/renew.go",
			"was.Unit == is.Unit && was.Route == is.Route && fresh", "was.Unit == is.Unit && fresh", "./core/quota TestAgrees$")),
		alone("the twin of the house knows no turns behind a settlement", one("who moves nothing pays nothing", "a request costs at least so much", "core/admit/admit.go",
			"min(max(bytes, a.limits.Least), 1<<40)", "min(bytes, 1<<40)", "./core/admit TestNothingIsCheaperThanTheLeast$")),
		alone("lives ask too seldom", one("part of a second that is lost", "one spare retry a second", "core/upstream/budget.go",
			"b.filled = b.filled.Plus(time.Duration(n) * refill)", "b.filled = b.filled.Plus(time.Duration(n) * refill)\n\tb.filled = now", "./core/upstream TestSpareRetriesComeBackByTheSecond$")),
		one("a ref of one operation is not looked up again", "a ref is for ever", "core/node/request.go", "Fresh(in.Upto, at, rows > 1)", "Fresh(in.Upto, at, rows > 2)", sim, "./chaos/sim TestCertificateRefuses$"),
		one("a drain ends with answers that wait", "D2", "core/node/node.go", "n.held.Len() == 0 && !n.outstanding()", "!n.outstanding()", sim, "./chaos/trace TestLegal"),
	}
}
