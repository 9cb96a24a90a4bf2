package mutants

// gateway are bugs of admission, fair queueing and quotas.
func gateway() []Mutant {
	const (
		fair, admit, arrive, gate, in = "core/gateway/drr/drr.go", "core/gateway/admission/admission.go", "core/node/admission.go", "adapters/loop/admission.go", "adapters/httpapi/admission.go"

		turns, drrModel               = "./core/gateway/drr TestTranscript$", "./core/gateway/drr TestMatchesModel$"
		admissionTest, admissionModel = "./core/gateway/admission TestTranscript$", "./core/gateway/admission TestMatchesModel$"
		reported                      = "./core/node TestEveryAdmitGetsDecision$"
		door                          = "./adapters/httpapi TestAdmitFields$"
		parts, bodies                 = "core/gateway/admission/stream.go", "./core/node TestTranscripts/^stream$"
	)
	return []Mutant{
		one("flow that returns keeps the turn", "k8s-95259: every waiting flow is served", fair, "if name.Class == q.turn {", "if false {", drrModel, "./core/gateway/drr TestNoFlowStarves$", sim),
		one("weight 0 admits", "k8s-134196: weight 0 admits nothing", fair, "case q.limits.Weights[of] == 0:\n\t\treturn ErrWeight", "case false:\n\t\treturn ErrWeight", drrModel, admissionModel),
		one("idle class saves its deficit", "F3", fair, "c.deficit, c.visited = 0, false", "c.visited = false", drrModel, admissionModel, sim),
		one("flow gets its quantum at each visit", "F4", fair, "\t\t\tc.begun = true\n", "", turns, drrModel, sim),
		one("turn costs no deficit", "classes are served by weight", fair, "c.deficit -= cost\n", "", turns, "./core/gateway/drr TestShares$", sim),
		one("new flow goes first", "flows take turns", "core/gateway/drr/ring.go", "f.prev, f.next = first.prev, r.first\n", "f.prev, f.next = first.prev, r.first\n\tdefer func() { r.first = at }()\n", turns, drrModel, sim),
		one("queue has one place too many", "F2", fair, "case q.queued >= q.limits.Queue:", "case q.queued > q.limits.Queue:", turns, drrModel, sim),
		one("flow can fill its class", "F2", fair, "case waits && int(q.flows[at].queued) >= q.limits.Flow, q.limits.Flow == 0:", "case false:", turns, drrModel, sim),
		one("overcharge is not returned", "a charge is corrected at the end", fair, "w.deficit = max(w.deficit, min(w.deficit+min(by, most), 2*most))", "_ = by", turns, drrModel),

		one("permit is returned twice", "A1: a permit is returned once", admit, "\tr.state = free\n", "", admissionTest, admissionModel, sim),
		one("stale ticket returns a permit", "a stale ticket changes nothing", admit, "if r.ticket != t || r.state == free {\n\t\treturn", "if r.state == free {\n\t\treturn", admissionTest, admissionModel, reported),
		one("lost permit is never reclaimed", "an unreturned permit is reclaimed", admit, "\tr.state = lost\n\ta.queues[r.facet].Return(r.flow)\n", "\tr.state = lost\n", admissionTest, admissionModel, sim),
		one("waiting time has no limit", "waiting is bounded", admit, "until: now.Add(min(a.limits.Wait, in.TimeLeft/4))", "until: now.Add(in.TimeLeft)", admissionTest, admissionModel, sim),
		one("wait may exceed a quarter of the deadline", "at most a quarter of the deadline", admit, "min(a.limits.Wait, in.TimeLeft/4)", "a.limits.Wait", admissionModel, sim),
		one("permit of another facet is used", "facets do not share permits", admit, "		if a.queues[f].Ready() {", "\t\tif a.queues[types.FacetWallet].Ready() && f >= 0 {", admissionTest, admissionModel, sim),
		one("route has no limit of requests", "max_inflight", "core/gateway/admission/route.go", "if room <= 0 {", "if false {", admissionTest, admissionModel, transcripts, sim),
		one("abandoned part stays in the queue", "a part belongs to a running request", admit, "\t\ta.drop(t.Slot())\n", "", "./core/gateway/admission TestStream$", admissionModel),
		one("request rejected after admission stays charged", "a rejected request costs nothing", arrive, "\t\t\tn.quota.Undo(now, e.Ticket.Slot())\n\t\t\tn.rejectAdmission(event.Decision{Ticket: e.Ticket, Reason: event.RejectQueueTimeout", "\t\t\tn.rejectAdmission(event.Decision{Ticket: e.Ticket, Reason: event.RejectQueueTimeout", "./core/node TestTranscripts/^stream$", reported),
		alone("otherwise a slot that is reused within a turn is a data race", one("part of another request is decided", "a decision belongs to one use of a slot", gate, "case p.admit.Ticket != v.Ticket, p.isFinished:", "case false:", "./adapters/loop TestLatePartDecisionIsIgnored$")),
		alone("one test sends such fields after a body", one("any field is accepted as a trailer", "framing and routing fields precede the body", "adapters/proxy/header.go", "\t\t\tdelete(trailer, name)\n", "", "./adapters/proxy TestHeaderOnlyTrailersAreRemoved$")),
		alone("only a response without announced trailers shows it", one("unannounced trailer is sent", "framing and routing fields precede the body", "adapters/proxy/response.go", "if removeHeaderOnlyFields(res.Trailer, res.Header); len", "if len", "./adapters/proxy TestHeaderOnlyTrailersAreRemoved$")),
		one("response bytes are not reserved", "both bodies are charged as they stream", "adapters/proxy/response.go", "if !c.meter.TryTake(n) {", "if false {", "./adapters/proxy TestMeterIsAskedForBothBodies$", "./adapters/proxy TestMeterRefusalEndsRequest$"),

		one("rejected request is charged", "all quotas are charged, or none", arrive, "if v.Reason = n.rejectReason(now.Mono, at, in); v.Reason == event.Admitted {\n\t\tn.chargeQuotas(now.Mono, in, &v)\n\t}", "v.Reason = n.rejectReason(now.Mono, at, in)\n\tif was := v.Reason; true {\n\t\tn.chargeQuotas(now.Mono, in, &v)\n\t\tv.Reason = max(was, v.Reason)\n\t}", transcripts, sim),
		one("instance quota rejects on arrival", "the instance quota paces the queue", arrive, "if n.admission.Alone(in) {", "if false {", "./core/node TestSmallFlowWaitsLittle$", sim),
		one("turn is longer than the wait", "a class of higher weight is not kept out by a slow instance quota", "core/gateway/quota/turn.go", "roundTime(rules, turns, quantum, least) > wait", "false", "./core/node TestAnonymousRequestsLeaveInstanceQuota$", "./cmd/macronode/internal/settings TestSlowInstanceQuotaShortensTurns$"),
		one("used part of the current turn is counted again", "a request is not rejected for finished turns", "core/gateway/drr/drr.go", "if of != q.turn || !c.visited {", "if true {", "./core/gateway/drr TestAheadCountsItemsServedBefore$", "./core/node TestAnonymousRequestsLeaveInstanceQuota$"),
		one("pacing delay ignores the class", "a request within its class share is not rejected", arrive, "most := n.config.maxPacingDelay(in.Class)", "most := n.config.MaxPacingDelay", transcripts, sim),
		one("instance quota does not pace", "quota of the instance", arrive, "request = at <= now", "request = at < quota.Never", transcripts, sim),
		one("drain keeps waiting requests", "D2: a drain accepts nothing new", "core/node/node.go", "\t\tn.rejectWaiting(now.Mono, out)\n", "", transcripts, sim),
		one("waiting requests never time out", "waiting is bounded", "core/node/node.go", "\tn.expireWaiting(now.Mono, out)\n", "", transcripts, reported, sim),
		one("rejection does not grant the freed permit", "N6: a grantable permit is granted", arrive, "\t\tn.rejectAdmission(v, out)\n\t\tn.grantPermits(now.Mono, out)\n", "\t\tn.rejectAdmission(v, out)\n", "./core/node TestTranscripts/quotas$", sim),
		one("part does not grant the freed permit", "N6: a grantable permit is granted", "core/node/reserve_bytes.go", "\tn.reservePart(now, in, out)\n\tn.grantPermits(now, out)\n", "\tn.reservePart(now, in, out)\n", "./core/node TestTranscripts/quotas$", sim),
		alone("few drains run without a tick while a part waits", one("part waits during a drain", "N6: a grantable permit is granted", arrive, "n.admission.Evict()\n\t\tif !ok {\n\t\t\tn.grantPermits(now, out)\n", "n.admission.Evict()\n\t\tif !ok {\n", bodies)),
		one("parts precede all arrivals", "arrivals and parts take turns", parts, "\ta.passed = true\n", "", bodies, sim),
		one("part is granted too early", "the instance quota paces parts", arrive, "n.admission.Lined() > 0 && n.quota.NextPart(now) <= now", "n.admission.Lined() > 0", bodies, sim),
		one("part is not charged to the instance", "the instance quota paces parts", "core/node/reserve_bytes.go", "\tn.quota.ChargeInstancePart(now, t.Slot(), bytes)\n", "", bodies, sim),
		one("waiting part has no deadline", "waiting for a part is bounded", "core/node/reserve_bytes.go", "now.Add(n.admission.Patience(t)))", "now.Add(1<<40))", bodies, sim),
		alone("about one run in 1,500 of the simulator meets it", one("each body is a flow of its own", "callers take turns, not bodies", parts, "a.line.Offer(r.flow, place,", "a.line.Offer(types.Flow{Class: r.flow.Class, ID: uint64(place)}, place,", "./core/gateway/admission TestStream$")),
		one("rejected part stays charged", "a rejected part costs nothing", arrive, "\tn.quota.ReleasePart(now, t.Slot(), bytes)\n", "\tn.quota.GrantPart(t.Slot())\n", bodies, "./chaos/trace TestEveryStepIsPermitted$"),
		alone("two events per slot block the loop", one("second part is reserved before the decision", "one outstanding event per slot", gate, "p.admit.Ticket != t || p.isFinished || p.awaitsBytes", "p.admit.Ticket != t || p.isFinished", "./adapters/loop TestReservationOutlivesItsCaller$")),
		one("paced admission is not in the due time", "Due", "core/node/due.go", "\tearlier(n.nextPaced())\n", "", transcripts, sim),

		one("abandoned request keeps its slot", "a slot is returned", gate, "\tg.sendFinish(p, event.Finish{Ticket: v.Ticket})\n", "", "./adapters/loop TestSlotsAndPermitsReturn$", sim),
		one("slot is freed before the node has handled its end", "a slot has one use at a time", gate, "\tp.isFinished, p.holder, p.finish = true, nil, end\n", "\tp.isFinished, p.holder, p.finish = true, nil, end\n\tg.free[p.class] <- end.Ticket.Slot()\n", "./adapters/loop TestSlotsAndPermitsReturn$", "./adapters/loop TestFullAdmissionRejectsAtOnce$"),
		one("unknown key has a tenant", "an unauthenticated request changes no tenant's state", in, "match && found {", "match || found {", door, "./adapters/httpapi TestAuthorizationMatrix|TestAdmitFields"),
		one("expired key has a class", "the class follows from a verified credential", in, "case k.key.ID == 0, k.isRevoked:", "case k.key.ID == 0:", door, "./adapters/httpapi TestAdmitFields|TestExpired|TestRevoked"),
		alone("only the peer of a request shows it", one("forwarded address of any peer is trusted", "ron-gate forged peer", in, "k.trustsProxy(a); {", "true; {", "./adapters/httpapi TestPeer$")),
		alone("only a truncated response shows it", one("failed call keeps its permit", "a permit is returned once, aborts included", "adapters/httpapi/httpapi.go", "\t\tk.finish()\n", "\t\tif bug == nil {\n\t\t\tk.finish()\n\t\t}\n", "./adapters/httpapi TestCutProxyResponse$")),
		alone("one test calls a node that is shutting down", one("request rejected by the shutdown counts as admitted", "one command leads from a failure to its cause", in, "\tk.class = k.classify()\n\tk.verdict =", "\t_ =", "./adapters/httpapi TestProxyRoutes$")),
		alone("only a client that disconnects shows it", one("disconnected client counts as a timeout", "a disconnected client is reported as such", in, "\t\tk.code = ClientDisconnected\n\t\tpanic(http.ErrAbortHandler)", "\t\treturn problem(event.Timeout)", "./adapters/httpapi TestClientDisconnectsWhileQueued$")),
		alone("only a client that disconnects shows it", one("disconnected client counts as admitted", "one command leads from a failure to its cause", "cmd/macronode/internal/server/decision_sink.go", "if d.Code == httpapi.ClientDisconnected {", "if false {", "./cmd/macronode/internal/server TestDisconnectedClientWasNotAdmitted$")),
		one("unknown path is answered without admission", "an unknown path is admitted like any other", "adapters/httpapi/httpapi.go", "if !k.isAdmitted && (", "if false && (", "./adapters/httpapi TestProxyRoutes$", "./adapters/httpapi TestPermitIsReturnedOnce$"),
		one("shutdown counts as a disconnected client", "one command leads from a failure to its cause", "adapters/proxy/outcome.go", "errors.Is(context.Cause(r.Context()), p.config.ShutdownCause)", "false", "./adapters/proxy TestTraceOfShutdown$", "./cmd/macronode/internal/cli TestShutdownCutsStream$"),
		one("wrong endpoint is reported unhealthy", "status names the unhealthy endpoints", "core/gateway/upstream/check.go", "v.UnhealthyBits |= 1 << n", "v.UnhealthyBits |= 1 << v.Unhealthy >> 1", "./core/gateway/upstream TestMatchesModel$", "./core/gateway/upstream TestStatsNamesUnhealthyEndpoints$"),
		alone("the other test waits for the report", one("unhealthy endpoint is not reported", "from a failure to its cause", "cmd/macronode/internal/server/endpoint_health.go", "\t\te.changes++\n", "", "./cmd/macronode/internal/server TestUnhealthyEndpointIsLogged$")),
		one("reason for no retry is lost", "one command leads from a failure to its cause", "adapters/proxy/outcome.go", "t.upstream.NoRetry = decision.NoRetry", "_ = decision", "./adapters/proxy TestTraceOfOutcomes$", "./cmd/macronode/internal/cli TestExplainShowsCause$"),
		alone("other tests never fill the queue", one("log queue has no limit", "every queue is bounded", "adapters/accesslog/access.go", "room := len(l.queue) < Room", "room := true", "./adapters/accesslog TestNoteNeverBlocks$")),
	}
}

