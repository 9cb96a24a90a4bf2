package mutants

// gateway are bugs of who is let in, whose turn it is, and who has had enough.
func gateway() []Mutant {
	const (
		fair, admit, arrive, gate, in = "core/gateway/drr/drr.go", "core/gateway/admission/admission.go", "core/node/admission.go", "adapters/loop/gate.go", "adapters/httpapi/arrive.go"

		turns, turnsTwin = "./core/gateway/drr TestStory$", "./core/gateway/drr TestAgrees$"
		house, houseTwin = "./core/gateway/admission TestStory$", "./core/gateway/admission TestAgrees$"
		told             = "./core/node TestEveryAdmitGetsDecision$"
		door             = "./adapters/httpapi TestArrive$"
		parts, bodies    = "core/gateway/admission/stream.go", "./core/node TestTranscripts/^stream$"
	)
	return []Mutant{
		one("the turn stays with who comes back", "k8s-95259: whoever waits is served", fair, "if name.Class == q.turn {", "if false {", turnsTwin, "./core/gateway/drr TestNobodyStarves$", sim),
		one("no weight is a little weight", "k8s-134196: weight 0 admits nothing", fair, "case q.limits.Weights[of] == 0:\n\t\treturn ErrWeight", "case false:\n\t\treturn ErrWeight", turnsTwin, houseTwin),
		one("who is idle saves", "F3", fair, "c.deficit, c.visited = 0, false", "c.visited = false", turnsTwin, houseTwin, sim),
		one("a flow is paid at each look", "F4", fair, "\t\t\tc.begun = true\n", "", turns, turnsTwin, sim),
		one("turns cost nothing", "classes by their weights", fair, "c.deficit -= cost\n", "", turns, "./core/gateway/drr TestShares$", sim),
		one("a newcomer goes first", "flows take turns", "core/gateway/drr/ring.go", "f.prev, f.next = first.prev, r.first\n", "f.prev, f.next = first.prev, r.first\n\tdefer func() { r.first = at }()\n", turns, turnsTwin, sim),
		one("one more than fits", "F2", fair, "case q.queued >= q.limits.Queue:", "case q.queued > q.limits.Queue:", turns, turnsTwin, sim),
		one("a flow may fill its class", "F2", fair, "case waits && int(q.flows[at].queued) >= q.limits.Flow, q.limits.Flow == 0:", "case false:", turns, turnsTwin, sim),
		one("what was charged too much is kept", "corrected at settle", fair, "w.deficit = max(w.deficit, min(w.deficit+min(by, most), 2*most))", "_ = by", turns, turnsTwin),

		one("permit given back twice", "A1: given back exactly once", admit, "\tr.state = free\n", "", house, houseTwin, sim),
		one("an earlier use gives it back", "a stale word changes nothing", admit, "if r.ticket != t || r.state == free {\n\t\treturn", "if r.state == free {\n\t\treturn", house, houseTwin, told),
		one("kept for ever", "a ticket nobody settles is reclaimed", admit, "\t\t\tr.state = lost\n\t\t\ta.queues[r.facet].Return(r.flow)\n", "\t\t\tr.state = lost\n", house, houseTwin, sim),
		one("waits for ever", "a queued request waits at most so long", admit, "until: now.Add(min(a.limits.Wait, in.TimeLeft/4))", "until: now.Add(in.TimeLeft)", house, houseTwin, sim),
		one("a quarter of nothing", "never more than a quarter of its deadline", admit, "min(a.limits.Wait, in.TimeLeft/4)", "a.limits.Wait", houseTwin, sim),
		one("a permit of another facet", "a plane that hangs keeps no permit of another", admit, "		if a.queues[f].Ready() {", "\t\tif a.queues[types.FacetWallet].Ready() && f >= 0 {", house, houseTwin, sim),
		one("route without an end", "max_inflight", admit, "int(a.routes[in.Route]) >= a.limits.Routes[in.Route]", "false", house, houseTwin, stories, sim),
		one("given up midway, and still in line", "a part is of who has a permit", admit, "\t\ta.drop(t.Slot())\n", "", "./core/gateway/admission TestStream$", houseTwin),
		one("refused late, and charged", "who is refused after all has used nothing", arrive, "\t\t\tn.quota.Undo(now, t.Slot())\n\t\t\tn.rejectAdmission(event.Decision{Ticket: t, Reason: event.RejectQueueTimeout", "\t\t\tn.rejectAdmission(event.Decision{Ticket: t, Reason: event.RejectQueueTimeout", "./core/node TestTranscripts/^stream$", told),
		alone("a slot that changes hands within a turn is a race else", one("another's part", "no word is taken for that of a later use", gate, "case p.in.Ticket != v.Ticket, p.over:", "case false:", "./adapters/loop TestALateWordIsNobodys$")),
		alone("one test has fields that are none behind a body", one("any field is a trailer", "what frames and routes comes before the body", "adapters/proxy/header.go", "\t\t\tdelete(trailer, name)\n", "", "./adapters/proxy TestTrailersThatAreNone$")),
		alone("only who announces nothing sees it", one("a trailer that nobody announced is any", "what frames and routes comes before the body", "adapters/proxy/answer.go", "if behind(res.Trailer, res.Header); len", "if len", "./adapters/proxy TestTrailersThatAreNone$")),
		one("an answer that nobody asked for", "each part of either body is asked for", "adapters/proxy/answer.go", "if !t.meter.May(n) {", "if false {", "./adapters/proxy TestBothBodiesAreMetered$", "./adapters/proxy TestABodyIsHeldBack$"),

		one("refused and charged", "all quotas are charged, or none", arrive, "if v.Reason = n.rejectReason(now.Mono, in); v.Reason == event.Admitted {\n\t\tn.chargeQuotas(now.Mono, in, &v)\n\t}", "v.Reason = n.rejectReason(now.Mono, in)\n\tif was := v.Reason; true {\n\t\tn.chargeQuotas(now.Mono, in, &v)\n\t\tv.Reason = max(was, v.Reason)\n\t}", stories, sim),
		one("the instance refuses at the door", "an instance's quota is shared by turns", arrive, "if n.admission.Alone(in) {", "if false {", "./core/node TestSmallFlowWaitsLittle$", sim),
		one("turn longer than the wait", "a class of higher weight is not kept out by a slow instance quota", "core/gateway/quota/turn.go", "roundTime(rules, turns, quantum, least) > wait", "false", "./core/node TestStrangersDoNotUseUpTheInstanceQuota$", "./cmd/macronode TestSlowInstanceQuotaShortensTurns$"),
		one("turns at hand are counted whole", "a request is not rejected for turns that are over", "core/gateway/drr/drr.go", "if of != q.turn || !c.visited {", "if true {", "./core/gateway/drr TestAheadIsWhatIsServedBefore$", "./core/node TestStrangersDoNotUseUpTheInstanceQuota$"),
		one("one patience for all classes", "who asks for less than the part of his class is not refused for others", arrive, "most := n.config.maxPacingDelay(in.Class)", "most := n.config.MaxPacingDelay", stories, sim),
		one("the pace is no pace", "quota of the instance", arrive, "request = at <= now", "request = at < quota.Never", stories, sim),
		one("drain that lets them wait", "D2: nothing new from draining on", "core/node/node.go", "\t\tn.rejectWaiting(now.Mono, out)\n", "", stories, sim),
		one("nobody is told that he is late", "a queued request waits at most so long", "core/node/node.go", "\tn.expireWaiting(now.Mono, out)\n", "", stories, told, sim),
		one("refused, and the others wait on", "N6: whom the time lets go goes", arrive, "\t\tn.rejectAdmission(v, out)\n\t\tn.grantPermits(now.Mono, out)\n", "\t\tn.rejectAdmission(v, out)\n", "./core/node TestTranscripts/quotas$", sim),
		one("streamed, and the others wait on", "N6: whom the time lets go goes", "core/node/reserve_bytes.go", "\tn.reservePart(now, in, out)\n\tn.grantPermits(now, out)\n", "\tn.reservePart(now, in, out)\n", "./core/node TestTranscripts/quotas$", sim),
		alone("few drains go on without a tick, and a part waits then", one("drained, and a part waits on", "N6: whom the time lets go goes", arrive, "n.admission.Evict()\n\t\tif !ok {\n\t\t\tn.grantPermits(now, out)\n", "n.admission.Evict()\n\t\tif !ok {\n", bodies)),
		one("bodies before all who come", "requests and parts of bodies take turns", parts, "\ta.passed = true\n", "", bodies, sim),
		one("a part before its time", "parts of bodies are paced by the instance", arrive, "n.admission.Lined() > 0 && n.quota.NextPart(now) <= now", "n.admission.Lined() > 0", bodies, sim),
		one("a part that the instance does not see", "parts of bodies are paced by the instance", "core/node/reserve_bytes.go", "\tn.quota.ChargeInstancePart(now, t.Slot(), bytes)\n", "", bodies, sim),
		one("lined for ever", "who waits for his turn for longer than he has patience is told so", "core/node/reserve_bytes.go", "now.Add(n.admission.Patience(t)))", "now.Add(1<<40))", bodies, sim),
		one("more bodies, more turns", "callers take turns, not bodies", parts, "a.line.Offer(r.flow, place,", "a.line.Offer(types.Flow{Class: r.flow.Class, ID: uint64(place)}, place,", "./core/gateway/admission TestStream$", sim),
		one("lined in vain, and charged", "who is refused after all has used nothing", arrive, "\t\t\tn.quota.ReleasePart(now, t.Slot(), bytes)\n", "\t\t\tn.quota.GrantPart(t.Slot())\n", bodies, "./chaos/trace TestLegal$"),
		alone("two words for one slot stop the loop, and all that runs it", one("asked again before the word has come", "one word a slot is on its way", gate, "p.in.Ticket != t || p.over || p.asks", "p.in.Ticket != t || p.over", "./adapters/loop TestNobodyHearsAnothersPart$")),
		one("due when nobody is", "Due", "core/node/due.go", "\tearlier(n.nextPaced())\n", "", stories, sim),

		one("who leaves keeps the slot", "a slot comes back", gate, "\tg.settle(p, event.Finish{Ticket: v.Ticket})\n", "", "./adapters/loop TestGate$", sim),
		one("a slot is free before the node says so", "no slot is used twice at once", gate, "\tp.over, p.end = true, end\n", "\tp.over, p.end = true, end\n\tg.empty[p.class] <- end.Ticket.Slot()\n", "./adapters/loop TestGate$", "./adapters/loop TestGateIsFull$"),
		one("a guess is somebody's", "nobody unauthenticated moves a tenant's state", in, "match && found {", "match || found {", door, "./adapters/httpapi TestKeys|TestWho|TestArrive"),
		one("a dead key has a class", "class by a verified credential", in, "case k.key.ID == 0, k.over:", "case k.key.ID == 0:", door, "./adapters/httpapi TestArrive|TestExpired|TestRevoked"),
		alone("only what is said of peers shows it", one("any word about a peer is believed", "ron-gate forged peer", in, "k.trusts(a); {", "true; {", "./adapters/httpapi TestPeer$")),
		alone("only an answer that is cut shows it", one("a call that failed keeps its permit", "given back exactly once, abort included", "adapters/httpapi/httpapi.go", "\t\tk.leave()\n", "\t\tif bug == nil {\n\t\t\tk.leave()\n\t\t}\n", "./adapters/httpapi TestBeyondIsCut$")),
		alone("one test asks a house that is shut", one("who is refused by the end was admitted", "from a failure to its cause by one command", in, "\tk.of = k.class()\n\tk.verdict =", "\t_ =", "./adapters/httpapi TestBeyond$")),
		alone("only a caller who leaves sees it", one("who leaves is late", "a client that has left is gone", in, "\t\tk.code = Gone\n\t\tpanic(http.ErrAbortHandler)", "\t\treturn problem(event.Timeout)", "./adapters/httpapi TestWhoLeavesBeforeHisTurn$")),
		alone("only a caller who leaves sees it", one("who left was let in", "from a failure to its cause by one command", "cmd/macronode/admission.go", "if d.Code == httpapi.Gone {", "if false {", "./cmd/macronode TestWhoLeftWasNotLetIn$")),
		one("who guesses paths is let in for nothing", "what is no operation is admitted like all else", "adapters/httpapi/httpapi.go", "if !k.came && (", "if false && (", "./adapters/httpapi TestBeyond$", "./adapters/httpapi TestEverybodyIsSettled$"),
		one("who is cut by the end has left", "from a failure to its cause by one command", "adapters/proxy/outcome.go", "errors.Is(context.Cause(r.Context()), p.config.Cut)", "false", "./adapters/proxy TestCoursesOfTheCut$", "./cmd/macronode TestAStreamIsCutByTheEnd$"),
		one("one is sick for another", "which endpoints are sick is told", "core/gateway/upstream/check.go", "v.UnhealthyBits |= 1 << n", "v.UnhealthyBits |= 1 << v.Unhealthy >> 1", "./core/gateway/upstream TestAgrees$", "./core/gateway/upstream TestWhichAreSick$"),
		alone("the other test waits until it is told", one("sick, and nobody is told", "from a failure to its cause", "cmd/macronode/checks.go", "\t\te.changes++\n", "", "./cmd/macronode TestTheSickAreTold$")),
		one("why there was no other try is lost", "from a failure to its cause by one command", "adapters/proxy/outcome.go", "t.leg.Halt = on.NoRetry", "_ = on", "./adapters/proxy TestCourses$", "./cmd/macronode TestFromAFailureToItsCause$"),
		alone("the others never fill the queue", one("lines without a bound", "no queue grows without a limit", "adapters/accesslog/access.go", "room := len(l.queue) < Room", "room := true", "./adapters/accesslog TestNobodyWaits$")),
	}
}

