package mutants

// drained are bugs of what a drain tells of those who were in.
func drained() []Mutant {
	const (
		admit, arrive, gate, in = "core/gateway/admission/admission.go", "core/node/admission.go", "adapters/loop/gate.go", "adapters/httpapi/arrive.go"

		story, fates, wired = "./core/node TestTranscripts/^report", "./adapters/httpapi TestFates$", "./cmd/macronode TestADrainTellsOfEverybody$"
	)
	return []Mutant{
		alone("only a request of the wallet's own shows it: who sends others on says so himself", one("cut, and told of as finished", "what the end gave up is told", in, "errors.Is(context.Cause(ctx), k.Cut)", "false", fates)),
		one("a stream is cut, and told of as finished", "what the end gave up is told", "adapters/proxy/course.go", "return l.Outcome() == string(Drained)", "return false", "./adapters/proxy TestCoursesOfTheCut$", "./cmd/macronode TestATunnelIsCutInOneLine$"),
		alone("one test cuts an upload", one("an upload is cut, and its client did it", "what the end gave up is told", "adapters/proxy/outcome.go", "case gone && t.gone(t.r) == Drained:", "case false:", "./adapters/proxy TestCoursesOfTheCut$")),
		one("a tunnel is cut, and told of as finished", "what the end gave up is told", in, "k.course != nil && k.course.Cut()", "false", fates, "./cmd/macronode TestATunnelIsCutInOneLine$"),
		alone("who is told that nobody knows is told so by one test that asks what he is settled as", one("nobody knows, and it is done", "what the end gave up is told", in, "k.told == event.OutcomeUnknown", "false", fates)),
		alone("the same of who is turned away", one("turned away, and it is done", "who is turned away in a drain is counted", in, "k.told == event.Unavailable", "false", fates)),
		alone("whoever else drains a node runs a binary that has no bug", one("turned away without asking", "who is turned away in a drain is counted", in, "!s.Reads && s.Phase != types.Draining", "!s.Reads", "./adapters/httpapi TestTheGateIsAskedInADrain$")),
		one("ended before the drain, and counted", "a drain tells of each once", arrive, "\tif !n.drain.Started() {\n\t\treturn\n\t}\n\tswitch f {", "\tswitch f {", story, sim),
		one("sent on, and not counted", "a drain tells of each once", arrive, "\t\tn.countCompletion(in.Completion)\n", "", story, wired, sim),
		one("given up is as good as finished", "a drain tells of each once", arrive, "\t\tn.report.Aborted++\n", "\t\tn.report.Finished++\n", story, sim),
		one("waited in vain, and counted", "a drain tells of each once", arrive, "\tdefault:\n\t\tn.quota.Undo(now, in.Ticket.Slot())\n", "\tdefault:\n\t\tn.quota.Undo(now, in.Ticket.Slot())\n\t\tn.countCompletion(in.Completion)\n", story, "./chaos/trace TestLegal$"),
		one("in when it is over, and forgotten", "a drain tells of each once", "core/node/status.go", "s.Phase == types.Stopped {", "false {", story, "./core/node TestTranscripts/^abort-at-once$"),
		one("who lost his permit is not in", "a drain tells of each once", admit, "s == out || s == lost", "s == out", "./core/gateway/admission TestAgrees$", "./chaos/trace TestLegal$"),
		alone("a turn that has less room than there are last words is made by one test", one("the last words are lost", "a drain tells of each once", "adapters/loop/loop.go", "\t\t\ts = l.last()\n", "\t\t\t_ = l.last\n", "./adapters/loop TestTheLastWordsAreHeard$")),
		one("the gate forgets the fate", "a drain tells of each once", gate, "Bytes: bytes, Completion: f}", "Bytes: bytes}", "./adapters/loop TestTheLastWordsAreHeard$", wired),
	}
}
