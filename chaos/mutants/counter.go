package mutants

// counters are bugs of the plane of examples/counter.
func counters() []Mutant {
	const (
		counter = "examples/counter/counter.go"
		sims    = "./chaos/sim TestCounters$"
		model   = "./examples/counter TestCountersSurviveCrashes$"
	)
	return []Mutant{
		one("request hash of an add leaves out the delta", "one key has one outcome", counter, "binary.LittleEndian.AppendUint64(append([]byte(nil), a.Name.Text...), a.Delta)", "append([]byte(nil), a.Name.Text...)", sims, "./examples/counter TestRequestHashCoversTheRequest$"),
		one("quota of counters permits one more", "a quota is exact", counter, "used >= quota:", "used > quota:", sims, model),
	}
}