// pages are bugs of who may use a route from a browser.
func pages() []Mutant {
	const of, way = "adapters/proxy/cors.go", "adapters/httpapi/beyond.go"
	const table, twin, fields = "./adapters/proxy TestCORS$", "./adapters/proxy TestCORSAgrees$", "./adapters/proxy TestCORSFields$"
	return []Mutant{
		one("any origin is the one that is named", "an origin is compared whole", of, "case slices.Contains(c.Origins, said[0]):", "case true:", table, twin, fields),
		one("who has no name is any", "null is refused unless it is named", of, "case c.any && said[0] != \"null\":", "case c.any:", table, twin),
		one("credentials without a word", "a page reads with credentials what says so", of, "\tif c.Credentials {\n\t\th[", "\tif false {\n\t\th[", table, twin, fields),
		one("wild with credentials", "no wildcard with credentials", of, "c.Credentials && slices.Contains(list, \"*\")", "slices.Contains(list, \"\")", "./adapters/proxy TestCORSIsNamed$", "./adapters/proxy TestCORSIsNamed"),
		one("who may is said twice", "an upstream's own fields are not doubled", of, "return strings.HasPrefix(name, \"Access-Control-\")", "return name == \"\"", fields, table),
		one("a store gives one origin what is another's", "Vary: Origin", of, "if said := to[\"Vary\"]; !listed(said, \"Origin\")", "if said := to[\"Vary\"]; false && !listed(said, \"Origin\")", fields, "./adapters/proxy TestCORSFields"),
		alone("one table has every wish", one("h2c to a service", "nothing passes by what is decided about requests", "adapters/proxy/tunnel.go", "case \"h2c\", \"h2\", \"http\", \"tls\":", "case \"h2\", \"http\", \"tls\":", "./adapters/proxy TestIgnoredUpgrades$")),
		one("another protocol behind a body", "a request ends in one place", "adapters/proxy/tunnel.go", "len(said) != 1 || t.body != nil || ", "len(said) != 1 || ", "./adapters/proxy TestIgnoredUpgrades$", "./adapters/proxy TestNoTunnelBehindABody$"),
		alone("one table asks for no host", one("no host by HTTP/2", "a request is to one host", "adapters/httpcheck/httpcheck.go", "case r.Host == \"\" && r.ProtoAtLeast(1, 1):", "case r.Host == \"\" && r.ProtoMajor > 2:", "./adapters/proxy TestNoHost$")),
		alone("one table has both", one("a host that is said twice", "a request is to one host", "adapters/proxy/header.go", ", \"Host\":", ":", "./adapters/proxy TestNoHost$")),
		alone("one table has answers that are the last", one("fields of a connection that ends", "fields of one connection end there", "adapters/proxy/line.go", "if res.Close && res.ProtoAtLeast(1, 1) {", "if res.Close && !res.ProtoAtLeast(1, 1) {", "./adapters/proxy TestLastFields$")),
		alone("one table has answers that are the last", one("fields of a header that comes in parts", "fields of one connection end there", "adapters/proxy/line.go", "l.said = append(l.said, p[:n]...)", "l.said = append(l.said, p[:0]...)", "./adapters/proxy TestLastFields$")),
		alone("one service has it", one("a blank before a colon", "an answer has one framing", "adapters/proxy/line.go", "if strings.IndexByte(name, ' ') >= 0 {", "if name == \" \" {", "./adapters/proxy TestABlankBeforeTheColon$")),
		alone("one table has every spelling of a host", one("a dot behind a name is another name", "a host's route is its route, however the host is spelled", "adapters/httpcheck/host.go", "	name = strings.TrimSuffix(name, \".\")\n", "", "./adapters/proxy TestMatch$")),
		alone("one table has every spelling of a host", one("a host with two ports", "a host's route is its route, however the host is spelled", "adapters/httpcheck/host.go", "return toLower(name), isIPv6(name)", "return toLower(name), true", "./adapters/proxy TestMatch$")),
		one("a preflight by another route", "a preflight is of the route that the request would take", "adapters/proxy/route.go", "p.find(host, path, method, func", "p.find(host, path, r.Method, func", table, "./adapters/proxy TestCORS"),
		one("a preflight wants a key", "a browser shows none to a preflight", way, "if way.Preflight {", "if false {", "./adapters/httpapi TestAPreflightIsAStrangers$", "./cmd/macronode TestARouteHasItsCORS$"),
		one("a preflight goes free", "a preflight is admitted as anybody is", way, "a browser sends none\n\t\treturn k.arrive()", "a browser sends none\n\t\treturn nil", "./adapters/httpapi TestAPreflightIsAStrangers$", "./cmd/macronode TestARouteHasItsCORS$"),
		one("a refusal that no page can read", "problems carry CORS, too", way, "\tif way.Head != nil {", "\tif false {", "./adapters/httpapi TestRefusalsHaveAHead$", "./cmd/macronode TestARouteHasItsCORS$"),
	}
}

