package mutants

// schedules are bugs that only certain orders of events show.
func schedules() []Mutant {
	const (
		turns, asks, waits, due, ending, window = "core/node/node.go", "core/node/request.go", "core/node/reply.go", "core/node/due.go", "core/lifecycle/drain/drain.go", "core/idempotency/window.go"

		drains  = "./chaos/explore TestScopes/a_drain$"
		clients = "./chaos/explore TestScopes/clients"
		indexes = "./chaos/explore TestScopes/an_index"
		holds   = "./chaos/explore TestScopes/what_is_held"
		same    = "./chaos/explore TestScopes/same"
		over    = "./chaos/explore TestScopes/keys_that_are_over"
	)
	return []Mutant{
		one("one reply is given up instead of all", "every accepted request is answered", waits, "for range n.held.Len() {\n\t\tswitch w := n.popReply()", "for range min(1, n.held.Len()) {\n\t\tswitch w := n.popReply()", drains, transcripts, steps),
		one("cancelled request is answered", "a cancelled request gets no reply", waits, "\tw.canceled = true\n", "", "./core/node TestCancelIsOfItsTicketAlone$", clients, transcripts, steps),
		one("reply after a cancelled one is dropped", "a reply is found from its ticket", waits, "return n.held.Find(n.numbers[place])", "return n.held.Find(n.numbers[place] + 1)", "./core/node TestCancelIsOfItsTicketAlone$", clients),
		one("waiting replays are never released", "waiting replays are bounded", waits, "\tif w.reply.Replayed {\n\t\tn.replayWaiters--\n\t}\n", "", drains, transcripts),
		one("waiting replays have no limit", "waiting replays are bounded", asks, "case found && place.LSN > n.applied && int(n.replayWaiters) >= n.config.MaxReplayWaiters:", "case false:", same, transcripts),
		one("durable but unindexed keys are evicted", "keys are evicted once indexed", turns, "n.state.Idempotency.Evictable(at, n.indexed, types.MaxForgottenPerSweep)", "n.state.Idempotency.Evictable(at, n.durable, types.MaxForgottenPerSweep)", indexes, transcripts),
		one("index is reported as far as durable", "keys are evicted once indexed", turns, "n.indexed = max(n.indexed, in.Upto)", "n.indexed = n.durable", indexes, sim),
		one("failed journal is not reported", "a failed flush is permanent", turns, "\tn.readiness.SetDegraded(types.JournalFailed, true)\n\tn.giveUp", "\tn.giveUp", over, transcripts),
		one("drain does not wait for replies", "a drain finishes running requests", turns, "quiet := n.supervisor.IsDown(types.ServiceHTTP) && n.held.Len() == 0 && !n.flushOutstanding()", "quiet := n.supervisor.IsDown(types.ServiceHTTP)", drains, transcripts, steps),
		one("drain does not stop the listener", "ron-node cut on TERM", turns, "\t\tn.supervisor.Stop(types.ServiceHTTP, event.StopService, out)\n", "", drains, transcripts, steps),
		one("replies are given up when the drain begins", "a drain finishes running requests", turns, "if before < types.Aborting && phase >= types.Aborting && !quiet {", "if before < types.Draining && phase >= types.Draining {", drains, transcripts),
		one("services restart during a drain", "a drain starts nothing", turns, "if !n.drain.Started() {\n\t\tn.supervisor.Tick", "if true {\n\t\tn.supervisor.Tick", drains, transcripts, steps),
		one("reply deadline is not in the due time", "Due", due, "earlier(n.held.At(0).deadline, true)", "_ = 0", holds, sim),
		one("drain deadline is not in the due time", "Due", due, "\t\tearlier(n.drain.Due())\n", "", drains, transcripts),
		one("sweep is not in the due time", "Due", due, "\tearlier(n.nextSweep, n.sweepDue())\n", "", indexes, transcripts),
		one("API keys change during a drain", "D2", "core/node/keys.go", "\t_, known := n.state.Keys.Find(in.Key.ID)\n\tswitch {\n\tcase n.refuses(in.Permit):", "	_, known := n.state.Keys.Find(in.Key.ID)\n	switch {\n	case false:", transcripts, "./core/node TestDrainingRejectsPolicy$"),
		one("lame duck never ends", "D1", ending, "if d.phase == types.LameDuck && d.deadline <= now {", "if false {", drains, "./core/lifecycle/drain", steps),
		one("drain begins twice", "D1", ending, "\tif d.phase != types.Starting {\n\t\treturn\n\t}\n", "", drains, "./core/lifecycle/drain", steps),
		one("keys expire after their retention", "TTL of a key", window, "born.Add(w.limits.TTL) > at", "born.Add(w.limits.MinRetention) > at", indexes, idem, transcripts),
		one("eviction loses the newest time", "I4", window, "\t\tw.newestForgotten = max(w.newestForgotten, s.At)\n", "", indexes, idem, transcripts),
	}
}
