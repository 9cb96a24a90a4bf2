package mutants

// years is what a journal that lives for long could lose: starts behind a snapshot, reads
// behind damage, snapshots, the archive.
func years() []Mutant {
	const (
		journals, snapshots, archives = "adapters/journalfile/", "adapters/snapshot/", "adapters/archive/"
		summed                        = "./adapters/snapshot TestCrashes$"
		forgeries                     = "./adapters/snapshot TestForgedAnywhere$"
		directory                     = "\tif err := fsys.SyncDir(); err != nil {\n\t\treturn 0, fmt.Errorf(\"snapshot: sync the directory for %s: %w\", name, err)\n\t}\n"
	)
	return []Mutant{
		one("begins behind another root", "the chain goes on from the root that was given", journals+"reading.go", "if off == 0 || root != from.Root {", "if off == 0 || root != from.Root && false {", "./adapters/journalfile TestApart$", "./adapters/journalfile TestBranches$"),
		one("begins with another root", "the chain goes on from the root that was given", journals+"reading.go", "case h.first == from.LSN+1 && h.prev != from.Root:", "case false:", "./adapters/journalfile TestApart$", "./adapters/journalfile TestBranches$"),
		alone("scripts have an environment of their own", one("a copy is taken over", "a backup saves what it says it saves", "adapters/backup/backup.go", "if !c.heir {", "if false {", "./adapters/backup TestRestores$")),
		alone("only who asks for less sees it", one("a copy that is longer than its journal", "a backup saves what it says it saves", "adapters/backup/backup.go", "if b.Upto > 0 && c.done.LSN > b.Upto {", "if false {", "./adapters/backup TestACopyOfAnother$")),
		one("nothing is new, and nothing looked at", "a backup saves what it says it saves", "adapters/backup/backup.go", "if err := c.run(from, b.Upto); err != nil {", "if err := c.run(from, b.Upto); c.done.LSN != b.Upto && err != nil {", "./adapters/backup TestACopyOfAnother$", "./adapters/backup TestRestores$"),
		one("reads on past the end it was given", "a reading beside the writer takes what is durable", journals+"scan.go", "return s.Upto > 0 && s.found.Last >= s.Upto }", "return false }", "./adapters/journalfile TestUpto$", "./adapters/backup TestCopies$"),
		one("what a snapshot knew is forgotten", "segments that were deleted whole are damage", journals+"scan.go", "max(s.Known, s.From.LSN, s.Upto)", "max(s.From.LSN, s.Upto)", "./adapters/journalfile TestEndsTooSoon$", "./adapters/backup TestACopyThatRots$"),
		alone("what nobody wrote is not in a journal that was lived", one("a start that names no journal is believed", "a journal has a name", journals+"part.go", "p.whole = p.start.journal != 0", "p.whole = true", "./adapters/journalfile TestBelievesNothing$")),
		alone("only a write that was given up and damage behind it together show it", one("frame that was given up is believed", "what was never acknowledged is not shown", journals+"read.go", "if err == nil && !at.sound {", "if err == nil && false {", "./adapters/journalfile TestStaleFrameIsNotBelieved$")),
		one("root before a frame without proof", "a receipt shows the chain's own roots", journals+"seek.go", "root == types.Root(it.root) {", "root != (types.Root{}) {", journal, sim),
		one("damage in the first place alone", "verify names every damaged place", journals+"inspect.go", "if !ok || l.lsn >= end {", "if !ok || l.lsn >= end || l.off > off {", "./adapters/journalfile TestEveryByte$", "./adapters/journalfile TestInspects$"),
		one("snapshot named before it is synced", "what has its name is whole", snapshots+"write.go", "w.sync(1)", "w.sync(1 << 40)", summed, sim),
		one("snapshot without a directory sync", "a name is there after SyncDir", snapshots+"write.go", directory, "", "./adapters/snapshot TestCrashes$", "./adapters/snapshot TestFaults$"),
		one("snapshot with more behind its end", "what does not check to the last byte is not believed", snapshots+"read.go", "case len(payload) != endSize, r.off != r.size:", "case len(payload) != endSize:", "./adapters/snapshot TestDamage$", forgeries),
		one("snapshot whose blocks are another's", "the end is chained over all before it", snapshots+"read.go", "u64(payload) != r.sum.rows, types.Root(payload[16:]) != r.sum.chain:", "u64(payload) != r.sum.rows:", "./adapters/snapshot TestForged$", forgeries),
		one("rows of another state", "a snapshot is the state that it was made of", snapshots+"read.go", "s.At != h.At || s.Hash() != end.state:", "s.At != h.At || end.state == 0:", "./adapters/snapshot TestForged$", forgeries),
		one("keeps one snapshot", "an older one may be believed", snapshots+"maker.go", "return lsn >= made.LSN || lsn == base })", "return lsn >= made.LSN })", "./adapters/snapshot TestDoubts$", "./adapters/snapshot TestSameForAll$"),
		one("ref that is dumped as a key", "a loaded state is the one that was dumped", "core/idempotency/dump.go", "\t\tif k.Ref {\n", "\t\tif false {\n", idem, state),
		one("mark that is half loaded", "a loaded state is the one that was dumped", "core/idempotency/dump.go", "w.forgottenTo, w.newestForgotten = forgot, last", "w.forgottenTo = forgot", idem, state),
		one("dump without the boots", "a loaded state is the one that was dumped", "core/state/dump.go", "uint64(s.Journal), s.Starts}", "uint64(s.Journal), 0}", state, sim),
		one("moved without being read back", "the live file goes when its copy is right", archives+"archive.go", "if kept, err = a.same(live, size, name, name+leftover, step); err != nil {\n\t\treturn 0, err\n\t}", "", "./adapters/archive TestReadBack$", "./adapters/archive TestFaults$"),
		one("moved before its name is durable", "a crash leaves the live file or both", archives+"archive.go", "\tif err := a.kept.SyncDir(); err != nil { // also of a name that was there: nobody may have synced it\n\t\treturn m, fmt.Errorf(\"sync the directory: %w\", err)\n\t}\n", "", "./adapters/archive TestCrashes$", "./adapters/archive TestFaults$"),
	}
}