// bombs are bugs of what is compressed.
func bombs() []Mutant {
	const of, sent, onward = "adapters/inflate/inflate.go", "adapters/proxy/inflated.go", "./adapters/proxy TestInflate$"
	const went, cut, hostile = "./adapters/inflate TestBombs$", "./adapters/inflate TestCutAnywhere$", "./adapters/httpapi TestHostileRequests$"
	return []Mutant{
		one("ratio not held", "at most 10 times what was read and 64 KiB", of, "min(Ratio*r.from.read+Free, r.limit.Most)", "r.limit.Most", went, "./adapters/inflate TestTheRatio", hostile),
		one("no end to what comes out", "an absolute cap", of, "min(Ratio*r.from.read+Free, r.limit.Most)", "Ratio*r.from.read + Free", went, "./adapters/inflate TestBombs"),
		one("cut short is whole", "never a truncated success", of, "\t}\n\treturn ErrBroken\n}", "\t}\n\treturn io.EOF\n}", cut, hostile, "./fuzz FuzzInflate"),
		one("a bomb is as much of it as fits", "never a truncated success: envoy-21647", of, "r.err = ErrLarge\n\t\t\treturn 0, r.err", "r.err = io.EOF\n\t\t\treturn 0, r.err", went, "./adapters/inflate TestTheRatio", hostile),
		one("memory by wish", "the window is bounded", of, "zstd.WithDecoderMaxWindow(r.limit.Window)", "zstd.WithDecoderMaxWindow(1<<31)", went, hostile),
		one("nothing at all is a body", "never a truncated success", of, "errors.Is(err, io.EOF) && r.from.read > 0", "errors.Is(err, io.EOF)", cut, "./adapters/inflate TestCutAnywhere"),
		one("one coding in another", "stacked encodings are refused", of, "\tcase len(said) > 1:\n\t\treturn Plain, ErrCoding\n", "", "./adapters/inflate TestCodings$", hostile),
		one("a bomb that is sent on is a bad request", "413: body or ratio", sent, "i.failed.CompareAndSwap(0, uint32(event.PayloadTooLarge))", "i.failed.CompareAndSwap(0, uint32(event.BadRequest))", onward, "./adapters/proxy TestInflate"),
		one("inflated, and said to be as it came", "Content-Encoding is rewritten", sent, "\"Content-Encoding\", \"Content-Length\"", "\"Content-Length\"", onward, "./cmd/macronode TestARouteInflates$"),
		one("inflated, and as long as it came", "Content-Length is rewritten", sent, "return t.inflated, -1", "return t.inflated, t.r.ContentLength", onward, "./cmd/macronode TestARouteInflates$"),
		alone("each flow asks for less than its share elsewhere", one("one peer has all decompressors", "a flow has its share of the decompressors", sent, "|| i.flows[by] >= maxInflatersPerFlow", "", "./adapters/proxy TestInflatersAreShared$")),
		alone("only who asks for one too many sees it", one("a place for ever", "what is taken is given back", sent, "\t\ti.places.give(i.of, i.by)\n", "", "./adapters/proxy TestInflatersAreFew$")),
		one("a client that leaves has ended", "never a truncated success", of, "\tcase r.from.err != nil:\n\t\treturn r.from.err\n", "", "./adapters/inflate TestTheSourceFails$", "./adapters/inflate TestTheSource"),
	}
}