// pages are bugs of CORS.
func pages() []Mutant {
	const of, way = "adapters/proxy/cors.go", "adapters/httpapi/proxy_route.go"
	const table, model, fields = "./adapters/proxy TestCORS$", "./adapters/proxy TestCORSAgreesWithModel$", "./adapters/proxy TestCORSHeaderFields$"
	return []Mutant{
		one("any origin is allowed", "an origin is compared completely", of, "case slices.Contains(c.Origins, origin[0]):", "case true:", table, model, fields),
		one("null origin matches the wildcard", "null must be listed", of, "case c.anyOrigin && origin[0] != \"null\":", "case c.anyOrigin:", table, model),
		one("credentials header is missing", "a page needs the header to read with credentials", of, "\tif c.Credentials {\n\t\th[", "\tif false {\n\t\th[", table, model, fields),
		one("wildcard is accepted with credentials", "no wildcard with credentials", of, "c.Credentials && slices.Contains(list, \"*\")", "slices.Contains(list, \"\")", "./adapters/proxy TestCORSCredentialsForbidWildcards$", "./adapters/proxy TestCORSCredentialsForbidWildcards"),
		one("CORS fields of the upstream are kept", "an upstream's CORS fields are replaced", of, "return strings.HasPrefix(name, \"Access-Control-\")", "return name == \"\"", fields, table),
		one("Vary: Origin is missing", "caches separate origins", of, "if vary := to[\"Vary\"]; !containsToken(vary, \"Origin\")", "if vary := to[\"Vary\"]; false && !containsToken(vary, \"Origin\")", fields, "./adapters/proxy TestCORSHeaderFields"),
		alone("one table has every protocol", one("upgrade to h2c is forwarded", "every request passes the gateway's decisions", "adapters/proxy/tunnel.go", "case \"h2c\", \"h2\", \"http\", \"tls\":", "case \"h2\", \"http\", \"tls\":", "./adapters/proxy TestIgnoredUpgrades$")),
		one("upgrade with a body is forwarded", "a request has one end", "adapters/proxy/tunnel.go", "len(values) != 1 || t.body != nil || ", "len(values) != 1 || ", "./adapters/proxy TestIgnoredUpgrades$", "./adapters/proxy TestUpgradeWithBodyIsIgnored$"),
		alone("one table has requests without a host", one("HTTP/2 request without a host is forwarded", "a request has one host", "adapters/httpcheck/httpcheck.go", "case r.Host == \"\" && r.ProtoAtLeast(1, 1):", "case r.Host == \"\" && r.ProtoMajor > 2:", "./adapters/proxy TestMissingHostIsRejected$")),
		alone("one table has both", one("duplicate Host is forwarded", "a request has one host", "adapters/proxy/header.go", ", \"Host\":", ":", "./adapters/proxy TestMissingHostIsRejected$")),
		alone("one table has last responses of a connection", one("hop-by-hop fields of a closing connection are kept", "hop-by-hop fields are removed", "adapters/proxy/h1conn.go", "if res.Close && res.ProtoAtLeast(1, 1) {", "if res.Close && !res.ProtoAtLeast(1, 1) {", "./adapters/proxy TestConnectionFieldsOfLastResponse$")),
		alone("one table has last responses of a connection", one("hop-by-hop fields of a split header are kept", "hop-by-hop fields are removed", "adapters/proxy/h1conn.go", "l.recorded = append(l.recorded, p[:n]...)", "l.recorded = append(l.recorded, p[:0]...)", "./adapters/proxy TestConnectionFieldsOfLastResponse$")),
		alone("one service sends it", one("space before a colon is accepted", "a response has one framing", "adapters/proxy/h1conn.go", "if strings.IndexByte(name, ' ') >= 0 {", "if name == \" \" {", "./adapters/proxy TestBlankBeforeColonIsRejected$")),
		alone("one table has every spelling of a host", one("trailing dot of a host is another host", "a host has one route in every spelling", "adapters/httpcheck/host.go", "	name = strings.TrimSuffix(name, \".\")\n", "", "./adapters/proxy TestMatch$")),
		alone("one table has every spelling of a host", one("host with two ports is accepted", "a host has one route in every spelling", "adapters/httpcheck/host.go", "return toLower(name), isIPv6(name)", "return toLower(name), true", "./adapters/proxy TestMatch$")),
		one("preflight matches another route", "a preflight belongs to the route of its request", "adapters/proxy/route.go", "p.findRoute(host, path, method, identity, func", "p.findRoute(host, path, r.Method, identity, func", table, "./adapters/proxy TestCORS"),
		one("preflight needs an API key", "browsers send no key with a preflight", way, "if route.Preflight {", "if false {", "./adapters/httpapi TestPreflightNeedsNoKey$", "./cmd/macronode/internal/cli TestRouteCORS$"),
		one("preflight is not admitted", "a preflight is admitted like any request", way, "browsers send none\n\t\treturn k.admit()", "browsers send none\n\t\treturn nil", "./adapters/httpapi TestPreflightNeedsNoKey$", "./cmd/macronode/internal/cli TestRouteCORS$"),
		one("rejection lacks CORS fields", "problems have CORS fields", way, "\tif route.SetHeader != nil {", "\tif false {", "./adapters/httpapi TestRejectionsHaveRouteHeaders$", "./cmd/macronode/internal/cli TestRouteCORS$"),
	}
}

