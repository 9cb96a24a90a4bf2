package mutants

// operations are faults in what probes, scrapers and operators of a node rely on.
func operations() []Mutant {
	const admin = "adapters/adminapi/"
	return []Mutant{
		one("readyz needs a credential off loopback", "probes need nothing", admin+"adminapi.go", `"/readyz":           {http.MethodGet, probe,`, `"/readyz":           {http.MethodGet, scrape,`, "./adapters/adminapi TestWhoMayWhat$", "./adapters/adminapi TestProbesNeedNothing$"),
		alone("one test sends a Host beside Hosts", one("host names are not checked", "no page rebinds its name to the admin listener", admin+"origin.go", "return (isLocalHost(r.Host) || a.isKnownHost(r.Host)) && sameOrigin(r)", "return sameOrigin(r)", "./adapters/adminapi TestRebindingAndForeignPages$")),
		alone("one test has keys of all kinds", one("any key operates the node", "a key without scope admin is refused", "cmd/macronode/admin.go", "known.Scopes&event.MayAdmin != 0 && ", "", "./cmd/macronode TestAdminCredentials$")),
		alone("no configuration reaches the limit, so one test lowers it", one("a rehearsal that stops early is called whole", "a partial rehearsal is reported", "core/rehearse/rehearse.go", "\tp.partial = p.partial || p.steps >= p.limit\n", "", "./core/rehearse TestPartialIsReported$")),
		alone("one test panics within an answer", one("a problem follows a body that has begun", "an answer that breaks off is not taken for whole", admin+"adminapi.go", "\tif w.began {\n", "\tif false {\n", "./adapters/adminapi TestPanics$")),
		alone("one test measures the heap", one("a decision keeps its request's buffer", "memory is bounded by what explain memory adds up", "adapters/httpapi/arrive.go", "return strings.Clone(m[:min(len(m), 16)])", "return m[:min(len(m), 16)]", "./adapters/httpapi TestDecisionsDoNotPinRequests$")),
		alone("one test makes a proxy and does not apply it", one("a proxy that is made publishes its endpoints", "a reload that is not applied changes no traffic", "adapters/proxy/proxy.go", "if alone {\n\t\tp.PublishEndpoints()", "if true {\n\t\tp.PublishEndpoints()", "./adapters/proxy TestEmptyPlaces$")),
	}
}
