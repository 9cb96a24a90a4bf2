package mutants

// drained are bugs of the drain report.
func drained() []Mutant {
	const (
		admit, arrive, gate, in = "core/gateway/admission/admission.go", "core/node/admission.go", "adapters/loop/admission.go", "adapters/httpapi/admission.go"

		transcript, fates, wired = "./core/node TestTranscripts/^report", "./adapters/httpapi TestCompletions$", "./cmd/macronode/internal/cli TestDrainReportCountsEveryRequest$"
	)
	return []Mutant{
		alone("only a request to the wallet shows it: the proxy reports its own outcome", one("cut request is counted as finished", "the drain report counts cut requests", in, "errors.Is(context.Cause(ctx), k.ShutdownCause)", "false", fates)),
		one("cut stream is counted as finished", "the drain report counts cut requests", "adapters/proxy/upstream_trace.go", "return l.Outcome() == string(Shutdown)", "return false", "./adapters/proxy TestTraceOfShutdown$", "./cmd/macronode/internal/cli TestCutTunnelIsLoggedOnce$"),
		alone("one test cuts an upload", one("cut upload is counted as cancelled by its client", "the drain report counts cut requests", "adapters/proxy/outcome.go", "case isCancelled && t.endReason(t.r) == Shutdown:", "case false:", "./adapters/proxy TestTraceOfShutdown$")),
		one("cut tunnel is counted as finished", "the drain report counts cut requests", in, "k.trace != nil && k.trace.CutByShutdown()", "false", fates, "./cmd/macronode/internal/cli TestCutTunnelIsLoggedOnce$"),
		alone("one test compares the completion of an unknown outcome", one("unknown outcome is counted as finished", "the drain report counts cut requests", in, "k.problem == event.OutcomeUnknown", "false", fates)),
		alone("one test compares the completion of a rejection", one("rejected request is counted as finished", "the drain report counts rejected requests", in, "k.problem == event.Unavailable", "false", fates)),
		alone("all other drains run a binary without mutants", one("rejection during a drain is not counted", "the drain report counts rejected requests", in, "!s.Reads && s.Phase != types.Draining", "!s.Reads", "./adapters/httpapi TestAdmissionIsAskedWhileDraining$")),
		one("request that ended before the drain is counted", "the drain report counts each request once", arrive, "\tif !n.drain.Started() {\n\t\treturn\n\t}\n\tswitch f {", "\tswitch f {", transcript, sim),
		one("forwarded request is not counted", "the drain report counts each request once", arrive, "\t\tn.countCompletion(in.Completion)\n", "", transcript, wired, sim),
		one("aborted request is counted as finished", "the drain report counts each request once", arrive, "\t\tn.report.Aborted++\n", "\t\tn.report.Finished++\n", transcript, sim),
		one("rejected waiting request is counted", "the drain report counts each request once", arrive, "\tdefault:\n\t\tn.quota.Undo(now, in.Ticket.Slot())\n", "\tdefault:\n\t\tn.quota.Undo(now, in.Ticket.Slot())\n\t\tn.countCompletion(in.Completion)\n", transcript, "./chaos/trace TestEveryStepIsPermitted$"),
		one("request in progress at the end is not counted", "the drain report counts each request once", "core/node/status.go", "s.Phase == types.Stopped {", "false {", transcript, "./core/node TestTranscripts/^abort-at-once$"),
		one("request with a reclaimed permit is not counted", "the drain report counts each request once", admit, "s == out || s == lost", "s == out", "./core/gateway/admission TestMatchesModel$", "./chaos/trace TestEveryStepIsPermitted$"),
		alone("one test makes more final events than fit into a turn", one("final events are dropped", "the drain report counts each request once", "adapters/loop/loop.go", "\t\t\ts = l.drainUpdates()\n", "\t\t\t_ = l.drainUpdates\n", "./adapters/loop TestEndsBeforeStopAreHandled$")),
		one("gate drops the completion", "the drain report counts each request once", gate, "Bytes: bytes, Completion: f}", "Bytes: bytes}", "./adapters/loop TestEndsBeforeStopAreHandled$", wired),
	}
}