// bombs are bugs of decompression.
func bombs() []Mutant {
	const of, sent, onward = "adapters/inflate/inflate.go", "adapters/proxy/inflated.go", "./adapters/proxy TestInflate$"
	const places, agrees, gives = "core/share/places.go", "./core/share TestPlacesAgreeWithModel$", "./core/share TestFlowWithoutPlaceGetsOne$"
	const shared, waits = "./adapters/proxy TestInflatersAreShared$", "./adapters/proxy TestFlowWithoutInflaterGetsOne$"
	const went, cut, hostile = "./adapters/inflate TestBombsAreRejected$", "./adapters/inflate TestTruncatedDataIsBroken$", "./adapters/httpapi TestHostileRequests$"
	return []Mutant{
		one("decompression ratio is not limited", "at most 10 times the input and 64 KiB", of, "min(Ratio*r.from.read+Free, r.limit.Most)", "r.limit.Most", went, "./adapters/inflate TestRatioHolds", hostile),
		one("decompressed size is not limited", "an absolute limit", of, "min(Ratio*r.from.read+Free, r.limit.Most)", "Ratio*r.from.read + Free", went, "./adapters/inflate TestBombsAreRejected"),
		one("truncated compressed body succeeds", "never a truncated success", of, "\t}\n\treturn ErrBroken\n}", "\t}\n\treturn io.EOF\n}", cut, hostile, "./fuzz FuzzInflate"),
		one("bomb is truncated", "never a truncated success: envoy-21647", of, "r.err = ErrLarge\n\t\t\treturn 0, r.err", "r.err = io.EOF\n\t\t\treturn 0, r.err", went, "./adapters/inflate TestRatioHolds", hostile),
		one("zstd window is not limited", "the window is bounded", of, "zstd.WithDecoderMaxWindow(r.limit.Window)", "zstd.WithDecoderMaxWindow(1<<31)", went, hostile),
		one("an ordinary zstd window is too large for the API", "zstd windows of 8 MiB are accepted", "adapters/inflate/window.go", "*w <= windowOf(MaxWindow)", "false", "./adapters/inflate TestWindowsAreLowered$", "./adapters/httpapi TestHarmlessRequests$"),
		alone("other bodies have one frame", one("zstd windows of later frames are not lowered", "zstd windows of 8 MiB are accepted", "adapters/inflate/window.go", "size := head >> 3\n", "size := head >> 2\n", "./adapters/inflate TestWindowsAreLowered$")),
		one("empty compressed body succeeds", "never a truncated success", of, "errors.Is(err, io.EOF) && r.from.read > 0", "errors.Is(err, io.EOF)", cut, "./adapters/inflate TestTruncatedDataIsBroken"),
		one("stacked encodings are accepted", "stacked encodings are rejected", of, "\tcase len(values) > 1:\n\t\treturn Plain, ErrCoding\n", "", "./adapters/inflate TestContentEncodings$", hostile),
		one("forwarded bomb is a bad request", "413 for size or ratio", sent, "i.problem.CompareAndSwap(0, uint32(event.PayloadTooLarge))", "i.problem.CompareAndSwap(0, uint32(event.BadRequest))", onward, "./adapters/proxy TestInflate"),
		one("Content-Encoding is kept after decompression", "Content-Encoding is rewritten", sent, "\"Content-Encoding\", \"Content-Length\"", "\"Content-Length\"", onward, "./cmd/macronode/internal/cli TestRouteDecompresses$"),
		one("Content-Length is kept after decompression", "Content-Length is rewritten", sent, "return t.inflated, -1", "return t.inflated, t.r.ContentLength", onward, "./cmd/macronode/internal/cli TestRouteDecompresses$"),
		one("one peer uses all decompressors", "a flow has a share of the decompressors", places, "has < p.limits.Flow && Left(0, has, p.left(flow.Class)) > 0", "has < p.limits.Places", agrees, shared),
		one("a flow leaves no decompressors", "a flow leaves decompressors to others", places, " && Left(0, has, p.left(flow.Class)) > 0", "", agrees, shared),
		one("no slow zstd body gives way", "a slow body gives way to a caller without a decompressor", places, "if !w.ending {", "if false {", agrees, gives, waits, "./cmd/macronode/internal/cli TestSlowZstdLeavesDecompressors/peers$"),
		one("the only zstd body of a caller gives way", "a caller with one decompressor keeps it", places, "most := 1", "most := 0", agrees, gives),
		alone("the others have one class at a time", one("zstd bodies of a higher class give way", "a caller without a key takes nothing from one with a key", places, "h.ending || h.flow.Class < c", "h.ending", agrees)),
		alone("random histories rarely have one", one("a zstd body that has just begun gives way", "a body that lasts gives way", places, "from != nil && from.since.Add(w.least) <= now", "from != nil", "./core/share TestYoungRequestStays$")),
		alone("the others wait for one", one("a caller waits for several decompressors", "one request of a caller waits", places, "p.has(flow) > 0 || p.waits(flow)", "p.has(flow) > 0", agrees)),
		alone("one test takes a decompressor from a body that goes on", one("a body that lost its decompressor is read on", "a body that gives way ends", sent, "	t.body.stop()\n", "", "./cmd/macronode/internal/cli TestSlowZstdLeavesDecompressors/peers$")),
		one("decompressor is never returned", "a place is returned", sent, "\t\ti.place.give()\n", "", "./adapters/proxy TestInflatersLimit$", "./cmd/macronode/internal/cli TestSlowZstdLeavesDecompressors/peers$"),
		alone("one test has a slow response", one("decompressor is held until the response", "a place is returned when the body is read", sent, "if i.last = err; err != nil {", "if i.last = err; false {", "./adapters/proxy TestInflaterIsFreeAfterBody$")),
		one("disconnected client ends a body", "never a truncated success", of, "\tcase r.from.err != nil:\n\t\treturn r.from.err\n", "", "./adapters/inflate TestSourceErrorIsReturned$", "./adapters/inflate TestSourceError"),
	}
}

