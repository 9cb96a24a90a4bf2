package mutants

// byHand are breaks that somebody chose who read the house and not its checks.
func byHand() []Mutant {
	const (
		decide, apply, window = "core/wallet/ledger/decide.go", "core/wallet/ledger/apply.go", "core/idempotency/idem.go"

		turns, asks, waits = "core/node/node.go", "core/node/request.go", "core/node/reply.go"
	)
	return []Mutant{
		one("any amount at once", "ceiling of one movement", decide, "if l.limits.MaxAmount.Less(r.Amount) {", "if false {", ledger, sim),
		one("held for ever", "a hold ends", decide, "r.ExpiresAt <= at || r.ExpiresAt > at.Add(types.MaxHoldDuration)", "r.ExpiresAt <= at", "./core/wallet/ledger TestAgreesOnAll$", "./core/wallet/ledger TestLapses$", sim),
		one("captured more than is held", "blnk-315", decide, "if s.hold.amount.Less(r.Amount) {", "if false {", ledger, sim),
		one("issued without a count of the day", "day ceiling", apply, "kind.issued, kind.issuedToday, kind.day = r.FromBalance, r.DebitedToday, at.Day()", "kind.issued, kind.day = r.FromBalance, at.Day()", ledger, sim),
		one("frozen for ever", "unfreeze", apply, "a.frozen = r.Op == event.Freeze", "a.frozen = true", ledger, stories),
		one("asset's holds not summed", "M6", apply, "kind.held, _ = rest.Add(now)", "kind.held = rest", ledger, stories, sim),
		one("refs that may age", "a ref is for ever", window, "return upto >= w.forgottenTo || !refs && !w.MayHaveForgotten(at)", "return upto >= w.forgottenTo || !w.MayHaveForgotten(at)", idem, sim),
		one("old keys without end", "time of a key", window, "!found && was.ID.Position().LSN > 0 && w.isLive(was.At, at)", "!found && was.ID.Position().LSN > 0", idem, sim),
		one("refs that the index has, used again", "a ref is for ever", window, "return was, was.Position().LSN > 0", "return was, false", idem, sim),
		one("forgets one frame less", "I1", window, "if s.ID.Position().LSN > upto {", "if s.ID.Position().LSN >= upto {", idem, stories, sim),
		one("backlog that only grows", "bytes not on disk", turns, "\tn.backlog -= in.Bytes\n", "", stories, sim),
		one("all of it durable at once", "told is durable", turns, "n.durable = max(n.durable, in.Upto)", "n.durable = n.state.LSN", stories, sim),
		one("first lost frame believed", "fsyncgate", turns, "return w.reply.After >= from })", "return w.reply.After > from })", stories, steps, sim),
		one("drain that takes work", "D2", asks, "case !n.recovered, n.drain.Refusing():\n\t\treturn event.Unavailable", "case !n.recovered:\n\t\treturn event.Unavailable", stories, steps, sim),
		one("those not lost, forgotten", "accepted is answered", waits, "case !lost(w):\n\t\t\tn.holdReply(w)", "case !lost(w):", stories, steps, sim),
		one("answers wait for what is durable alone", "told is folded", waits, "r.After = n.state.LSN", "r.After = n.durable", stories, sim),
		one("all or nothing, or some", "a batch is whole", "core/wallet/wallet.go", "\t\tf.Undo()\n", "", stories, sim),
		one("drain without an end", "D1", "core/lifecycle/drain/drain.go", "if d.phase == types.Draining && !quiet && d.deadline <= now {", "if false {", "./core/lifecycle/drain", stories),
		one("clock that follows back", "C1", "core/clock/clock.go", "c.at = max(even-slew, c.wall)", "c.at = c.wall", clock, sim),
		one("share never given back", "a tenant's replies", waits, "\tn.countHeld(w.tenant, -1)\n", "", stories, sim),
	}
}

// byAnother are those of twenty breaks of another reader, some weeks later, that nothing saw when he made them, and
// those that one technique alone saw.
func byAnother() []Mutant {
	return []Mutant{
		alone("only the loop's own timer can be beside what the disk says", one("a tick before what the disk has said", "a flush in time is not slow", "adapters/loop/loop.go",
			"\tfor len(l.late) > 0 && len(l.events) < l.batch {", "\tif ticks {\n\t\tl.events, ticks = append(l.events, event.Tick{}), false\n\t}\n\tfor len(l.late) > 0 && len(l.events) < l.batch {",
			"./adapters/loop TestATickComesBehindWhatTheDiskSaid$")),
		alone("the follower's room is its own", one("room of who waits no longer", "room to wait is given back", "adapters/readmodel/follower.go",
			"\t\tcase <-ctx.Done():\n\t\t\tf.leave()\n", "\t\tcase <-ctx.Done():\n", "./adapters/readmodel TestAwait$")),
		alone("no life gives a rule another route", one("another route pays for the one before", "what is counted is of one route", "core/gateway/quota/policy.go",
			"was.Unit == is.Unit && was.Route == is.Route && fresh", "was.Unit == is.Unit && fresh", "./core/gateway/quota TestAgrees$")),
		alone("the twin of the house knows no turns behind a settlement", one("who moves nothing pays nothing", "a request costs at least so much", "core/gateway/admission/admission.go",
			"min(max(bytes, a.limits.Least), 1<<40)", "min(bytes, 1<<40)", "./core/gateway/admission TestNothingIsCheaperThanTheLeast$")),
		alone("lives ask too seldom", one("part of a second that is lost", "one spare retry a second", "core/gateway/upstream/budget.go",
			"b.refilledAt = b.refilledAt.Add(time.Duration(n) * refillInterval)", "b.refilledAt = b.refilledAt.Add(time.Duration(n) * refillInterval)\n\tb.refilledAt = now", "./core/gateway/upstream TestSpareRetriesComeBackByTheSecond$")),
		one("a ref of one operation is not looked up again", "a ref is for ever", "core/node/request.go", "IndexReadIsFresh(in.IndexedTo, at, cost.Rows > 1)", "IndexReadIsFresh(in.IndexedTo, at, cost.Rows > 2)", sim, "./chaos/sim TestCertificateRefuses$"),
		one("a drain ends with answers that wait", "D2", "core/node/node.go", "n.held.Len() == 0 && !n.flushOutstanding()", "!n.flushOutstanding()", sim, "./chaos/trace TestLegal"),
	}
}
