package mutants

// operations are faults in what probes, scrapers and operators of a node rely on.
func operations() []Mutant {
	const admin = "adapters/adminapi/"
	return []Mutant{
		one("readyz needs a credential off loopback", "probes need nothing", admin+"adminapi.go", `"/readyz":           {http.MethodGet, probe,`, `"/readyz":           {http.MethodGet, scrape,`, "./adapters/adminapi TestWhoMayWhat$", "./adapters/adminapi TestProbesNeedNothing$"),
		alone("one test sends a Host beside Hosts", one("host names are not checked", "no page rebinds its name to the admin listener", admin+"origin.go", "return (isLocalHost(r.Host) || a.isKnownHost(r.Host)) && sameOrigin(r)", "return sameOrigin(r)", "./adapters/adminapi TestRebindingAndForeignPages$")),
		alone("one test has keys of all kinds", one("any key operates the node", "a key without scope admin is refused", "cmd/macronode/admin.go", "known.Scopes&event.MayAdmin != 0 && ", "", "./cmd/macronode TestAdminCredentials$")),
		alone("one table has what becomes of a trace", one("a trace that the gateway begins is not sampled", "no trace context, no traceparent: it would switch tracing off", "adapters/proxy/trace.go", "len(said) != 1 || !traced(said[0]) {\n\t\treturn \"\"", "len(said) != 1 || !traced(said[0]) {\n\t\treturn \"00-00000000000000000000000000000001-0000000000000001-00\"", "./adapters/proxy TestTrace$")),
		alone("one test sends request ids of all kinds", one("the service is sent another request id than the client", "one request id, up and down", "adapters/httpapi/beyond.go", `k.r.Header["X-Request-Id"], k.r.Header["X-Decision-Id"] = h["X-Request-Id"], h["X-Decision-Id"]`, `k.r.Header["X-Request-Id"] = h["X-Decision-Id"]`, "./adapters/httpapi TestRequestIDs$")),
		one("an upstream without a healthy endpoint is not reported", "status names upstreams that no request reaches", "core/node/node.go", "n.ready.Ail(words.NoEndpoint, n.beyond.Down() != 0)", "_ = words.NoEndpoint", "./core/node TestNoEndpointIsReported$", "./cmd/macronode TestNoHealthyEndpointIsShown$"),
		alone("one table has the parts of the traffic", one("a full disk takes the proxy out of the balancer", "readyz answers for parts of the traffic", admin+"routes.go", "case \"\", \"write\":\n\t\treturn s.Ready, true", "case \"\", \"write\", \"proxy\":\n\t\treturn s.Ready, true", "./adapters/adminapi TestReadiness$")),
		alone("the order of two goroutines decides which line is first", one("ready is logged by announce and by the sampler", "one line says that the node is ready", "cmd/macronode/life.go", "now == words.Ready && (before == words.Starting || !announced)", "now == words.Ready && !announced", "./cmd/macronode TestReadyIsLoggedByOneOfTwo$")),
		one("one peer holds all connections", "a peer has its share of the connections", "adapters/httpserver/peers.go", "case of != nil && share > 0 && of.open >= share:", "case false:", "./adapters/httpserver TestConnectionsAgree$", "./adapters/httpserver TestAPeerWhoseConnectionsAreBusyGetsNoMore$"),
		one("a busy connection gives way", "the longest idle connection gives way", "adapters/httpserver/httpserver.go", "\t\tc.of.becomes(c, false)\n", "", "./adapters/httpserver TestConnectionsAgree$", "./adapters/httpserver TestAPeerWhoseConnectionsAreBusyGetsNoMore$"),
		one("a cursor to an empty page", "a cursor leads to a page that has something", "adapters/httpapi/account.go", "more := len(list) > q.limit", "more := len(list) > 0", "./adapters/httpapi TestTheLastPageHasNoCursor$", "./adapters/httpapi TestTheWireIsGolden$"),
		alone("one table has the variables of a Service", one("a Service named macronode stops the node", "variables that Kubernetes injects are ignored", "adapters/config/load.go", " && !isServiceLink(name, text) {", " {", "./adapters/config TestServiceLinksAreIgnored$")),
	}
}
