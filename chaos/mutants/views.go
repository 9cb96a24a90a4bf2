package mutants

// views are bugs of the index and of its reading of the journal.
func views() []Mutant {
	const (
		dir, journals = "adapters/index/", "adapters/journalfile/range.go"

		agree  = "./adapters/index TestMatchesModel$"
		crash  = "./adapters/index TestCrashAtAnyOperation$"
		ranges = journal + " TestRangeYieldsDurableFrames$"
		beside = journal + " TestRangeWhileWriting$"
	)
	return []Mutant{
		alone("only an engine that stops repeatedly shows it", one("stopped engines have no limit", "a process has a limited number of engines that have stopped", dir+"reopen.go", "if failures >= MaxEngineFailures {", "if failures >= 1<<40 {", "./adapters/index TestStaysDownAfterTooManyEngineFailures$")),
		alone("only a full disk shows it", one("engine is opened on a full disk", "a full disk uses up no engines", dir+"reopen.go", "disk.AvailBytes < reopenRoom {", "disk.AvailBytes < 0 {", "./adapters/index TestReopensEngineAfterFullDisk$")),
		one("stopped engine keeps its lock", "a stopped engine is cut off from the disk", dir+"store.go", "	defer s.fence.end()\n", "", "./adapters/index TestReopensEngineAfterFullDisk$", "./adapters/index TestStoppedEngineChangesNothing$"),
		alone("only many keys in few frames show it", one("keys wait for the interval", "the key window does not fill while the index waits", dir+"fold.go", " || f.tail.keys >= f.limits.Keys", "", "./adapters/index TestWritesTablesWhenKeysFill$")),
		alone("only a test that waits for it shows it", one("index reports that it follows when it is open", "readiness waits for an index that follows", dir+"fold.go", "if !f.behind && !f.follows {", "if !f.follows {", "./adapters/index TestNotifiesOnceItFollows$")),
		alone("only a stop between two heartbeats shows it", one("last heartbeat is missing at the end", "the time never decreases across a restart", "core/node/node.go", "n.lastFrameAt = min(n.lastFrameAt, now.Add(-n.config.HeartbeatInterval))", "_ = now", "./core/node TestTranscripts$")),
		alone("only the kernel's answer shows it", one("unsynchronised clock is trusted", "a clock without a source stays untrusted", "adapters/hostclock/hostclock.go", "err == nil && state != unix.TIME_ERROR", "err == nil", "./adapters/hostclock TestUnsynchronizedClockIsNotTrusted$")),
		alone("only a restarted listener shows it", one("handler is built at each start of a listener", "a failed listener restarts", "cmd/macronode/internal/server/listeners.go", "once := sync.OnceValue(handler)", "once := sync.OnceValue(handler)\n\tonce = handler", "./cmd/macronode/internal/server TestListenerThatDiedIsStartedAgain$")),
		alone("only a disk that fails for long shows it", one("engine is opened on a failing disk", "a failing disk uses up no engines", "adapters/index/reopen.go", "if err := x.tryDisk(); err != nil {", "if err := x.tryDisk(); err != nil && false {", "./adapters/index TestFailingDiskUsesUpNoEngines$")),
		one("index that is down is not reported", "readiness reports an index that does not follow", "core/node/node.go", " || !n.supervisor.IsUp(types.ServiceIndex))", ")", "./core/node TestTranscripts$", "./chaos/sim TestSeeds$"),
		alone("only an open on a failing disk shows it", one("merges start before all tables are open", "a failed open stops only the index", dir+"merges.go", "	if !m.on.Load() {\n", "	if false {\n", "./adapters/index TestReopenWithDiskFaults$")),
		one("failed directory sync ends the process", "a stopped engine stops only the index", dir+"fence.go", "d.die(fmt.Errorf(\"%w: a directory cannot be synced: %w\", ErrEngine, err))", "_ = d.die", "./adapters/index TestReopensEngineAfterFullDisk$", "./adapters/index TestReopenWithDiskFaults$"),
		one("tails are older than their cursor", "a ref is permanent", dir+"view.go", "	for i := range v.tails {\n\t\tif v.tails[i].tail != nil {\n\t\t\theads[i]", "	for i, t := range [...]*tail{v.index.frozen, v.index.tail} {\n\t\tif t != nil {\n\t\t\tv.tails[i] = t.glimpse()\n\t\t\theads[i]", "./adapters/index TestLookupSeesRowsThatMovedToTables$", agree),
		one("index of another journal is used", "an index is used on its own chain only", dir+"indexer.go", "case journal != m.journal || root != m.root:", "case journal != m.journal || root != m.root && false:", "./adapters/index TestIndexIsRebuiltOffItsChain$", "./adapters/index TestIndexOfAnyBranchPoint$"),
		alone("only a journal that branches while it is read shows it", one("branch is folded after a restart", "an index is used on its own chain only", dir+"fold.go", "		f.damaged.Store(true)\n", "", "./adapters/index TestBranchedFramesRebuildIndex$")),
		one("index returns expired keys", "TTL of a key", dir+"look.go", "case s.at.Add(x.config.TTL) <= v.mark.at:", "case false:", "./adapters/index TestExpiredKeysLeaveTables$", agree),
		alone("only a look-up during folding shows it", one("mark is read after the look-up", "one comparison gives one effect per key", dir+"look.go", "in.Prior, in.IndexedTo = v.key(in.Tenant, in.Key.ID), v.mark.lsn", "in.Prior, in.IndexedTo = v.key(in.Tenant, in.Key.ID), x.Mark().LSN", "./adapters/index TestLookupsDuringFolding$")),
		one("keys leave the tables early", "TTL of a key", dir+"table.go", "return (at - b.ttl) / b.width\n", "return (at-b.ttl)/b.width + 1\n", crash, agree),
		one("ring has a gap", "X2", dir+"ring.go", " || s.LSN != r.first+types.LSN(r.n) {", " {", "./adapters/index TestRingReturnsFramesInOrder$", "./adapters/index TestRingReportsWhereFrameIs$"),
		alone("only a crash right after it shows it", one("removal of tables is not synced", "removed tables do not come back", dir+"store.go", "remove the tables: %w\", err)\n\t\t}\n\t}\n\treturn syncDir(fs, dir)\n", "remove the tables: %w\", err)\n\t\t}\n\t}\n\treturn nil\n", "./adapters/index TestWipeSurvivesCrash$")),
		alone("only an engine that was stopped shows it", one("stopped engine ingests a table", "a stopped engine ingests nothing", dir+"store.go", "	if ill := s.ill.Load(); ill != nil {\n\t\treturn *ill\n\t}\n\t// If the engine", "	// Where the engine", "./adapters/index TestStoppedEngineIngestsNothing$")),
		alone("only a reader that outlasts two tables shows it", one("tail is reused while it is read", "a view is of one moment", dir+"view.go", "t.readers.Add(1)", "t.readers.Add(0)", "./adapters/index TestLookupSeesRowsThatMovedToTables$")),
		one("range returns frames that are not durable", "X3", journals, "Upto: durable,", "", ranges, beside),
		one("range misses its first frame", "X2", journals, "j.Read(from - 1)", "j.Read(from)", ranges, beside),
		one("range ignores the error of its callback", "X4", journals, "if err := each(f); err != nil {", "if err := each(f); err != nil && false {", ranges, beside),
	}
}
