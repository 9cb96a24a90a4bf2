package mutants

// trunks are bugs of HTTP/2 to upstreams.
func trunks() []Mutant {
	const (
		many, greets, each, sent, of = "adapters/proxy/h2pool.go", "adapters/proxy/dialer.go", "adapters/proxy/h2conn.go", "adapters/proxy/exchange.go", "adapters/proxy/outcome.go"
		rule, wire                   = "core/share/bodies.go", "adapters/proxy/h2window.go"

		ends     = "./adapters/proxy TestEndedH2ConnIsReplaced$"
		vices    = "./adapters/proxy TestFaultyH2Endpoints$"
		kept     = "./adapters/proxy TestH2PoolLimits$"
		single   = "./adapters/proxy TestRequestsShareH2Conn$"
		reported = "./adapters/proxy TestH2ConnAnnouncesLimits$"
		cause    = "./cmd/macronode/internal/cli TestExplainShowsHTTP2Errors$"

		played = "one table plays what an endpoint should not do"
		behind = "only a connection that was used before shows it"
	)
	return []Mutant{
		alone(behind, one("POST is written twice", "a request that is not idempotent is sent once", many, "(connEnded || isGoAway(err)) && e.canRepeat():", "(connEnded || isGoAway(err)):", ends)),
		alone(behind, one("closed HTTP/2 connection counts as a failure", "a repeatable request uses a new connection", many, "case !wasUsed || n >= maxResends:", "case !wasUsed || n >= 0:", ends)),
		alone(behind, one("GOAWAY counts as a failure", "closing a connection is not a failure", of, "case errors.Is(err, errConnWentAway):", "case false:", ends)),
		one("refused stream counts as sent", "an unsent request is reported as unsent", many, "if code == http2.ErrCodeRefusedStream || isGoAway(err) {", "if code == 1<<31 {", vices, cause),
		alone("only a header that is too large is not sent", one("oversized request header counts as a failure of the endpoint", "an endpoint does not fail for a client", many, "case isHeaderTooLarge(err):", "case false:", "./adapters/proxy TestHeaderLimitOfEndpoint$")),
		one("protocol is negotiated for each request", "the negotiated protocol is cached", many, "s.http1Until = time.Now().Add(http1AssumedFor)", "s.http1Until = time.Time{}", single, "./adapters/proxy TestHTTP11RequiredIsHonoured$"),
		one("configured HTTP/2 is negotiated", "the configuration decides the protocol", many, "to.protocol == Auto && to.Scheme == \"http\"", "to.Scheme == \"http\"", "./adapters/proxy TestProtocolOfUpstream$", "./cmd/macronode/internal/cli TestProtocolChangeByReload$"),
		alone("one test counts handshakes", one("each request opens a connection", "one connection attempt at a time", many, "if pending == nil {", "if true {", single)),
		one("streams of a connection have no limit", "streams are bounded", many, "t.requests >= MaxStreams || ", "", single, kept),
		alone("one test fills them", one("HTTP/2 connections have no limit", "kept connections are bounded", many, "kept <= maxIdlePerEndpoint && !s.idleTotal.isOver() && ", "kept > 0 && ", kept)),
		alone("one test waits so long", one("idle HTTP/2 connection is never closed", "idle connections are closed", many, " && time.Since(t.idleSince) < idleConnTimeout", "", kept)),
		alone("one test ends them", one("HTTP/2 connection outlives its proxy", "a change closes old connections", many, "!s.idleTotal.isOver() && !s.retired &&", "s.idleTotal.Load() <= MaxIdleConns &&", kept)),
		one("streams share one receive window", "a slow client blocks only itself", greets, "MaxReceiveBufferPerConnection: connWindow", "MaxReceiveBufferPerConnection: streamWindow", reported, "./adapters/proxy TestSlowClientDoesNotDelayOthers$"),
		alone("only a large request body shows it", one("receive buffer has no limit", "buffers are bounded", greets, "MaxReceiveBufferPerStream: streamWindow, ", "", reported)),
		alone("only an endpoint that does not read shows it", one("blocked write has no timeout", "writes are bounded", greets, ", WriteByteTimeout: c.Grace", "", "./adapters/proxy TestUnreadH2ConnIsClosed$")),
		alone("only a silent endpoint shows it", one("silent connection is used", "a doubtful connection is left", many, " || t.isDoubtful(s.maxSilence)", "", "./adapters/proxy TestSilentH2ConnIsRetired$")),
		alone("only clients that disconnect show it", one("connection with many resets is used", "rapid resets are limited", many, "t.aborted >= maxAbortedRequests || ", "", "./adapters/proxy TestH2ConnWithManyAbortsIsRetired$")),
		one("full connection counts as closed", "a cancellation closes no connection", many, "(t.conn.CanTakeNewRequest() || time.Since(t.abortedAt) < s.maxSilence)", "t.conn.CanTakeNewRequest()", "./adapters/proxy TestFullH2ConnIsKept$", "./adapters/proxy TestWaitForFullH2Conn$"),
		alone("only clients that disconnect show it", one("cancellation counts as a closed connection", "a cancellation closes no connection", each, "if !isCancelled && !isStreamError(err) &&", "if !isStreamError(err) &&", "./adapters/proxy TestFullH2ConnIsKept$")),
		alone("only clients that disconnect show it", one("cancelled stream closes its connection", "a cancellation closes no connection", each, "release(s.conn, s.sent, false, !s.isComplete)", "release(s.conn, s.sent, false, false)", "./adapters/proxy TestH2ConnIsKeptAfterAbortedResponse$")),
		alone("one test fills a connection", one("full connection is never left", "a doubtful connection is left", many, "time.Since(t.abortedAt) < s.maxSilence", "!t.abortedAt.IsZero()", "./adapters/proxy TestWaitForFullH2Conn$")),
		alone("one test fills a connection", one("request waits for a full connection", "a cancellation fails no other request", many, " && waited.conn.abortedAt.IsZero() && waited", " && waited", "./adapters/proxy TestWaitForFullH2Conn$")),
		one("bodies of all callers share a connection", "an unread body delays no other", many, "return t.bodies.Fits(body.flow, body.length, t.conn.sendWindow())", "return true", "./adapters/proxy TestUnreadBodyDelaysNoOther$", "./adapters/proxy TestConnWithShutWindowIsReplaced$"),
		one("long bodies of all callers share a connection", "an unread body delays no other", rule, "(b.long == 0 || b.flow == flow)", "true", "./core/share TestBodiesShareAWindow$", "./core/share TestFlowsShareNoConnectionForLongBodies$"),
		one("small body waits for a long one", "an unread body delays no other", rule, "return b.long == 0 && b.reserved+length <= window", "return b.reserved+length <= window", "./core/share TestBodiesShareAWindow$", "./core/share TestFlowsShareNoConnectionForLongBodies$"),
		one("small bodies are more than the window", "an unread body delays no other", rule, "return b.long == 0 && b.reserved+length <= window", "return b.long == 0 && length <= window", "./core/share TestBodiesShareAWindow$", "./adapters/proxy TestSmallBodiesShareH2Conns$"),
		alone("one test looks first", one("connection for a body is taken by another caller", "a caller gets the connection that it waits for", many, "if t.dial.waiters > 0 && t.dial.use.ofFlow && t.dial.use.flow != body.flow {", "if false {", "./adapters/proxy TestConnForBodyIsLeftToItsFlow$")),
		alone("only an endpoint that returns no window shows it", one("connection with a shut window is kept", "a connection without a window is replaced", many, "!t.isWindowShut(s.maxSilence) && ", "", "./adapters/proxy TestConnWithShutWindowIsReplaced$")),
		alone("other endpoints have a large window", one("window of the connection is not counted", "an unread body delays no other", wire, "c.window.Add(-int64(f.length))", "c.window.Add(0)", "./adapters/proxy TestWindowOfConnectionIsCounted$")),
		one("aborted downloads have no share of the window", "an aborted download stops no other", many, "connWindow = 2 * (MaxStreams + maxAbortedRequests) * streamWindow", "connWindow = 2 * MaxStreams * streamWindow", reported, "./adapters/proxy TestAbortedDownloadsStopNoOthers$"),
		alone("others have the whole window", one("connection with a short receive window is used", "an aborted download stops no other", many, "t.isRetiring || !t.hasReceiveWindow()", "t.isRetiring", "./adapters/proxy TestConnWithShortReceiveWindowIsReplaced$")),
		alone("others have the whole window", one("aborted requests are expected to take no window", "an aborted download stops no other", many, "int64(t.requests+t.aborted+1)*streamWindow", "int64(t.requests+1)*streamWindow", "./adapters/proxy TestConnWithShortReceiveWindowIsReplaced$")),
		alone("mostly the client ends a request", one("reset after a failed body does not count", "an aborted download stops no other", each, "wrote.Load() && !isResetByEndpoint", "false && !isResetByEndpoint", "./adapters/proxy TestResetRequestsCountAsAborted$")),
		alone("others have the whole window", one("received data does not count", "an aborted download stops no other", wire, "c.receive.Add(-int64(f.length))", "c.receive.Add(0)", "./adapters/proxy TestWindowOfConnectionIsCounted$")),
		one("failure is reported after the body", "a failure is reported at once", each, "u.once.Do(func() { close(u.closed) })", "u.once.Do(func() {})", "./adapters/proxy TestAbortedUploadIsReportedAtOnce$", "./adapters/proxy TestResponseBeforeEndOfBody$"),
		alone(played, one("304 has a body", "a length without a body is none of its own", each, "hasNoBody: res.StatusCode == http.StatusNotModified", "hasNoBody: false", "./adapters/proxy TestNotModifiedOverHTTP2$")),
		alone(played, one("failure before the first byte is not reported", "a response that has not begun can be a problem", "adapters/proxy/response.go", "if !isStreaming {", "if false {", "./adapters/proxy TestFailureBeforeHeaderIsAnswered$")),
		alone(played, one("deadline ends with the header of the service", "the deadline holds until a response begins", "adapters/proxy/response.go", "\tresult, reason := event.AttemptAbandoned, ClientDisconnected\n\tdefer func() { t.finish(", "\tt.responding.Store(true)\n\tresult, reason := event.AttemptAbandoned, ClientDisconnected\n\tdefer func() { t.finish(", "./adapters/proxy TestDeadlineHoldsUntilFirstByte$")),
		alone(played, one("deadline before the first byte is a failed response", "the deadline holds until a response begins", "adapters/proxy/response.go", "case DeadlineExceeded, ClientDeadline:", "case InvalidPart:", "./adapters/proxy TestDeadlineHoldsUntilFirstByte$")),
		alone(played, one("last part is sent before the end", "a response that has not begun can be a problem", "adapters/proxy/response.go", "err == nil && int64(n) == res.ContentLength {", "false {", "./adapters/proxy TestFailureBeforeHeaderIsAnswered$")),
		alone("only a client that does not read shows it", one("slow client blocks the connection", "a slow client blocks only itself", sent, "hints <- hint{status, h} //", "_ = t.forwardInterim(status, h) //", "./adapters/proxy TestSlowClientDoesNotDelayOthers$")),
		alone("one test asks for an upgrade", one("upgrade on HTTP/2 is forwarded", "no client has a service blamed", sent, ".Protocol != HTTP2 {", ".Protocol <= HTTP2 {", "./adapters/proxy TestNoUpgradeOverHTTP2$")),
		alone(played, one("body of a response without a body is ignored", "no silent truncation", "adapters/proxy/response.go", "if errors.Is(failed, http.ErrBodyNotAllowed) {", "if false {", "./adapters/proxy TestTruncatedH2ResponseAbortsStream$")),
		one("protocol of an attempt is not recorded", "one command leads from a failure to its cause", "adapters/proxy/upstream_trace.go", ".HTTP2 = true }", ".HTTP2 = false }", "./adapters/proxy TestPartsOverHTTP2$", cause),
		one("protocol http2 allows any", "the configuration decides the protocol", "cmd/macronode/internal/settings/reload.go", "protocols[u.Protocol]", "protocols[u.Protocol] % proxy.HTTP2", "./cmd/macronode/internal/cli TestProtocolChangeByReload$", "./cmd/macronode/internal/cli TestHTTP2StreamsBothWays$"),
		alone("one sum has it", one("HTTP/2 windows are not in the memory bound", "the memory bound is complete", "cmd/macronode/internal/settings/memory.go", "{\"requests of HTTP/2 to upstreams (permits.proxy; where upstreams.*.protocol allows it)\", second, proxy.StreamBytes}}},", "{\"none\", 0 * second, 0}}},", "./cmd/macronode/internal/settings TestMemoryOfUpstreams$")),
	}
}

