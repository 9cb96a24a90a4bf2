package mutants

// openedFiles are faults of the shares of the limit of open files.
func openedFiles() []Mutant {
	const (
		rule, uses = "core/openfiles/openfiles.go", "cmd/macronode/internal/settings/files.go"

		table  = "./core/openfiles TestShares$"
		fit    = "./core/openfiles TestSharesFit$"
		shared = "./cmd/macronode/internal/settings TestFilesAreShared$"
		node   = "./cmd/macronode/internal/cli TestIdleConnectionsLeaveFiles$"
		leaves = "idle connections leave the files that the node needs"
	)
	return []Mutant{
		one("connections take the files of the node", leaves, uses, "s.Listeners.Public.MaxConns, s.Listeners.Admin.MaxConns = to.Public, to.Admin", "_ = to", shared, node),
		one("the shares of the rest do not fit", leaves, rule, "(limit-required)/(needed-required))", "limit/needed)", table, fit),
		one("shares are rounded up", leaves, rule, "(limit-required)/(needed-required))", "(limit-required)/(needed-required)) + 1", table, fit),
		one("a node starts without its files", "a node without its files does not start", rule, "if limit < required {", "if false {", table, fit, shared),
		alone("one model has the connections to endpoints", one("a closed connection keeps its file", "connections to upstreams are bounded by those that are open", "adapters/proxy/conns.go", "c.once.Do(func() { c.of.files.Add(-1) })", "", "./adapters/proxy TestConnsAgreesWithModel$")),
		one("connections to upstreams have no limit", leaves, "adapters/proxy/conns.go", "if c.files.Add(filesOfDial) > c.limit {", "if c.files.Add(filesOfDial) > c.limit+1<<20 {", "./adapters/proxy TestConnsAgreesWithModel$", "./adapters/proxy TestNoConnectionIsNoEndpointFault$"),
	}
}
