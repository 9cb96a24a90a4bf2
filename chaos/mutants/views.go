package mutants

// views are bugs of the index, and of what it reads of the journal.
func views() []Mutant {
	const (
		dir, journals = "adapters/index/", "adapters/journalfile/range.go"

		agree  = "./adapters/index TestAgrees$"
		crash  = "./adapters/index TestCrash$"
		ranges = journal + " TestRange$"
		beside = journal + " TestRangesWhileWriting$"
	)
	return []Mutant{
		alone("only an engine that stops again and again shows it", one("engines without a limit", "a process has a limited number of engines that have stopped", dir+"reopen.go", "if failures >= maxEngineFailures {", "if failures >= 1<<40 {", "./adapters/index TestStaysDownAfterTooManyEngineFailures$")),
		alone("only a full disk shows it", one("engine opened on a full disk", "a full disk uses up no engines", dir+"reopen.go", "disk.AvailBytes < reopenRoom {", "disk.AvailBytes < 0 {", "./adapters/index TestReopensEngineAfterFullDisk$")),
		one("stopped engine keeps its lock", "a stopped engine is cut off from the disk", dir+"store.go", "	defer s.fence.end()\n", "", "./adapters/index TestReopensEngineAfterFullDisk$", "./adapters/index TestStoppedEngineChangesNothing$"),
		alone("only many keys in few frames show it", one("keys that wait for an interval", "the window of keys does not fill while the index waits", dir+"fold.go", " || f.tail.keys >= f.limits.Keys", "", "./adapters/index TestWritesTablesWhenKeysFill$")),
		alone("only who waits for it sees it", one("index that follows as soon as it is open", "readiness reports an index that does not follow", dir+"fold.go", "if !f.behind && !f.follows {", "if !f.follows {", "./adapters/index TestNotifiesOnceItFollows$")),
		alone("only an end between two time frames shows it", one("end without the time", "the time does not go back over a restart", "core/node/node.go", "n.lastFrameAt = min(n.lastFrameAt, now.Add(-n.config.HeartbeatInterval))", "_ = now", "./core/node TestTranscripts$")),
		alone("only the kernel's answer shows it", one("unsynchronised clock that is trusted", "a clock without its source stays doubted", "adapters/hostclock/hostclock.go", "err == nil && state != unix.TIME_ERROR", "err == nil", "./adapters/hostclock TestUnsynchronizedClockIsNotTrusted$")),
		alone("only a listener that is started again shows it", one("handler made at each start of a listener", "a listener that died is started again", "cmd/macronode/serve.go", "once := sync.OnceValue(handler)", "once := handler", "./cmd/macronode TestListenerThatDiedIsStartedAgain$")),
		alone("only a disk that fails for long shows it", one("engine opened on a failing disk", "a failing disk uses up no engines", "adapters/index/reopen.go", "if err := x.tryDisk(); err != nil {", "if err := x.tryDisk(); err != nil && false {", "./adapters/index TestFailingDiskUsesUpNoEngines$")),
		one("index down and not reported", "readiness reports an index that does not follow", "core/node/node.go", " || !n.supervisor.IsUp(types.ServiceIndex))", ")", "./core/node TestTranscripts$", "./chaos/sim TestSeeds$"),
		alone("only an open on a disk that refuses shows it", one("merges before tables are open", "a failed open ends the index alone", dir+"merges.go", "	if !m.on.Load() {\n", "	if false {\n", "./adapters/index TestReopened$")),
		one("directory that is not synced ends the process", "an engine that gives up ends the index alone", dir+"fence.go", "d.die(fmt.Errorf(\"%w: a directory cannot be synced: %w\", ErrEngine, err))", "_ = d.die", "./adapters/index TestReopensEngineAfterFullDisk$", "./adapters/index TestReopened$"),
		one("tails younger than their cursor", "a ref is for ever", dir+"view.go", "	for i := range v.tails {\n\t\tif v.tails[i].tail != nil {\n\t\t\theads[i]", "	for i, t := range [...]*tail{v.index.frozen, v.index.tail} {\n\t\tif t != nil {\n\t\t\tv.tails[i] = t.glimpse()\n\t\t\theads[i]", "./adapters/index TestACursorIsNoOlderThanTheTails$", agree),
		one("mark of another journal, believed", "an index is believed on its own chain", dir+"indexer.go", "case journal != m.journal || root != m.root:", "case journal != m.journal || root != m.root && false:", "./adapters/index TestDoubt$", "./adapters/index TestEveryBranch$"),
		alone("only a journal that branches while it is read shows it", one("branch that is folded on after a start", "an index is believed on its own chain", dir+"fold.go", "		f.damaged.Store(true)\n", "", "./adapters/index TestBranches$")),
		one("keys of the index that are over", "time of a key", dir+"look.go", "case s.at.Add(x.config.TTL) <= v.mark.at:", "case false:", "./adapters/index TestExpired$", agree),
		alone("only who asks beside the folding sees it", one("mark that is read behind the look-up", "F: one compare keeps a key to one effect", dir+"look.go", "in.Prior, in.IndexedTo = v.key(in.Tenant, in.Key.ID), v.mark.lsn", "in.Prior, in.IndexedTo = v.key(in.Tenant, in.Key.ID), x.Mark().LSN", "./adapters/index TestLooksBeside$")),
		one("keys that leave the tables early", "time of a key", dir+"table.go", "return (at - b.ttl) / b.width\n", "return (at-b.ttl)/b.width + 1\n", crash, agree),
		one("ring with a gap", "X2", dir+"ring.go", " || s.LSN != r.first+types.LSN(r.n) {", " {", "./adapters/index TestRing$", "./adapters/index TestRingTells$"),
		alone("only a crash right behind it shows it", one("thrown away until the power goes", "what was thrown away does not come back", dir+"store.go", "remove the tables: %w\", err)\n\t\t}\n\t}\n\treturn syncDir(fs, dir)\n", "remove the tables: %w\", err)\n\t\t}\n\t}\n\treturn nil\n", "./adapters/index TestWipe$")),
		alone("only an engine that was told to give up shows it", one("table for an engine that gave up", "nothing is ingested by who gave up", dir+"store.go", "	if ill := s.ill.Load(); ill != nil {\n\t\treturn *ill\n\t}\n\t// Where the engine", "	// Where the engine", "./adapters/index TestIll$")),
		alone("only who reads for as long as two tables take sees it", one("tail that is used anew while it is read", "a view is of one moment", dir+"view.go", "t.readers.Add(1)", "t.readers.Add(0)", "./adapters/index TestACursorIsNoOlderThanTheTails$")),
		one("range beyond what is durable", "X3", journals, "Upto: durable,", "", ranges, beside),
		one("range without its first frame", "X2", journals, "j.Read(from - 1)", "j.Read(from)", ranges, beside),
		one("range that nobody can end", "X4", journals, "if err := each(f); err != nil {", "if err := each(f); err != nil && false {", ranges, beside),
	}
}