// starts are bugs of upstreams that must be well once.
func starts() []Mutant {
	const of, told = "core/lifecycle/readiness/readiness.go", "./core/node TestTranscripts/start"
	const table, twin = "./core/lifecycle/readiness TestStory$", "./core/lifecycle/readiness TestAgrees$"
	return []Mutant{
		one("ready without its upstream", "strict boot", of, "if r.awaitedUpstreams &= these; r.awaitedUpstreams == 0 {", "if r.awaitedUpstreams &= these; true {", table, twin, told),
		one("one of them is enough", "strict boot: each of them", of, "if r.awaitedUpstreams &= these; r.awaitedUpstreams == 0 {", "if these != r.awaitedUpstreams {\n\t\tr.awaitedUpstreams = 0\n\t}\n\tif r.awaitedUpstreams == 0 {", table, twin),
		one("any check is a good one", "strict boot: its upstream is well", "core/node/node.go", "if in.Healthy {", "if true {", told, stories),
		one("waits for what is gone", "a change is not waited for", "core/node/policy.go", "\tn.readiness.AwaitUpstreams(configuredUpstreams(n.config.Upstreams))\n", "", told, stories),
	}
}

// quotas are bugs of who has had how much.
func quotas() []Mutant {
	const (
		twin, sense = "./core/gateway/quota TestAgrees$", "./core/gateway/quota TestBounds$"
		of, exact   = "core/gateway/quota/quota.go", "core/gateway/quota/exact.go"
		tabs        = "core/gateway/quota/charge.go"
		stream      = "./core/node TestTranscripts/^stream$"
	)
	return []Mutant{
		one("busy row given away", "a newcomer takes a free row or an idle one", "core/gateway/quota/counters.go", "if c.taken(c.sweepAt) && c.idle(c.sweepAt, now) {", "if c.taken(c.sweepAt) {", twin, "./core/gateway/quota TestRonGateForgedPeer$", "./core/gateway/quota TestSweep$"),
		one("rate of nothing admits when idle", "k8s-134196", of, "wait := time.Duration(Never)", "wait := time.Duration(0)", twin, "./core/gateway/quota TestK8s134196$"),
		one("charged though another rule refused", "all rules are charged, or none", of, "\tcase v.RetryAfter > 0:\n", "\tcase v.RetryAfter > 0:\n\t\tq.charge(&who, &Result{})\n", twin, "./core/gateway/quota TestRefusedChangesNothing$", "./core/gateway/quota TestRules$"),
		one("rules of one subject share a counter", "kong-12003", of, "newGauge(r, slots[r.Scope])", "newGauge(r, 0*slots[r.Scope])", twin, "./core/gateway/quota TestKong12003$"),
		one("counter of nobody's key", "nobody without a key reads or writes one", of, "\t\trules &^= q.keyed\n", "", twin, "./core/gateway/quota TestStrangersChangeNothing$", "./core/gateway/quota TestRonGateForgedPeer$"),
		one("told to come a little early", "Retry is exact", exact, "return time.Duration(e.ns + 1)", "return time.Duration(e.ns)", twin, sense, "./core/gateway/quota TestLongRun$"),
		one("debt forgiven", "what is owed is not bounded by the burst", "core/gateway/quota/rule.go", "return smaller(after, g.most), wait", "return smaller(after, g.full), wait", twin, "./core/gateway/quota TestDebt$", "./core/gateway/quota TestPace$"),
		one("parts of a nanosecond lost", "nothing is rounded", exact, "return nanos{int64(ns), part}\n", "return nanos{int64(ns), 0 * part}\n", twin, sense, "./core/gateway/quota TestLongRun$"),
		one("time that goes back", "time does not go back", of, "q.latest = max(now, q.latest)\n\tf := &q.asked", "q.latest = now\n\tf := &q.asked", twin, "./core/gateway/quota TestRules$"),
		one("shadow that refuses", "a shadow refuses nobody", of, "case g.Shadow:\n\t\t\tv.Shadow", "case g.Shadow && false:\n\t\t\tv.Shadow", twin, "./core/gateway/quota TestRules$"),
		one("more than a burst never fits", "who says how much comes is not worse off", "core/gateway/quota/rule.go", "if g.full.less(cost) {", "if false {", twin, "./core/gateway/quota TestDebt$"),
		one("hand that does not go on", "the hand comes to every row", "core/gateway/quota/counters.go", "if c.sweepAt++; int(c.sweepAt) >= places {", "if c.sweepAt = 1; int(c.sweepAt) >= places {", twin, "./core/gateway/quota TestRonGateForgedPeer$", "./core/gateway/quota TestSweep$"),
		one("newcomers who count nothing", "those without a row share one counter", of, "case sharedRow, ruleRow:\n\t\tq.common[rule] = end\n", "case ruleRow:\n\t\tq.common[rule] = end\n\t\treturn\n\tcase sharedRow:\n", twin, "./core/gateway/quota TestRonGateForgedPeer$"),
		one("a route's quota is every route's", "a rule of a route counts what is asked of it", of, "\t\t\trules &^= 1 << i\n", "", twin, "./core/gateway/quota TestRoutes$", stories),
		one("a route that counts nothing", "one counter of a route, whoever asks", of, "case sharedRow, ruleRow:\n\t\tq.common[rule] = end\n", "case sharedRow:\n\t\tq.common[rule] = end\n\t\treturn\n\tcase ruleRow:\n", twin, "./core/gateway/quota TestRoutes$", stories),
		one("nobody says which route it is", "a rule of a route counts what is asked of it", "core/node/admission.go", ", Route: in.Route}", "}", stories, "./core/node TestTranscripts/quotas"),
		alone("which route a name is only the wiring says", one("a quota of the route beside", "max_rps", "cmd/macronode/admission.go", "uint16(httpapi.Endpoints() + is.route[at])", "uint16(httpapi.Endpoints() + is.route[at] + 1)", "./cmd/macronode TestARouteHasItsQuota$")),
		one("instance paced too early", "the pace is exact", "core/gateway/quota/instance.go", "return at.Add(longest), rule", "return at.Add(longest - 1), rule", twin, "./core/gateway/quota TestAfter$", "./core/gateway/quota TestPace$"),
		one("instance not charged for more", "what turned out to be more is the instance's too", of, "q.pace(now, bytes, q.bytes)\n", "q.pace(now, 0, q.bytes)\n", twin, "./core/gateway/quota TestPace$"),
		one("a part that nobody is charged for", "a body is charged as it streams", tabs, "\tvar told Result\n\tq.charge(&t.who, &told)\n", "", twin, "./core/gateway/quota TestStreamsAreWithin$", stream),
		one("a part charged twice", "a body is charged as it streams", tabs, "\tq.charge(&t.who, &told)\n", "\tq.charge(&t.who, &told)\n\tq.owe(&t.who, bytes, t.common)\n", twin, stream),
		one("what was not used is kept", "given back when it is settled", tabs, "q.giveBack(t, q.bytes, t.had-bytes)", "_ = t.had", twin, stream),
		one("given back twice", "given back once", tabs, "\tq.giveBack(t, 1<<MaxRules-1, t.had)\n", "\tq.giveBack(t, 1<<MaxRules-1, t.had)\n\tq.giveBack(t, 1<<MaxRules-1, t.had)\n", twin, "./core/gateway/quota TestGivenBack$"),
		one("what waits keeps out who comes", "a part that waits holds up no small request", of, "_, wait = g.take(q.free(i, used), cost)", "_, wait = g.take(used, cost)", twin, stream),
		one("bytes that are let go stay in the sum of held bytes", "G6", "core/gateway/quota/held.go", "\t\tq.heldOf[g.Scope].remove(t.who.key(g.Scope), g.slot, t.held)\n", "", twin, stream),
		one("the rule with the most left is told", "the rule that has used the largest part of its burst is told", of, "(told < 0 || lessOf(", "(told < 0 || !lessOf(", twin, "./core/gateway/quota TestRules$"),
		one("the first that refuses is told", "who comes when it was told is admitted", of, "case wait > longest:", "case refuses < 0:", twin, "./core/gateway/quota TestRules$"),
	}
}

