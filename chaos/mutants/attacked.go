package mutants

// attacked are bugs that an attack on the node and an audit of it have found.
func attacked() []Mutant {
	const reset = "adapters/proxy/reset_conn.go"
	const early, unit = "./adapters/proxy TestEarlyAnswerBeforeReset$", "./adapters/proxy TestResetConnReadsWhatCame$"
	const script, unsure = "./cmd/macronode TestScripts/loss$", "./adapters/journalfile TestUnsureOfItsEnd$"
	const frames, floods = "adapters/httpserver/frames.go", "./adapters/httpserver TestFloodsAreClosed$"
	return []Mutant{
		one("a write after a reset fails before the response is read", "a complete response counts, whatever became of the request body", reset, "if !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.EPIPE) {", "if err != nil || !errors.Is(err, syscall.ECONNRESET) {", early, "./adapters/proxy TestWriteAfterResetWaits$"),
		alone("one test meets a reset by a write first", one("a reset that a write has met is an end of input", "no silent truncation", reset, "\t\tif c.reset != nil {\n", "\t\tif false {\n", unit)),
		alone("one test has such clients", one("a slow client is a failure of the endpoint", "only what an endpoint does counts against it", "adapters/proxy/client_wait.go", "if reason != ConnectionReset {", "if true {", "./adapters/proxy TestSlowClientIsNoEndpointFault$")),
		alone("one test has the arithmetic", one("any wait for a client excuses the endpoint", "an endpoint that fails is found", "adapters/proxy/client_wait.go", "return waited >= minClientWait && waited > took-waited", "return waited >= minClientWait", "./adapters/proxy TestClientWait$")),
		one("a damaged mark does no harm", "evidence of durable frames is never lost silently", "adapters/journalfile/recover.go", "if err == nil && r.Unsure != nil {", "if false {", unsure, script),
		alone("one script has a damaged mark", one("a damaged mark is replaced by a new one", "evidence of durable frames is never lost silently", "cmd/macronode/internal/server/durable_mark.go", " || m.damaged.Load() || ", " || ", script)),
		alone("one script has a damaged mark", one("a copy forgets that frames may be missing", "evidence of durable frames is never lost silently", "cmd/macronode/internal/offline/backup.go", "if known.Unsure != nil && cut.LSN >= known.LSN {", "if false {", script)),
		one("padding is a body", "frames without progress are bounded", frames, "payload = max(0, left-int(s.head[frameHead]))", "payload = left", floods, "./adapters/httpserver TestFrameScan$"),
		alone("one test is rejected so often", one("each rejected admin request is logged", "callers cannot fill the log", "adapters/adminapi/rejections.go", "if now.Before(g.next) {", "if false {", "./adapters/adminapi TestRejectionsAreLoggedAtAPace$")),
		alone("one test floods", one("frames of control cost nothing", "frames without progress are bounded", frames, "return int64(frameCost + payload)", "return 0", floods)),
		alone("one test floods", one("an endless header costs nothing", "frames without progress are bounded", frames, "case frameHeaders, frameContinuation, framePushPromise: // their length has a limit of its own\n\t\treturn frameCost", "case frameHeaders, frameContinuation, framePushPromise: // their length has a limit of its own\n\t\treturn 0", floods)),
		alone("one test floods", one("frames for a stream that has ended pay", "frames without progress are bounded", frames, "return -frameCost", "return 0", floods)),
		alone("one client goes on for long", one("responses pay nothing", "a client that makes progress is not cut", frames, "g.earned.Add(paid)", "_ = paid", "./adapters/httpserver TestProgressPaysForFrames$")),
		alone("one test lets time pass", one("time credits nothing", "a client that is slow enough is not cut", frames, "g.credit += int64(min(", "_ = int64(min(", "./adapters/httpserver TestIdleFramesAreCreditedByTime$")),
		alone("one node has so slow a quota", one("the turn that is shown is the configured one", "what is in force is shown", "cmd/macronode/internal/server/admin_api.go", "return s.applied.Load().Policy.Quantum", "return uint64(s.applied.Load().config.Queue.Quantum)", "./cmd/macronode/internal/cli TestTurnIsShown$")),
		one("an access line says why a request was not retried", "the records of a request agree", "cmd/macronode/internal/server/access_log.go", `slog.String("outcome", l.Outcome)`, `slog.String("outcome", l.Outcome+l.Halt)`, "./cmd/macronode/internal/cli TestUpstreamOutcomesAgree$", "./cmd/macronode/internal/cli TestOutcomesAgree$"),
		alone("one test has every reason", one("an access line has no reason of a client that left", "the records of a request agree", "cmd/macronode/internal/server/access_log.go", `slog.String("reason", d.Why)`, `slog.String("reason", strings.TrimPrefix(d.Why, "client_disconnected"))`, "./cmd/macronode/internal/cli TestRejectionsAgree$")),
		alone("one sum has it", one("engines that have stopped take no memory", "the memory bound has all that is bounded", "cmd/macronode/internal/settings/memory.go", ", index.MaxEngineFailures, index.AbandonedBytes(", ", 0, index.AbandonedBytes(", "./cmd/macronode/internal/settings TestMemoryOfAbandonedEngines$")),
		alone("one test counts them", one("engines that have stopped are not counted", "from a failure to its cause", "adapters/index/stats.go", "Abandoned: int(x.deaths.Load())", "Abandoned: 0", "./adapters/index TestStaysDownAfterTooManyEngineFailures$")),
	}
}
