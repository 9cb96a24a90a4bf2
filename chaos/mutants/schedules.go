package mutants

// schedules are bugs that only some orders of events show.
func schedules() []Mutant {
	const (
		turns, asks, waits, due, ending, window = "core/node/node.go", "core/node/request.go", "core/node/reply.go", "core/node/due.go", "core/drain/drain.go", "core/idem/idem.go"

		drains  = "./chaos/explore TestScopes/a_drain$"
		clients = "./chaos/explore TestScopes/clients"
		indexes = "./chaos/explore TestScopes/an_index"
		holds   = "./chaos/explore TestScopes/what_is_held"
		same    = "./chaos/explore TestScopes/same"
		over    = "./chaos/explore TestScopes/keys_that_are_over"
	)
	return []Mutant{
		one("one given up of all", "accepted is answered", waits, "for range n.held.Len() {\n\t\tswitch w := n.pop()", "for range min(1, n.held.Len()) {\n\t\tswitch w := n.pop()", drains, stories, steps),
		one("answers for who has left", "who has left hears nothing", waits, "\tw.gone = true\n", "", "./core/node TestCancelIsOfItsTicketAlone$", clients, stories, steps),
		one("the reply behind the cancelled one is discarded", "a reply is found from its ticket", waits, "return n.held.Find(n.numbers[place])", "return n.held.Find(n.numbers[place] + 1)", "./core/node TestCancelIsOfItsTicketAlone$", clients),
		one("waiters that never leave", "replays that wait have a bound", waits, "\tif w.reply.Replayed {\n\t\tn.waiters--\n\t}\n", "", drains, stories),
		one("waiters without a bound", "replays that wait have a bound", asks, "case found && place.LSN > n.folded && int(n.waiters) >= n.config.Waiters:", "case false:", same, stories),
		one("spares what is durable and not indexed", "F", turns, "n.state.Idem.Spare(at, n.indexed, words.MaxExpire)", "n.state.Idem.Spare(at, n.durable, words.MaxExpire)", indexes, stories),
		one("indexed as far as it is durable", "F", turns, "n.indexed = max(n.indexed, in.Upto)", "n.indexed = n.durable", indexes, sim),
		one("journal that failed, and well", "a failed flush is for ever", turns, "\tn.ready.Ail(words.JournalFailed, true)\n\tn.giveUp", "\tn.giveUp", over, stories),
		one("quiet with replies that wait", "a drain finishes what is in", turns, "quiet := n.super.IsDown(words.ChildHTTP) && n.held.Len() == 0 && !n.outstanding()", "quiet := n.super.IsDown(words.ChildHTTP)", drains, stories, steps),
		one("drain with an open door", "ron-node cut on TERM", turns, "\t\tn.super.Stop(words.ChildHTTP, event.StopChild, out)\n", "", drains, stories, steps),
		one("given up when the drain begins", "a drain finishes what is in", turns, "if before < words.Aborting && phase >= words.Aborting && !quiet {", "if before < words.Draining && phase >= words.Draining {", drains, stories),
		one("children that live on in a drain", "what drains starts nothing", turns, "if !n.drain.Begun() {\n\t\tn.super.Tick", "if true {\n\t\tn.super.Tick", drains, stories, steps),
		one("patience that nobody wakes for", "Due", due, "earlier(n.held.At(0).until, true)", "_ = 0", holds, sim),
		one("drain that nobody wakes for", "Due", due, "\t\tearlier(n.drain.Due())\n", "", drains, stories),
		one("sweep that nobody wakes for", "Due", due, "\tearlier(n.sweep, n.sweeps())\n", "", indexes, stories),
		one("word of keys in a drain", "D2", "core/node/key.go", "	_, known := n.state.Keys.Find(in.Key.ID)\n	switch {\n	case n.drain.Closed():", "	_, known := n.state.Keys.Find(in.Key.ID)\n	switch {\n	case false:", stories, "./core/node TestWhoClosesTakesNothing$"),
		one("lame duck for ever", "D1", ending, "if d.phase == words.LameDuck && d.until <= now {", "if false {", drains, "./core/drain", steps),
		one("drain that begins again", "D1", ending, "\tif d.phase != words.Starting {\n\t\treturn\n\t}\n", "", drains, "./core/drain", steps),
		one("keys that live as long as their trail", "time of a key", window, "born.Plus(w.limits.TTL) > at", "born.Plus(w.limits.Trail) > at", indexes, idem, stories),
		one("window that forgets how old it is", "I4", window, "\t\tw.last = max(w.last, s.At)\n", "", indexes, idem, stories),
	}
}
