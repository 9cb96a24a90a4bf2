package mutants

// operator are bugs of what operators see: metrics, log lines, explain.
func operator() []Mutant {
	const api, counts = "adapters/httpapi/httpapi.go", "adapters/metrics/wallet.go"
	return []Mutant{
		alone("one test rejects on both planes", one("proxy rejections count for the wallet", "a count is of its plane", api, "k.Meter.Refused(k.endpoint.facet, r.problem)", "k.Meter.Refused(types.FacetWallet, r.problem)", "./adapters/httpapi TestRejectionsCountForTheirPlane$")),
		alone("the same", one("upstream timeouts count as timeouts of the API", "a count is of its plane", api, "if k.endpoint.facet != types.FacetProxy { //", "if true { //", "./adapters/httpapi TestRejectionsCountForTheirPlane$")),
		alone("other tests count one plane", one("rejections of all planes count for the wallet", "a count is of its plane", counts, "registry.Plane(f), p.Code()", "registry.Plane(types.FacetWallet), p.Code()", "./adapters/metrics TestAnswersAreNoRejections$")),
		alone("no other endpoint flaps", one("each change of a flapping endpoint is logged", "a flooded log is useless", "cmd/macronode/internal/server/endpoint_health.go", " || now.Sub(e.loggedAt) < healthLogInterval {", " {", "./cmd/macronode/internal/server TestUnhealthyEndpointIsLogged$")),
		alone("no other endpoint flaps", one("last change of a flapping endpoint is not logged", "the last line has the current state", "cmd/macronode/internal/server/endpoint_health.go", "\t\treturn 0, false\n", "\t\te.changes = 0\n\t\treturn 0, false\n", "./cmd/macronode/internal/server TestUnhealthyEndpointIsLogged$")),
		alone("one test has several failures", one("failed health checks have the wrong reason", "from a failure to its cause", "adapters/proxy/health.go", "\tif ctx.Err() != nil && (!errors", "\tif false && (!errors", "./adapters/proxy TestHealthChecksFindStates$")),
		one("tunnel response has no decision ID", "each answer carries its decision", "adapters/proxy/tunnel.go", "\tof.put(h)\n", "\t_ = of\n", "./adapters/proxy TestTunnelResponseHasIDs$", "./cmd/macronode/internal/cli TestCutTunnelIsLoggedOnce$"),
		alone("other upstreams send no interim response with one", one("interim response has the decision ID of the service", "each answer carries its decision", "adapters/proxy/exchange.go", "\tidsOf(was).put(to)\n", "", "./adapters/proxy TestUpstreamCannotOverrideIDs$")),
		alone("other parts are UTF-8", one("a part that is not UTF-8 is merged", "a composed response is valid JSON", "adapters/proxy/parts.go", "utf8.Valid(text) && ", "utf8.Valid(nil) && ", "./adapters/proxy TestMissingPartsGetFallback$")),
		one("idle tunnel counts as stalled", "an idle tunnel is no failure", "adapters/proxy/tunnel.go", "u.end(IdleTimeout)", "u.end(ResponseStalled)", "./adapters/proxy TestIdleTunnelIsClosed$", "./adapters/proxy TestTraceOfTunnels$"),
		alone("one table has every key", one("revoked key is reported as unknown", "from a failure to its cause by one command", "adapters/httpapi/authorization.go", "	case k.key.Revoked:\n", "	case false:\n", "./adapters/httpapi TestDecisionKeepsDetail$")),
		alone("one test has a degraded node", one("conditions of the node are not in the decision", "from a failure to its cause by one command", api, "k.waitingFor, k.degradedBy = s.WaitingFor, s.DegradedBy", "_ = s", "./adapters/httpapi TestDecisionKeepsDetail$")),
		one("truncated response counts as complete", "from a failure to its cause by one command", api, "k.isTruncated = cut && k.status > 0", "_ = cut", "./adapters/httpapi TestDecisionKeepsDetail$", "./cmd/macronode/internal/cli TestExplainShowsCause$"),
		alone("one test has an unavailable upstream", one("unavailable upstream is reported as an unavailable node", "an unavailable upstream is named", "adapters/httpapi/proxy_route.go", "if p == event.Unavailable && k.Node", "if false && k.Node", "./adapters/httpapi TestUnavailableUpstreamIsNotTheNode$")),
		alone("one node has a quota in shadow", one("shadow quotas are not counted", "shadow rejections are counted", "cmd/macronode/internal/server/decision_sink.go", "\t\t\tq.Shadowed()\n", "\t\t\t_ = q\n", "./cmd/macronode/internal/cli TestQuotasAreCounted$")),
		alone("one test checks the quota", one("admitted requests count for the quota", "a quota counts its rejections", "cmd/macronode/internal/server/decision_sink.go", "\tif d.Why == event.RejectQuotaExceeded.String() {", "\tif _ = event.RejectQuotaExceeded; d.Rule != \"\" {", "./cmd/macronode/internal/cli TestQuotasAreCounted$")),
		one("log and metric have different outcome names", "one set of outcome names", "cmd/macronode/internal/server/access_log.go", "slog.String(\"outcome\", l.Outcome)", "slog.String(\"outcome\", l.Tries[0].Ending)", "./cmd/macronode/internal/cli TestAccess$", "./cmd/macronode/internal/cli TestCutTunnelIsLoggedOnce$"),
	}
}