// interim are bugs of interim responses and trailers.
func interim() []Mutant {
	const (
		sent  = "adapters/proxy/exchange.go"
		hints = "./adapters/proxy TestEarlyHints$"
	)
	return []Mutant{
		alone("one test sends so many", one("interim responses have no limit", "five interim responses are forwarded", sent, "if interim++; interim > maxInterimResponses {", "if interim++; false {", hints)),
		alone("one test sends so many", one("sixth interim response is forwarded", "five interim responses are forwarded", "adapters/proxy/h1conn.go", "if n == maxInterimResponses {", "if n > maxInterimResponses {", hints)),
		alone("one test has so old a client", one("HTTP/1.0 client gets an interim response", "HTTP/1.0 has no interim responses", sent, " || !t.r.ProtoAtLeast(1, 1) {", " {", hints)),
		alone("only a connection that was used before shows it", one("idempotency key permits a retry", "a request that is not idempotent is sent once", sent, "\t\thideIdempotencyKey(out.Header)\n", "", "./adapters/proxy TestIdempotencyKeyCausesNoRetry$")),
		alone("only a client of HTTP/2 has both", one("trailers are lost", "trailers follow the body", sent, "out.ContentLength = -1 //", "_ = out //", "./adapters/proxy TestHTTP2Clients$")),
		alone("one service sends an interim response", one("interim response counts as the response", "a problem may follow an interim response", "adapters/httpapi/call.go", "if status >= http.StatusOK {", "if status > 0 {", "./adapters/httpapi TestProblemAfterEarlyHints$")),
		alone("one handler sends an interim response", one("interim response keeps the connection open", "a response after shutdown closes its connection", "adapters/httpserver/httpserver.go", "if status >= http.StatusOK { // else", "if status > 0 { // else", "./adapters/httpserver TestInterimResponseDoesNotClose$")),
	}
}