// starts are bugs of upstreams that are required for readiness.
func starts() []Mutant {
	const of, reported = "core/lifecycle/readiness/readiness.go", "./core/node TestTranscripts/start"
	const table, model = "./core/lifecycle/readiness TestTranscript$", "./core/lifecycle/readiness TestMatchesModel$"
	return []Mutant{
		one("node is ready without its upstream", "strict boot", of, "if r.awaitedUpstreams &= these; r.awaitedUpstreams == 0 {", "if r.awaitedUpstreams &= these; true {", table, model, reported),
		one("one healthy upstream is enough", "strict boot: each of them", of, "if r.awaitedUpstreams &= these; r.awaitedUpstreams == 0 {", "if these != r.awaitedUpstreams {\n\t\tr.awaitedUpstreams = 0\n\t}\n\tif r.awaitedUpstreams == 0 {", table, model),
		one("failed health check counts as healthy", "strict boot: the upstream is healthy", "core/node/node.go", "if in.Healthy {", "if true {", reported, transcripts),
		one("removed upstream is awaited", "a change removes awaited upstreams", "core/node/policy.go", "\tn.readiness.AwaitUpstreams(configuredUpstreams(n.config.Upstreams))\n", "", reported, transcripts),
	}
}

// quotas are bugs of quotas.
func quotas() []Mutant {
	const (
		model, sense = "./core/gateway/quota TestMatchesModel$", "./core/gateway/quota TestRateIsABound$"
		of, exact    = "core/gateway/quota/quota.go", "core/gateway/quota/exact.go"
		tabs         = "core/gateway/quota/charge.go"
		stream       = "./core/node TestTranscripts/^stream$"
	)
	return []Mutant{
		one("busy row is given away", "a new subject takes a free or idle row", "core/gateway/quota/counters.go", "if c.taken(c.sweepAt) && c.idle(c.sweepAt, now) {", "if c.taken(c.sweepAt) {", model, "./core/gateway/quota TestRonGateForgedPeer$", "./core/gateway/quota TestSweepRemovesIdleRows$"),
		one("rate 0 admits when idle", "k8s-134196", of, "wait := time.Duration(Never)", "wait := time.Duration(0)", model, "./core/gateway/quota TestK8s134196$"),
		one("rejected request is charged to other rules", "all rules are charged, or none", of, "\tcase v.RetryAfter > 0:\n", "\tcase v.RetryAfter > 0:\n\t\tq.charge(&caller, &Result{})\n", model, "./core/gateway/quota TestRejectionChangesNothing$", "./core/gateway/quota TestRuleTranscript$"),
		one("rules of one subject share a counter", "kong-12003", of, "newGauge(r, slots[r.Scope])", "newGauge(r, 0*slots[r.Scope])", model, "./core/gateway/quota TestKong12003$"),
		one("counter without a key is used", "requests without a key use no key counter", of, "\t\trules &^= q.keyed\n", "", model, "./core/gateway/quota TestPeersDoNotAffectKeys$", "./core/gateway/quota TestRonGateForgedPeer$"),
		one("RetryAfter is a nanosecond too short", "RetryAfter is exact", exact, "return time.Duration(e.ns + 1)", "return time.Duration(e.ns)", model, sense, "./core/gateway/quota TestRateIsExactForACentury$"),
		one("debt is limited by the burst", "debt is not bounded by the burst", "core/gateway/quota/rule.go", "return smaller(after, g.most), wait", "return smaller(after, g.full), wait", model, "./core/gateway/quota TestDebtIsPaidBack$", "./core/gateway/quota TestInstancePacesTheQueue$"),
		one("fractions of a nanosecond are lost", "nothing is rounded", exact, "return nanos{int64(ns), part}\n", "return nanos{int64(ns), 0 * part}\n", model, sense, "./core/gateway/quota TestRateIsExactForACentury$"),
		one("quota time goes backwards", "time never decreases", of, "q.latest = max(now, q.latest)\n\tf := &q.asked", "q.latest = now\n\tf := &q.asked", model, "./core/gateway/quota TestRuleTranscript$"),
		one("shadow rule rejects", "a shadow rule does not reject", of, "case g.Shadow:\n\t\t\tv.Shadow", "case g.Shadow && false:\n\t\t\tv.Shadow", model, "./core/gateway/quota TestRuleTranscript$"),
		one("request larger than the burst is rejected", "a large request is admitted when the burst is full", "core/gateway/quota/rule.go", "if g.full.less(cost) {", "if false {", model, "./core/gateway/quota TestDebtIsPaidBack$"),
		one("sweep visits the same rows", "a sweep reaches every row", "core/gateway/quota/counters.go", "if c.sweepAt++; int(c.sweepAt) >= places {", "if c.sweepAt = 1; int(c.sweepAt) >= places {", model, "./core/gateway/quota TestRonGateForgedPeer$", "./core/gateway/quota TestSweepRemovesIdleRows$"),
		one("subjects without a row are not counted", "subjects without a row share one counter", of, "case sharedRow, ruleRow:\n\t\tq.common[rule] = end\n", "case ruleRow:\n\t\tq.common[rule] = end\n\t\treturn\n\tcase sharedRow:\n", model, "./core/gateway/quota TestRonGateForgedPeer$"),
		one("quota of one route counts all routes", "a route rule counts its route", of, "\t\t\trules &^= 1 << i\n", "", model, "./core/gateway/quota TestRouteTranscript$", transcripts),
		one("quota of a route does not count", "a route has one counter", of, "case sharedRow, ruleRow:\n\t\tq.common[rule] = end\n", "case sharedRow:\n\t\tq.common[rule] = end\n\t\treturn\n\tcase ruleRow:\n", model, "./core/gateway/quota TestRouteTranscript$", transcripts),
		one("route of a request is not passed", "a route rule counts its route", "core/node/admission.go", ", Route: in.Route}", "}", transcripts, "./core/node TestTranscripts/quotas"),
		alone("only the wiring knows the number of a route", one("quota counts the next route", "max_rps", "cmd/macronode/internal/settings/policy.go", "uint16(httpapi.Endpoints() + is.route[at])", "uint16(httpapi.Endpoints() + is.route[at] + 1)", "./cmd/macronode/internal/cli TestRouteQuota$")),
		one("instance admits a nanosecond too early", "pacing is exact", "core/gateway/quota/instance.go", "return at.Add(longest), rule", "return at.Add(longest - 1), rule", model, "./core/gateway/quota TestAdmitTimeIsALowerBound$", "./core/gateway/quota TestInstancePacesTheQueue$"),
		one("additional bytes are not charged to the instance", "undeclared bytes are charged to the instance too", of, "q.pace(now, bytes, q.bytes)\n", "q.pace(now, 0, q.bytes)\n", model, "./core/gateway/quota TestInstancePacesTheQueue$"),
		one("part is not charged", "a body is charged as it streams", tabs, "\tvar reported Result\n\tq.charge(&t.caller, &reported)\n", "", model, "./core/gateway/quota TestPacedBodiesStayWithinRate$", stream),
		one("part is charged twice", "a body is charged as it streams", tabs, "\tq.charge(&t.caller, &reported)\n", "\tq.charge(&t.caller, &reported)\n\tq.owe(&t.caller, bytes, t.common)\n", model, stream),
		one("unused bytes are not given back", "unused bytes are given back", tabs, "q.giveBack(t, q.bytes, t.had-bytes)", "_ = t.had", model, stream),
		one("undo gives back twice", "undo gives back once", tabs, "\tq.giveBack(t, 1<<MaxRules-1, t.had)\n", "\tq.giveBack(t, 1<<MaxRules-1, t.had)\n\tq.giveBack(t, 1<<MaxRules-1, t.had)\n", model, "./core/gateway/quota TestUndoRestoresEverything$"),
		one("held bytes block other requests", "a waiting part delays no small request", of, "_, wait = g.take(q.free(i, used), cost)", "_, wait = g.take(used, cost)", model, stream),
		one("granted bytes stay in the sum of held bytes", "G6", "core/gateway/quota/held.go", "\t\tq.heldOf[g.Scope].remove(t.caller.key(g.Scope), g.slot, t.held)\n", "", model, stream),
		one("rule with the most left is reported", "the rule with the largest used part is reported", of, "(reported < 0 || lessOf(", "(reported < 0 || !lessOf(", model, "./core/gateway/quota TestRuleTranscript$"),
		one("first rule that rejects is reported", "RetryAfter is sufficient", of, "case wait > longest:", "case refuses < 0:", model, "./core/gateway/quota TestRuleTranscript$"),
	}
}

