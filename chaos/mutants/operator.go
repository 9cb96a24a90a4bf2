package mutants

// operator are bugs of what whoever runs a node is told: counts, lines of the log, explain.
func operator() []Mutant {
	const api, counts = "adapters/httpapi/httpapi.go", "adapters/metrics/wallet.go"
	return []Mutant{
		alone("one test refuses on both planes and looks who is counted", one("a service's refusals are the wallet's", "a count is of its plane", api, "k.Meter.Refused(k.door.facet, r.problem)", "k.Meter.Refused(words.Money, r.problem)", "./adapters/httpapi TestRefusalsAreOfTheirPlane$")),
		alone("the same", one("a service that is late is a read that waits", "a count is of its plane", api, "if k.door.facet != words.Beyond { //", "if true { //", "./adapters/httpapi TestRefusalsAreOfTheirPlane$")),
		alone("whoever else counts asks for one plane", one("one plane for all", "a count is of its plane", counts, "registry.Plane(f), p.Code()", "registry.Plane(words.Money), p.Code()", "./adapters/metrics TestAnswersAreNoRejections$")),
	}
}