// upstreams are bugs of where a request goes, and whether it is sent again.
func upstreams() []Mutant {
	const pick, report, breaker, budget = "core/gateway/upstream/upstream.go", "core/gateway/upstream/attempts.go", "core/gateway/upstream/breaker.go", "core/gateway/upstream/budget.go"
	const twin, told, room = "./core/gateway/upstream TestAgrees", "./core/gateway/upstream TestTranscripts", "./core/gateway/upstream"
	const line, lines, kept = "adapters/proxy/line.go", "adapters/proxy/lines.go", "only a connection that was kept shows it"
	return []Mutant{
		alone("only what is told without a question shows it", one("a word that keeps its slot", "what is told of a try waits for no answer", "adapters/loop/asks.go", "\tif s.nobody {", "\tif false {", "./adapters/loop TestAsks$")),
		alone(kept, one("asked over what has ended", "a kept connection is looked at before it is used", lines, "< keptFor && l.quiet()", "< keptFor", "./adapters/proxy TestQuiet$")),
		alone(kept, one("an end at the wrong moment is a failure", "a read is asked again over a new connection", line, "err == nil || begun || !l.used ||", "err == nil || begun || true ||", "./adapters/proxy TestKeptAndEnded$")),
		alone(kept, one("the next answer is somebody else's", "one answer to one request", line, " && b.line.in.Buffered() == 0", "", "./adapters/proxy TestLastWord$")),
		alone(kept, one("kept without a bound", "connections that are kept are bounded", lines, "len(s.kept) >= keptEach || ", "", "./adapters/proxy TestKeptBounds$")),
		one("call that nobody counts out", "U1", report, "\t\tm.leaveEndpoint(c)\n\t\tc.phase = waitingToRetry", "\t\tc.phase = waitingToRetry", twin, told),
		one("sick and asked", "a sick endpoint is asked nothing", pick, "!e.unhealthy && rank < best", "rank < best", twin, told),
		one("turns that never turn", "round robin among equals", pick, "u.nextEndpoint = (at + 1) % MaxEndpoints", "u.nextEndpoint = 0", twin, told),
		one("POST sent again", "only idempotent methods are retried", report, "case !c.idempotent:", "case false:", twin, told),
		one("half a body sent again", "no retry once a byte is gone", report, "case in.BodyConsumed:", "case false:", twin, told),
		one("said, and sent again", "what a client was told is not said twice", report, "case in.ResponseStarted:", "case false:", twin, told),
		one("a fourth try", "U2", report, "c.attempts >= u.rules.MaxAttempts", "c.attempts > u.rules.MaxAttempts", twin, told),
		one("late, and told as anything", "a failure that is not tried again says why", report, "on.NoRetry = event.NoRetryDeadline\n\tcase !c.idempotent", "on.NoRetry = event.NoRetryAttempts\n\tcase !c.idempotent", twin, told),
		one("out, and said to be well", "who is sent to an endpoint that is out is told so", pick, "at, m.endpointOf(c).ejected", "at, false", twin, told),
		one("retries for nothing", "U3", budget, "b.saved -= retryCost", "b.saved -= 0", told, "./core/gateway/upstream TestRetriesAreFew$"),
		one("half-open admits all", "U4", pick, "b.inFlight >= u.rules.HalfOpenInFlight", "false", twin, told),
		one("trials for floor", "envoy-38338", pick, "b.inFlight >= u.rules.HalfOpenInFlight", "b.inFlight >= u.rules.HalfOpenSuccesses", twin, told),
		one("floor for trials", "envoy-8337", breaker, "b.successes >= u.rules.HalfOpenSuccesses", "b.successes >= u.rules.HalfOpenInFlight", twin, told),
		one("a straggler opens it", "an epoch's tries tell of that epoch", report, "u.breaker.epoch == c.epoch && u.recordFailure(now)", "u.recordFailure(now)", twin, told),
		one("a straggler closes it", "an epoch's tries tell of that epoch", breaker, "\tif b.epoch != epoch {\n\t\treturn\n\t}\n", "", told, room),
		one("open for ever", "U5", report, "\t\tm.setDue(u.breaker.openUntil)\n", "", twin, told),
		one("another's ticket", "a ticket is of one use", pick, "types.NewTicket(t.Slot(), c.generation) == t", "true", twin, room),
	}
}
