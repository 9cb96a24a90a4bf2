package mutants

// schedules are bugs that only some orders of events show.
func schedules() []Mutant {
	const (
		turns, asks, waits, due, ending, window = "core/node/node.go", "core/node/request.go", "core/node/reply.go", "core/node/due.go", "core/lifecycle/drain/drain.go", "core/idempotency/idem.go"

		drains  = "./chaos/explore TestScopes/a_drain$"
		clients = "./chaos/explore TestScopes/clients"
		indexes = "./chaos/explore TestScopes/an_index"
		holds   = "./chaos/explore TestScopes/what_is_held"
		same    = "./chaos/explore TestScopes/same"
		over    = "./chaos/explore TestScopes/keys_that_are_over"
	)
	return []Mutant{
		one("one given up of all", "accepted is answered", waits, "for range n.held.Len() {\n\t\tswitch w := n.popReply()", "for range min(1, n.held.Len()) {\n\t\tswitch w := n.popReply()", drains, stories, steps),
		one("answers for who has left", "who has left hears nothing", waits, "\tw.canceled = true\n", "", "./core/node TestCancelIsOfItsTicketAlone$", clients, stories, steps),
		one("the reply behind the cancelled one is discarded", "a reply is found from its ticket", waits, "return n.held.Find(n.numbers[place])", "return n.held.Find(n.numbers[place] + 1)", "./core/node TestCancelIsOfItsTicketAlone$", clients),
		one("waiters that never leave", "replays that wait have a bound", waits, "\tif w.reply.Replayed {\n\t\tn.replayWaiters--\n\t}\n", "", drains, stories),
		one("waiters without a bound", "replays that wait have a bound", asks, "case found && place.LSN > n.applied && int(n.replayWaiters) >= n.config.MaxReplayWaiters:", "case false:", same, stories),
		one("spares what is durable and not indexed", "F", turns, "n.state.Idempotency.Evictable(at, n.indexed, types.MaxForgottenPerSweep)", "n.state.Idempotency.Evictable(at, n.durable, types.MaxForgottenPerSweep)", indexes, stories),
		one("indexed as far as it is durable", "F", turns, "n.indexed = max(n.indexed, in.Upto)", "n.indexed = n.durable", indexes, sim),
		one("journal that failed, and well", "a failed flush is for ever", turns, "\tn.readiness.SetDegraded(types.JournalFailed, true)\n\tn.giveUp", "\tn.giveUp", over, stories),
		one("quiet with replies that wait", "a drain finishes what is in", turns, "quiet := n.supervisor.IsDown(types.ServiceHTTP) && n.held.Len() == 0 && !n.flushOutstanding()", "quiet := n.supervisor.IsDown(types.ServiceHTTP)", drains, stories, steps),
		one("drain with an open door", "ron-node cut on TERM", turns, "\t\tn.supervisor.Stop(types.ServiceHTTP, event.StopService, out)\n", "", drains, stories, steps),
		one("given up when the drain begins", "a drain finishes what is in", turns, "if before < types.Aborting && phase >= types.Aborting && !quiet {", "if before < types.Draining && phase >= types.Draining {", drains, stories),
		one("children that live on in a drain", "what drains starts nothing", turns, "if !n.drain.Started() {\n\t\tn.supervisor.Tick", "if true {\n\t\tn.supervisor.Tick", drains, stories, steps),
		one("patience that nobody wakes for", "Due", due, "earlier(n.held.At(0).deadline, true)", "_ = 0", holds, sim),
		one("drain that nobody wakes for", "Due", due, "\t\tearlier(n.drain.Due())\n", "", drains, stories),
		one("sweep that nobody wakes for", "Due", due, "\tearlier(n.nextSweep, n.sweepDue())\n", "", indexes, stories),
		one("word of keys in a drain", "D2", "core/node/keys.go", "\t_, known := n.state.Keys.Find(in.Key.ID)\n\tswitch {\n\tcase n.drain.Refusing():", "	_, known := n.state.Keys.Find(in.Key.ID)\n	switch {\n	case false:", stories, "./core/node TestDrainingRejectsPolicy$"),
		one("lame duck for ever", "D1", ending, "if d.phase == types.LameDuck && d.deadline <= now {", "if false {", drains, "./core/lifecycle/drain", steps),
		one("drain that begins again", "D1", ending, "\tif d.phase != types.Starting {\n\t\treturn\n\t}\n", "", drains, "./core/lifecycle/drain", steps),
		one("keys that live as long as their trail", "time of a key", window, "born.Add(w.limits.TTL) > at", "born.Add(w.limits.MinRetention) > at", indexes, idem, stories),
		one("window that forgets how old it is", "I4", window, "\t\tw.newestForgotten = max(w.newestForgotten, s.At)\n", "", indexes, idem, stories),
	}
}