// upstreams are bugs of endpoints and retries.
func upstreams() []Mutant {
	const pick, report, breaker, counts, budget = "core/gateway/upstream/upstream.go", "core/gateway/upstream/attempts.go", "core/gateway/upstream/breaker.go", "core/gateway/upstream/attempt_counts.go", "core/gateway/upstream/budget.go"
	const model, reported, room = "./core/gateway/upstream TestMatchesModel", "./core/gateway/upstream TestTranscripts", "./core/gateway/upstream"
	const line, lines, kept = "adapters/proxy/h1conn.go", "adapters/proxy/h1pool.go", "only a connection that was kept shows it"
	return []Mutant{
		alone("only a report without a reply shows it", one("report keeps its slot", "a report has no reply", "adapters/loop/upstream_client.go", "\tif s.noReply {", "\tif false {", "./adapters/loop TestEachQueryGetsItsReply$")),
		alone(kept, one("closed connection is reused", "a kept connection is checked before use", lines, "< idleConnTimeout && l.isUsable()", "< idleConnTimeout", "./adapters/proxy TestIdleConnectionIsCheckedBeforeUse$")),
		alone(kept, one("closed kept connection counts as a failure", "a read is repeated on a new connection", line, "err == nil || begun || !l.isReused ||", "err == nil || begun || true ||", "./adapters/proxy TestClosedIdleConnectionIsReplaced$")),
		alone(kept, one("response of another request is read", "one response per request", line, " && b.conn.reader.Buffered() == 0", "", "./adapters/proxy TestClosingConnectionIsNotReused$")),
		alone(kept, one("kept connections have no limit", "kept connections are bounded", lines, "len(s.idle) >= maxIdlePerEndpoint || ", "", "./adapters/proxy TestH1PoolLimits$")),
		one("finished attempt stays counted", "U1", report, "\t\tm.leaveEndpoint(c)\n\t\tc.phase = waitingToRetry", "\t\tc.phase = waitingToRetry", model, reported),
		one("unhealthy endpoint is picked", "an unhealthy endpoint gets no request", pick, "!e.unhealthy && rank < best", "rank < best", model, reported),
		one("round robin does not advance", "round robin among equals", pick, "u.nextEndpoint = (at + 1) % MaxEndpoints", "u.nextEndpoint = 0", model, reported),
		one("POST is retried", "only idempotent methods are retried", report, "case !c.idempotent:", "case false:", model, reported, steps),
		one("request with a consumed body is retried", "no retry after the body was read", report, "case in.BodyConsumed:", "case false:", model, reported, steps),
		one("retry after the response started", "a started response is not repeated", report, "case in.ResponseStarted:", "case false:", model, reported, steps),
		one("one attempt too many", "U2", report, "c.attempts >= r.MaxAttempts", "c.attempts > r.MaxAttempts", model, reported, steps),
		one("deadline is reported as max_attempts", "a reason for no retry", report, "on.NoRetry = event.NoRetryDeadline\n\tcase !c.idempotent", "on.NoRetry = event.NoRetryAttempts\n\tcase !c.idempotent", model, reported),
		one("ejected endpoint is not reported", "the use of an ejected endpoint is reported", pick, "at, m.endpointOf(c).ejections[c.callers].ejected", "at, false", model, reported),
		one("retry costs no budget", "U3", budget, "b.saved -= retryCost", "b.saved -= 0", reported, "./core/gateway/upstream TestRetriesStayWithinBudget$", steps),
		one("half-open breaker admits all", "U4", pick, "b.inFlight >= u.rules.HalfOpenInFlight", "false", model, reported, steps),
		one("half-open limit is the number of successes", "envoy-38338", pick, "b.inFlight >= u.rules.HalfOpenInFlight", "b.inFlight >= u.rules.HalfOpenSuccesses", model, reported),
		one("number of successes is the half-open limit", "envoy-8337", breaker, "b.successes >= r.HalfOpenSuccesses", "b.successes >= r.HalfOpenInFlight", model, reported),
		one("failure of an old epoch opens the circuit", "results count in their epoch", report, "recordFailure(now, r, c.epoch, c.caller)", "recordFailure(now, r, g.breaker.epoch, c.caller)", model, reported),
		one("success of an old epoch closes the circuit", "results count in their epoch", breaker, "\tif b.epoch != epoch {\n\t\treturn\n\t}\n", "", reported, room),
		one("circuit stays open", "U5", report, "\tm.setDue(b.openUntil)\n", "", model, reported),
		one("anonymous failures open the circuit of all", "anonymous failures take no upstream from callers with a key", pick, "&m.upstreams[c.upstream].groups[c.callers]", "&m.upstreams[c.upstream].groups[0]", model, reported, steps),
		one("anonymous failures eject for all", "anonymous failures take no endpoint from callers with a key", report, "m.groupOf(c), &m.endpointOf(c).ejections[c.callers]", "m.groupOf(c), &m.endpointOf(c).ejections[0]", model, reported),
		one("request without a key counts as authenticated", "anonymous failures take no upstream from callers with a key", "core/event/upstream.go", "if c == types.ClassAnon {", "if c == types.NumClasses {", "./cmd/macronode/internal/cli TestAnonymousFailuresSpareAuthenticated$", "./adapters/proxy TestGroupOfCallersIsPicked$"),
		one("ticket of an earlier call is accepted", "a ticket has one use", pick, "types.NewTicket(t.Slot(), c.generation) == t", "true", model, room),
		one("an open breaker lets attempts through", "while a breaker is open nothing is sent", pick, "circuit == event.CircuitOpen {\n\t\tparts.NoEndpoint", "circuit == event.CircuitOpen && b.openFor(now) > u.rules.MaxBreakerOpenFor {\n\t\tparts.NoEndpoint", model, reported, steps),
		one("a breaker opens for few failures", "a breaker opens after the configured failures", counts, "all.attempts < uint64(r.BreakerMinAttempts) || ", "", model, reported, steps, sim),
		one("attempts of one caller open the circuit", "one caller takes no upstream from others", counts, "if !others.exceed(r) || others.attempts == 0 && common.attempts > 0 {", "if others.attempts > all.attempts {", model, reported, steps, sim, "./core/gateway/upstream TestOneCallerOpensNoCircuitForOthers$"),
		alone("only a transcript has that many callers for certain", one("caller counted apart hides the others", "one caller takes no upstream from others", counts, " || others.attempts == 0 && common.attempts > 0", "", reported)),
		one("caller that is alone opens the circuit for all", "one caller takes no upstream from others", breaker, " || b.counts.isOfOneCaller()", "", model, reported, steps, sim, "./core/gateway/upstream TestOneCallerOpensNoCircuitForOthers$", "./cmd/macronode/internal/cli TestFailuresOfAPeerSpareOthers$"),
		one("failed trial request of a caller opens the circuit for all", "one caller takes no upstream from others", breaker, "forOne := b.state == event.CircuitHalfOpen || ", "forOne := ", model, reported, steps, sim, "./core/gateway/upstream TestFailingCallerStopsNoTrialRequests$"),
		one("requests of all callers count as of one", "one caller takes no upstream from others", "core/event/upstream.go", "return CallerID(f.ID)", "return 0", "./cmd/macronode/internal/cli TestFailuresOfATenantSpareOthers$", "./cmd/macronode/internal/cli TestFailuresOfAPeerSpareOthers$", "./adapters/proxy TestGroupOfCallersIsPicked$"),
	}
}

