package mutants

// trunks are bugs of HTTP/2 to upstreams, and of what is said before an answer and behind it.
func trunks() []Mutant {
	const (
		many, greets, each, sent, of = "adapters/proxy/trunks.go", "adapters/proxy/greeter.go", "adapters/proxy/trunk.go", "adapters/proxy/serve.go", "adapters/proxy/outcome.go"

		ends   = "./adapters/proxy TestAKeptTrunkThatEnds$"
		vices  = "./adapters/proxy TestVices$"
		kept   = "./adapters/proxy TestKeptTrunks$"
		single = "./adapters/proxy TestOneTrunk$"
		told   = "./adapters/proxy TestWhatATrunkIsTold$"
		hints  = "./adapters/proxy TestEarlyHints$"
		cause  = "./cmd/macronode TestWhatASecondSaysIsTold$"

		played = "one table plays what an endpoint should not do"
		behind = "only a connection that was used before shows it"
	)
	return []Mutant{
		alone(behind, one("a POST that is written twice", "what is not idempotent is sent once", many, "(over || goesAway(err)) && e.again():", "(over || goesAway(err)):", ends)),
		alone(behind, one("an end at the wrong moment of a trunk is a failure", "what may be repeated goes over a new connection", many, "case !kept || n >= overMost:", "case !kept || n >= 0:", ends)),
		alone(behind, one("who goes away has failed", "an endpoint is not blamed for an end of a connection", of, "case errors.Is(err, errAway):", "case false:", ends)),
		one("who has not begun is taken for one who has", "what was not sent is told as not sent", many, "if code == http2.ErrCodeRefusedStream || goesAway(err) {", "if code == 1<<31 {", vices, cause),
		alone("only a header that is too large is not sent", one("a client's header is the endpoint's failure", "an endpoint is not blamed for a client", many, "case tooLarge(err):", "case false:", "./adapters/proxy TestALargeHeader$")),
		one("chosen, and asked again", "what an endpoint speaks is not asked each time", many, "s.first = time.Now().Add(believed)", "s.first = time.Time{}", single, "./adapters/proxy TestAnEndpointThatWantsHTTP1$"),
		one("HTTP/2 is a wish", "what an endpoint is asked by is the operator's to say", many, "to.by == Auto && to.Scheme == \"http\"", "to.Scheme == \"http\"", "./adapters/proxy TestSecondProtocol$", "./cmd/macronode TestAProtocolIsChanged$"),
		alone("one test counts handshakes", one("each connects for himself", "an endpoint is connected to once at a time", many, "case s.making == nil:", "case true:", single)),
		one("a trunk for any number", "requests of a connection are bounded", many, "t.calls >= MaxStreams || ", "", single, kept),
		alone("one test fills them", one("trunks without a bound", "connections that are kept are bounded", many, "kept <= keptEach && s.all.Load() <= Kept && ", "kept > 0 && ", kept)),
		alone("one test waits so long", one("trunks for ever", "connections are not kept for long", many, " && time.Since(t.since) < keptFor", "", kept)),
		alone("one test ends them", one("a trunk that outlives its proxy", "nothing is left behind a change", many, "s.all.Load() <= Kept && !s.over &&", "s.all.Load() <= Kept &&", kept)),
		one("one window for all", "a slow client fills his own window", greets, "MaxReceiveBufferPerConnection: MaxStreams * streamWindow", "MaxReceiveBufferPerConnection: streamWindow", told, "./adapters/proxy TestASlowClientHoldsUpNobody$"),
		alone("only what is written to an endpoint shows it", one("as much ahead as it likes", "what lies in memory is bounded", greets, "MaxReceiveBufferPerStream: streamWindow, ", "", told)),
		alone("only an endpoint that reads nothing shows it", one("who takes nothing is waited for", "no write is for ever", greets, ", WriteByteTimeout: c.Grace", "", "./adapters/proxy TestAnEndpointThatTakesNothing$")),
		alone("only an endpoint that says nothing shows it", one("a dead trunk is asked on", "a connection that may be dead is left", many, " || t.doubted(s.doubt)", "", "./adapters/proxy TestASilentTrunk$")),
		alone("only clients who leave show it", one("a trunk of rapid resets", "nobody has us taken for an attack", many, "t.spoilt >= spoilt || ", "", "./adapters/proxy TestASpoiltTrunk$")),
		one("a full trunk is one that has ended", "who leaves ends nobody's connection", many, "(t.conn.CanTakeNewRequest() || time.Since(t.cut) < s.doubt)", "t.conn.CanTakeNewRequest()", "./adapters/proxy TestAFullTrunkIsKept$", "./adapters/proxy TestAFullTrunk$"),
		alone("only clients who leave show it", one("who leaves has found an end", "who leaves ends nobody's connection", each, "if !gone && !ofStream(err) &&", "if !ofStream(err) &&", "./adapters/proxy TestAFullTrunkIsKept$")),
		alone("only clients who leave show it", one("who leaves midway ends it", "who leaves ends nobody's connection", each, "leave(s.trunk, false, !s.whole)", "leave(s.trunk, false, false)", "./adapters/proxy TestAFullTrunkIsKeptMidway$")),
		alone("one test fills one", one("full for ever", "a connection that may be dead is left", many, "time.Since(t.cut) < s.doubt", "!t.cut.IsZero()", "./adapters/proxy TestAFullTrunk$")),
		alone("one test fills one", one("full, and waited for in vain", "no request is lost for another's leaving", many, " && waited.trunk.cut.IsZero():", ":", "./adapters/proxy TestAFullTrunk$")),
		one("a failure waits for the client", "a failure is told at once", each, "u.once.Do(func() { close(u.closed) })", "u.once.Do(func() {})", "./adapters/proxy TestAnUploadThatNobodyWants$", "./adapters/proxy TestAnAnswerBeforeTheBody$"),
		alone(played, one("a 304 that has a body", "a length without a body is none of its own", each, "bare: res.StatusCode == http.StatusNotModified", "bare: false", "./adapters/proxy TestNotModified$")),
		alone(played, one("a failure that nobody is told", "an answer of which nothing has left may still be a problem", "adapters/proxy/answer.go", "if !live {", "if false {", "./adapters/proxy TestNothingHasLeft$")),
		alone(played, one("the last part goes before the end", "an answer of which nothing has left may still be a problem", "adapters/proxy/answer.go", "err == nil && int64(n) == res.ContentLength {", "false {", "./adapters/proxy TestNothingHasLeft$")),
		alone("only a client that does not listen shows it", one("who reads for all waits for one", "a slow client holds up nobody", sent, "said <- hint{status, h} //", "_ = t.early(status, h) //", "./adapters/proxy TestASlowClientHoldsUpNobody$")),
		alone("one test asks for an upgrade", one("an upgrade where there is none", "no client has a service blamed", sent, ".Protocol != HTTP2 {", ".Protocol <= HTTP2 {", "./adapters/proxy TestNoUpgradeBySecond$")),
		alone(played, one("a body where there is none", "no silent truncation", "adapters/proxy/answer.go", "if errors.Is(failed, http.ErrBodyNotAllowed) {", "if false {", "./adapters/proxy TestNoSecondTruncation$")),
		one("nobody says by what it was asked", "from a failure to its cause by one command", "adapters/proxy/course.go", ".HTTP2 = true }", ".HTTP2 = false }", "./adapters/proxy TestPartsBySecond$", cause),
		one("http2 is any", "what an endpoint is asked by is the operator's to say", "cmd/macronode/reload_settings.go", "protocols[u.Protocol]", "protocols[u.Protocol] % proxy.HTTP2", "./cmd/macronode TestAProtocolIsChanged$", "./cmd/macronode TestBothWaysBySecond$"),
		alone("one sum has it", one("windows that nobody adds up", "the memory bound has all that is bounded", "cmd/macronode/memory.go", "{\"requests of HTTP/2 to upstreams (permits.proxy; where upstreams.*.protocol allows it)\", second, proxy.StreamBytes}}},", "{\"none\", 0 * second, 0}}},", "./cmd/macronode TestTheMemoryOfUpstreams$")),

		alone("one test says so much", one("answers before the answer without end", "five of them are given on", sent, "if said++; said > earlyMost {", "if said++; false {", hints)),
		alone("one test has so old a client", one("an old client is told what it does not know", "HTTP/1.0 has one answer", sent, " || !t.r.ProtoAtLeast(1, 1) {", " {", hints)),
		alone(behind, one("a key is a leave to send it twice", "what is not idempotent is sent once", sent, "\t\tsingly(out.Header)\n", "", "./adapters/proxy TestAKeyIsNoRetry$")),
		alone("only a client of HTTP/2 has both", one("trailers that are lost", "trailers go with the body", sent, "out.ContentLength = -1 //", "_ = out //", "./adapters/proxy TestHTTP2$")),
		alone("one service says something first", one("what comes before an answer is one", "a problem may follow what was said first", "adapters/httpapi/call.go", "if status >= http.StatusOK {", "if status > 0 {", "./adapters/httpapi TestBeyondSaysSomethingFirst$")),
		alone("one handler says something first", one("what comes before an answer decides about its connection", "an answer behind the Stop says that its connection ends", "adapters/httpserver/httpserver.go", "if status >= http.StatusOK { // else", "if status > 0 { // else", "./adapters/httpserver TestWhatIsSaidFirstClosesNothing$")),
	}
}
