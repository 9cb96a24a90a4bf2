package mutants

// byHand are bugs chosen by a reader of the code without knowledge of its checks.
func byHand() []Mutant {
	const (
		decide, apply, window = "core/wallet/ledger/decide.go", "core/wallet/ledger/apply.go", "core/idempotency/window.go"

		turns, asks, waits = "core/node/node.go", "core/node/request.go", "core/node/reply.go"
	)
	return []Mutant{
		one("amount limit is not checked", "amount limit", decide, "if l.limits.MaxAmount.Less(r.Amount) {", "if false {", ledger, sim),
		one("duration of a hold has no limit", "a hold expires", decide, "r.ExpiresAt <= at || r.ExpiresAt > at.Add(types.MaxHoldDuration)", "r.ExpiresAt <= at", "./core/wallet/ledger TestModelCoversEveryProblem$", "./core/wallet/ledger TestHoldsExpire$", sim),
		one("captured more than is held", "blnk-315", decide, "if s.hold.amount.Less(r.Amount) {", "if false {", ledger, sim),
		one("daily issue is not counted", "daily limit", apply, "kind.issued, kind.issuedToday, kind.day = r.FromBalance, r.DebitedToday, at.Day()", "kind.issued, kind.day = r.FromBalance, at.Day()", ledger, sim),
		one("account is never unfrozen", "unfreeze", apply, "a.frozen = r.Op == event.Freeze", "a.frozen = true", ledger, transcripts),
		one("held sum of an asset is not updated", "M6", apply, "kind.held, _ = rest.Add(now)", "kind.held = rest", ledger, transcripts, sim),
		one("refs in the index are not awaited", "a ref is permanent", window, "return upto >= w.forgottenTo || !refs && !w.MayHaveForgotten(at)", "return upto >= w.forgottenTo || !w.MayHaveForgotten(at)", idem, sim),
		one("expired keys of the index are found", "TTL of a key", window, "!found && was.ID.Position().LSN > 0 && w.isLive(was.At, at)", "!found && was.ID.Position().LSN > 0", idem, sim),
		one("ref of the index is used again", "a ref is permanent", window, "return was, was.ID.Position().LSN > 0", "return was, false", idem, sim, "./core/accounting TestNodeCountsEachEventOnce$"),
		one("eviction keeps one frame", "I1", window, "if s.ID.Position().LSN > upto {", "if s.ID.Position().LSN >= upto {", idem, transcripts, sim),
		one("unsynced bytes are never released", "bytes not on disk", turns, "\tn.backlog -= in.Bytes\n", "", transcripts, sim),
		one("all frames become durable at once", "an ack is durable", turns, "n.durable = max(n.durable, in.Upto)", "n.durable = n.state.LSN", transcripts, sim),
		one("first lost frame is acknowledged", "fsyncgate", turns, "return w.reply.After >= from })", "return w.reply.After > from })", transcripts, steps, sim),
		one("drain accepts work", "D2", asks, "case !n.recovered, n.refuses(in.Permit) && !n.takesWhileDraining(c):\n\t\treturn event.Unavailable", "case !n.recovered:\n\t\treturn event.Unavailable", transcripts, steps, sim),
		one("replies before a failed flush are dropped", "every accepted request is answered", waits, "case !lost(w):\n\t\t\tn.holdReply(w)", "case !lost(w):", transcripts, steps, sim),
		one("ack waits for durability only", "an ack is durable and applied", waits, "r.After = n.state.LSN", "r.After = n.durable", transcripts, sim),
		one("rejected atomic batch is kept", "a batch is atomic", "core/wallet/wallet.go", "\t\tf.Undo()\n", "", transcripts, sim),
		one("drain never ends", "D1", "core/lifecycle/drain/drain.go", "if d.phase == types.Draining && !quiet && d.deadline <= now {", "if false {", "./core/lifecycle/drain", transcripts),
		one("clock follows the wall clock backwards", "C1", "core/clock/clock.go", "c.at = max(even-slew, c.wall)", "c.at = c.wall", clock, sim),
		one("held replies of a tenant are never released", "limit of held replies per tenant", waits, "\tn.countHeld(w.tenant, -1)\n", "", transcripts, sim),
	}
}

// byAnother are twenty bugs chosen later by another reader: those that no check detected at the
// time, and those that only one technique detected.
func byAnother() []Mutant {
	return []Mutant{
		alone("only the loop's own timer can precede a disk event", one("tick precedes a ready disk event", "a flush in time is not a stall", "adapters/loop/loop.go",
			"\tfor len(l.external) > 0 && len(l.events) < l.batch {", "\tif ticks {\n\t\tl.events, ticks = append(l.events, event.Tick{}), false\n\t}\n\tfor len(l.external) > 0 && len(l.events) < l.batch {",
			"./adapters/loop TestTickFollowsDiskEvents$")),
		alone("waiting readers exist only in the read model", one("cancelled reader keeps its place", "a waiting place is returned", "adapters/readmodel/follower.go",
			"\t\tcase <-ctx.Done():\n\t\t\tf.leave()\n", "\t\tcase <-ctx.Done():\n", "./adapters/readmodel TestAwaitSeq$")),
		alone("the simulator never moves a quota to another route", one("quota of another route keeps its counters", "a counter belongs to one route", "core/gateway/quota/policy.go",
			"was.Unit == is.Unit && was.Route == is.Route && fresh", "was.Unit == is.Unit && fresh", "./core/gateway/quota TestMatchesModel$")),
		alone("the model of admission has no cost after finish", one("request without bytes is free", "a request has a minimum cost", "core/gateway/admission/admission.go",
			"min(max(bytes, a.limits.Least), 1<<40)", "min(bytes, 1<<40)", "./core/gateway/admission TestMinimumCost$")),
		alone("the simulator sends too few requests", one("fraction of a second is lost in a refill", "one spare retry per second", "core/gateway/upstream/budget.go",
			"b.refilledAt = b.refilledAt.Add(time.Duration(n) * refillInterval)", "b.refilledAt = b.refilledAt.Add(time.Duration(n) * refillInterval)\n\tb.refilledAt = now", "./core/gateway/upstream TestSpareRetriesReturnEverySecond$")),
		one("stale index read of a ref is accepted", "a ref is permanent", "core/node/request.go", "IndexReadIsFresh(in.IndexedTo, at, cost.Rows > 1)", "IndexReadIsFresh(in.IndexedTo, at, cost.Rows > 2)", sim, "./chaos/sim TestCertificateRejectsSpoiledRuns$"),
		one("drain ends with pending replies", "D2", "core/node/node.go", "n.held.Len() == 0 && !n.flushOutstanding()", "!n.flushOutstanding()", sim, "./chaos/trace TestEveryStepIsPermitted"),
	}
}
