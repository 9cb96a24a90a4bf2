package mutants

// operator are bugs of what whoever runs a node is told: counts, lines of the log, explain.
func operator() []Mutant {
	const api, counts = "adapters/httpapi/httpapi.go", "adapters/metrics/wallet.go"
	return []Mutant{
		alone("one test refuses on both planes and looks who is counted", one("a service's refusals are the wallet's", "a count is of its plane", api, "k.Meter.Refused(k.door.facet, r.problem)", "k.Meter.Refused(types.FacetWallet, r.problem)", "./adapters/httpapi TestRefusalsAreOfTheirPlane$")),
		alone("the same", one("a service that is late is a read that waits", "a count is of its plane", api, "if k.door.facet != types.FacetProxy { //", "if true { //", "./adapters/httpapi TestRefusalsAreOfTheirPlane$")),
		alone("whoever else counts asks for one plane", one("one plane for all", "a count is of its plane", counts, "registry.Plane(f), p.Code()", "registry.Plane(types.FacetWallet), p.Code()", "./adapters/metrics TestAnswersAreNoRejections$")),
		alone("no other endpoint flaps", one("each change has its line", "a log that is filled tells nothing", "cmd/macronode/checks.go", " || now.Sub(e.at) < flapping {", " {", "./cmd/macronode TestTheSickAreTold$")),
		alone("no other endpoint flaps", one("the last change is never told", "what is said last is so", "cmd/macronode/checks.go", "\t\treturn 0, false\n", "\t\te.changes = 0\n\t\treturn 0, false\n", "./cmd/macronode TestTheSickAreTold$")),
		alone("one test has several ways to be ill", one("whatever a check met is no HTTP", "from a failure to its cause", "adapters/proxy/health.go", "\tif ctx.Err() != nil && (!errors", "\tif false && (!errors", "./adapters/proxy TestHealth$")),
		one("a tunnel that nobody can ask about", "each answer carries its decision", "adapters/proxy/tunnel.go", "\tof.put(h)\n", "\t_ = of\n", "./adapters/proxy TestATunnelHasAnID$", "./cmd/macronode TestATunnelIsCutInOneLine$"),
		one("who says nothing is silent", "an idle tunnel is no failure", "adapters/proxy/tunnel.go", "u.end(Idle)", "u.end(Silent)", "./adapters/proxy TestASilentTunnelEnds$", "./adapters/proxy TestCoursesOfTunnels$"),
		alone("one table has every key", one("a key that was revoked was never one", "from a failure to its cause by one command", "adapters/httpapi/enter.go", "	case k.key.Revoked:\n", "	case false:\n", "./adapters/httpapi TestWhyIsKept$")),
		alone("one test has a node that ails", one("no disk, and nobody says so", "from a failure to its cause by one command", api, "k.unmet, k.ailing = s.WaitingFor, s.DegradedBy", "_ = s", "./adapters/httpapi TestWhyIsKept$")),
		one("half an answer is done", "from a failure to its cause by one command", api, "k.cut = cut && k.status > 0", "_ = cut", "./adapters/httpapi TestWhyIsKept$", "./cmd/macronode TestFromAFailureToItsCause$"),
		alone("one test asks for a service that is away", one("a dead service is the node", "who is away is told", "adapters/httpapi/beyond.go", "if p == event.Unavailable && k.Node", "if false && k.Node", "./adapters/httpapi TestAServiceIsNotTheNode$")),
		alone("one node has a quota in shadow", one("shadows are not counted", "what a shadow would have refused is counted", "cmd/macronode/admission.go", "\t\t\tq.Shadowed()\n", "\t\t\t_ = q\n", "./cmd/macronode TestQuotasAreCounted$")),
		alone("one test looks which quota it was", one("who is let in is refused", "a quota counts what it refused", "cmd/macronode/admission.go", "\tif d.Why == event.RejectQuotaExceeded.String() {", "	if d.Rule != \"\" {", "./cmd/macronode TestQuotasAreCounted$")),
		one("one word in the log, another in the metric", "one vocabulary for what became of a request", "cmd/macronode/accessed.go", "slog.String(\"outcome\", l.Outcome)", "slog.String(\"outcome\", l.Tries[0].Ending)", "./cmd/macronode TestAccess$", "./cmd/macronode TestATunnelIsCutInOneLine$"),
	}
}
