package mutants

// metersInPrograms are bugs of examples/meter.
func metersInPrograms() []Mutant {
	const (
		meter   = "examples/meter/meter.go"
		model   = "./examples/meter TestUsageIsCountedOnce$"
		example = "./examples/meter Example$"
	)
	return []Mutant{
		one("a program counts a repeated event again", "an event is counted once", meter, "if s, ok := f.seen[name{t, ref}]; ok {", "if s, ok := f.seen[name{t, ref}]; ok && t == 0 {", model, example),
		one("a frame without events takes a number", "frames follow each other", meter, "\t\tm.lsn--\n", "", model, example),
		alone("one test lets 35 days pass", one("a name is forgotten while its event could be recorded", "an event is counted once", meter, "m.order[0].at.Add(accounting.MaxFuture+accounting.MaxAge)", "m.order[0].at.Add(accounting.MaxAge)", "./examples/meter TestNamesHaveRoom$")),
		alone("one test changes the order of frames", one("a frame may follow any other", "frames follow each other", meter, "h.LSN != m.lsn+1 || h.At < m.at", "h.LSN < m.lsn", "./examples/meter TestReplayNeedsOrder$")),
	}
}