// forwarded are bugs of what passes through the gateway: bytes that quotas permit, and credentials.
func forwarded() []Mutant {
	return []Mutant{
		alone("one test has a quota that permits a part", one("permitted bytes of a response wait for the rest", "what a quota permits is sent at once", "adapters/proxy/response.go", "took, why := c.takeQuota(n)", "took, why := n, c.waitForQuota(n)", "./adapters/proxy TestPermittedBytesAreSentAtOnce$")),
		alone("one test has a quota that does not decide", one("permitted bytes are taken only with the rest", "what a quota permits is sent at once", "adapters/httpapi/meter.go", "k.reserveBytes(n-took, took > 0)", "k.reserveBytes(n-took, false)", "./adapters/httpapi TestPermittedBytesAreTaken$")),
		alone("one test has a caller that does not wait", one("reservation without a caller blocks the next one", "what a quota permits is sent at once", "adapters/loop/admission.go", "if !p.reserves(t) && !g.Reserve(t, bytes) {", "if !g.Reserve(t, bytes) {", "./adapters/loop TestReservationOutlivesItsCaller$")),
		one("API key is forwarded", "no upstream sees an API key", "adapters/httpapi/proxy_route.go", "if !slices.ContainsFunc(before, bearsKey) {", "if true {", "./adapters/httpapi TestKeysAreHidden$", "./adapters/httpapi TestProxyRoutes$"),
		alone("one table has Basic credentials", one("API key in Basic credentials is forwarded", "no upstream sees an API key", "adapters/httpapi/authorization.go", "if !strings.EqualFold(scheme, \"Basic\") {", "if scheme != header {", "./adapters/httpapi TestKeysAreHidden$")),
		alone("one table has every spelling", one("API key in an unusual credential is forwarded", "no upstream sees an API key", "adapters/httpapi/authorization.go", "_, after, found := strings.Cut(text, keyPrefix)", "after, found := strings.CutPrefix(text, \"Bearer \"+keyPrefix)", "./adapters/httpapi TestKeysAreHidden$")),
	}
}
