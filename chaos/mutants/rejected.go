package mutants

// rejected are bugs of the limit of rejected requests.
func rejected() []Mutant {
	const (
		rule, server, call = "core/rejection/rejection.go", "adapters/httpserver/", "adapters/httpapi/call.go"

		model   = "./core/rejection TestMatchesModel$"
		share   = "./core/rejection TestShareOfPeer$"
		closes  = "./adapters/httpserver TestRejectedRequestsCloseTheConnection$"
		streams = "./adapters/httpserver TestRejectedRequestsEndHTTP2$"
		delays  = "./adapters/httpserver TestConnectionsAfterRejectionsAreDelayed$"
		ends    = "./adapters/httpserver TestDelayEnds$"
		report  = "./adapters/httpapi TestRejectedReportsFaultsOfCallers$"
		node    = "./cmd/macronode/internal/cli TestFloodOfRejectedRequestsIsCut$"

		limited = "rejected requests of a peer are limited"
		spared  = "the limit of rejected requests bars none"
	)
	return []Mutant{
		one("a peer has any number of rejected requests", limited, "core/rejection/credit.go", "if whole > now.Add(time.Duration(rate.Burst)*rate.Every) {", "if false {", "./adapters/audit TestRejectionsOfTenantAreLimited$", model, share, closes, streams, node),
		one("new connections of a peer never wait", limited, rule, "if !ok || was.credit.whole <= now.Add(whole/2) {", "if !ok || was.credit.whole > 0 {", model, delays, ends),
		alone("the others have few connections", one("a new connection waits for any time", spared, rule, "if start > now.Add(MaxDelay) {", "if false {", model)),
		alone("the others let no time pass", one("delayed connections start together", limited, rule, "max(was.start, now).Add(apart)", "now.Add(apart)", model)),
		alone("the others have few peers", one("any number of rejected peers is remembered", "tables are bounded", rule, " || !ok && len(p.recent) >= MaxPeers {", " || !ok && len(p.recent) < 0 {", "./core/rejection TestManyPeersAreForgotten$")),
		alone("one test has a trusted proxy", one("a trusted proxy has the limit of one client", spared, server+"rejections.go", "return c.holder != nil && c.holder.share > 0", "return c.holder != nil", closes)),
		one("a connection goes on above the limit", limited, server+"httpserver.go", "a.conn != nil && a.conn.closes.Load()", "a.conn != nil && false", closes, streams, node),
		alone("one test sends such requests", one("malformed requests of HTTP/2 take no credit", limited, server+"frames.go", "if !g.below.reject() {", "if false {", "./adapters/httpserver TestMalformedRequestsOfHTTP2TakeCredit$")),
		alone("one test marks the connection of a request that waits", one("streams behind a rejected one are served", limited, server+"httpserver.go", "				if c.closes.Load() {", "				if false {", "./adapters/httpserver TestStreamsBehindRejectedOneAreReset$")),
		alone("one client is served and rejected in turn", one("accepted requests pay nothing", spared, server+"rejections.go", "\t\tc.paid.Add(1)\n", "", "./adapters/httpserver TestAcceptedRequestsPayForRejectedOnes$")),
		alone("the same", one("accepted requests pay for any number", limited, server+"rejections.go", "if c.paid.Load() < rejection.MaxPaid {", "if true {", "./adapters/httpserver TestAcceptedRequestsPayForRejectedOnes$")),
		alone("one test sends such requests", one("a malformed request takes no credit", limited, server+"listener.go", "if c.hasReceived.Load() && !c.hadRequest.Load() {", "if false {", delays)),
		alone("one test sends such requests", one("an ambiguous request takes no credit", limited, server+"httpserver.go", "\t\t\t\tc.of.takeCredit(c)\n", "", delays)),
		alone("one test fails handshakes", one("a failed handshake takes no credit", limited, server+"handshake.go", "\t\tc.of.takeCredit(c)\n", "", "./adapters/httpserver TestFailedHandshakesTakeCredit$")),
		alone("one test has a clock for it", one("a delayed connection starts at once", limited, server+"listener.go", "\tc.awaitStart(nil)\n", "", ends)),
		alone("the same", one("a closed connection waits for its start", "what is closed takes no memory", server+"rejections.go", "\tcase <-c.gone:\n", "", ends)),
		alone("the same", one("a shutdown waits for delayed connections", "a shutdown ends", server+"rejections.go", "\tcase <-c.of.closed:\n", "", ends)),
		alone("one table has them", one("rejections of requests with a key count", spared, call, "(k.class == types.ClassAnon || k.verdict.Reason == event.RejectQuotaExceeded)", "true", report)),
		alone("one table has them", one("faults of the node count", spared, call, "return k.problem.Status() < http.StatusInternalServerError && (", "return (", report)),
		alone("one table has them", one("requests above a quota do not count", limited, call, "(k.class == types.ClassAnon || k.verdict.Reason == event.RejectQuotaExceeded)", "k.class == types.ClassAnon", report)),
		alone("the same", one("a batch waits for requests without a key", "a flood delays no write", "adapters/loop/dispatcher.go", "return len(k.rings[types.ClassInternal])+", "return len(k.rings[types.ClassAnon])+len(k.rings[types.ClassInternal])+", "./adapters/loop TestFloodDelaysNoBatch$")),
		alone("the same", one("a batch waits however long a yield takes", "a flood delays no write", "adapters/loop/loop.go", "if l.clock.Now().Mono > l.waitsSince.Add(maxWait) {", "if false {", "./adapters/loop TestFloodDelaysNoBatch$")),
		one("the admin API reports no rejected request", limited, "adapters/adminapi/adminapi.go", "	if a.Rejected != nil {\n", "	if false {\n", "./adapters/adminapi TestRejectedRequestsAreReported$", node),
		alone("one node has this wiring", one("the admin listener does not hear of rejected requests", limited, "cmd/macronode/internal/server/admin_api.go", ", Rejected: httpserver.MarkRejected, Longest", ", Longest", node)),
		alone("one node has this wiring", one("the public API reports no rejected request", limited, "cmd/macronode/internal/server/public_api.go", "c.Authenticated, c.Rejected = httpserver.MarkAuthenticated, httpserver.MarkRejected", "c.Authenticated = httpserver.MarkAuthenticated", node)),
	}
}
