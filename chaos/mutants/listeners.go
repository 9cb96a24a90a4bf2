package mutants

// edges are bugs of listeners and of the loop.
func edges() []Mutant {
	const (
		server, api, looks = "adapters/httpserver/", "adapters/httpapi/", "adapters/loop/"

		guests = "./adapters/httpserver TestRequestGroupAgreesWithModel$"
		asking = "./adapters/httpserver TestPartialHeaderIsAwaited$"
		unread = "./adapters/httpserver TestUnreadDataCountsAsRequest$"
		table  = "./adapters/httpapi TestStateTable$"
	)
	return []Mutant{
		one("requests in progress are not counted", "a shutdown cuts no request", server+"request_group.go", "\tif !g.closed {\n\t\tg.count++\n", "\tif false {\n\t\tg.count++\n", guests, "./adapters/httpserver TestNewRequestsDuringGraceAreAnswered$"),
		one("shutdown accepts new requests", "a shutdown ends", server+"request_group.go", "\tif !g.closed {\n\t\tg.count++\n\t}\n\treturn !g.closed\n", "\tg.count++\n\treturn true\n", guests, "./adapters/httpserver TestStopCutsNoRequest$"),
		one("answer during shutdown keeps its connection", "a shutdown cuts no request", server+"httpserver.go", "if a.ending.Load() || a.conn", "if a.conn", "./adapters/httpserver TestGraceServes$", "./adapters/httpserver TestStopCutsNoRequest$"),
		alone("one test waits for the deadline", one("cut requests are not reported", "cut requests are reported", server+"httpserver.go", "\t\treturn ErrShutdown\n", "		return nil\n", "./adapters/httpserver TestStopDeadlineAborts$")),
		alone("one test starts a request and waits", one("request accepted by net/http is dropped", "a shutdown cuts no request", server+"httpserver.go", "for (l.isReadingHeader() || time", "for (time", asking)),
		alone("one test connects and sends nothing", one("new connection is closed without reading", "a shutdown cuts no request", server+"httpserver.go", "time.Now().Before(until) && len(l.unheard()) > 0)", "time.Now().Before(until) && l.count() < 0)", "./adapters/httpserver TestSilentNewConnectionIsAwaited$")),
		alone("one test connects late", one("deadline closes the listener at once", "a shutdown resets no connection", server+"listener_close.go", "l.wake(now.Add(settling))", "l.wake(until)", "./adapters/httpserver TestListenerClosesAfterAccepting$")),
		alone("one test connects for ever", one("new connections delay the shutdown", "a shutdown ends", server+"listener.go", " || l.late > backlog", "", "./adapters/httpserver TestListenerClosesAfterBacklog$")),
		alone("one test leaves the request unread", one("unread request is not a request", "a shutdown cuts no request", server+"listener.go", "(c.hasHeaderPart.Load() || unread(c.Conn))", "c.hasHeaderPart.Load()", unread)),
		one("partly read request is not a request", "a shutdown cuts no request", server+"listener.go", "(c.hasHeaderPart.Load() || unread(c.Conn))", "unread(c.Conn)", asking, unread),
		alone("one test has a new connection", one("idle connection without a request is not closed", "a shutdown cuts no request", server+"listener.go", "is == http.StateNew || is == http.StateIdle", "is == http.StateIdle", unread)),
		one("one connection too many is accepted", "connections are bounded", server+"peers.go", "case len(l.open) < l.most:", "case len(l.open) <= l.most:", "./adapters/httpserver TestConnectionAboveLimitIsClosed$", "./adapters/httpserver TestConnectionsAgreeWithModel$"),
		alone("one test waits for the deadline", Mutant{Name: "silence that is waited for", Holds: "connections without a request do not hold up the end", Edits: []Edit{
			{server + "listener.go", "	for _, c := range l.silent() {\n\t\t_ = c.Close()\n\t}\n", ""}, {server + "listener.go", "	for _, c := range l.unheard() {\n\t\t_ = c.Close()\n\t}\n", ""},
		}, Kills: []string{"./adapters/httpserver TestSilenceDelaysNothing$"}}),
		one("replay is rejected when writes are stopped", "R2: a replay is an answer, not a write", api+"httpapi.go", "if isNotServing(&s) {", "if !s.Reads || method != http.MethodGet && !s.Writes {", table, "./adapters/httpapi TestReplaysWithoutWrites$"),
		one("request is read before the node serves", "a node that does not serve answers 503", api+"httpapi.go", "if isNotServing(&s) {", "if false {", table, "./adapters/httpapi TestRonGateShedRequestsGetRetryAfter$"),
		one("expired API key is accepted", "a key is invalid from its expiry on", api+"authorization.go", "if k.key.ID == 0 || k.isRevoked {", "if k.key.ID == 0 {", "./adapters/httpapi TestRevokedAndExpiredKeysAreRejected$", "./adapters/httpapi TestKeyIsCreatedAndRevoked$"),
		one("scopes are not checked", "every requested scope is needed", api+"authorization.go", "if k.key.Scopes&scope != scope {", "if false {", "./adapters/httpapi TestReadsNeedScope$", "./adapters/httpapi TestAuthorizationMatrix$"),
		one("stale index read reaches the caller", "a stale index read is repeated", looks+"index.go", "r.Problem != event.StaleIndexRead || k.Index == nil {", "true {", "./adapters/loop TestStaleReadRetriesUntilDeadline$", "./adapters/loop TestStaleIndexReadIsRetried$"),
		one("failed index read is used", "a failed index read decides nothing", looks+"index.go", "				clearPrior(in)\n", "", "./adapters/loop TestStaleReadRetriesUntilDeadline$", "./adapters/loop TestStaleIndexReadIsRetried$"),
		one("frames of a failed flush are folded", "nothing after a failed flush is visible", looks+"loop.go", "Fault: l.ports.ClassifyFault(err)})\n\t\treturn\n", "Fault: l.ports.ClassifyFault(err)})\n", "./adapters/loop TestFailedSyncIsAnEvent$", "./adapters/loop TestRandomDelaysAndFailures$"),
		one("failed read model is ignored", "answers are never stale", looks+"loop.go", "case err := <-l.followerErr:\n\t\treturn err\n", "", "./adapters/loop TestFailedFollowerEndsLoop$", "./adapters/loop TestRandomDelaysAndFailures$"),
	}
}
