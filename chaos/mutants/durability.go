package mutants

// years are bugs that only a long journal shows: snapshots, reads behind damage, the archive.
func years() []Mutant {
	const (
		journals, snapshots, archives = "adapters/journalfile/", "adapters/snapshot/", "adapters/archive/"
		summed                        = "./adapters/snapshot TestCrashKeepsEarlierSnapshot$"
		forgeries                     = "./adapters/snapshot TestChangedRowsAreRejected$"
		directory                     = "\tif err := fsys.SyncDir(); err != nil {\n\t\treturn 0, fmt.Errorf(\"snapshot: sync the directory for %s: %w\", name, err)\n\t}\n"
	)
	return []Mutant{
		one("root before the start is not compared", "the chain continues from the given root", journals+"reading.go", "if off == 0 || root != from.Root {", "if off == 0 || root != from.Root && false {", "./adapters/journalfile TestMismatchedStartReturnsErrApart$", "./adapters/journalfile TestReadingContinuesAcrossBranch$"),
		one("root of the first frame is not compared", "the chain continues from the given root", journals+"reading.go", "case h.first == from.LSN+1 && h.prev != from.Root:", "case false:", "./adapters/journalfile TestMismatchedStartReturnsErrApart$", "./adapters/journalfile TestReadingContinuesAcrossBranch$"),
		alone("scripts have their own environment", one("copy of another journal is extended", "a backup is complete", "adapters/backup/backup.go", "if !c.heir {", "if false {", "./adapters/backup TestRestoreContinuesUnderNewID$")),
		one("restored journal goes back in time", "the time never decreases", "adapters/backup/backup.go", "at := max(as.At, cut.At)", "at := as.At", "./cmd/macronode/internal/offline TestRestoreContinuesTime$", sim),
		alone("one test has an archive at a restore", one("archive of another journal is read", "a journal has its own segments only", "cmd/macronode/internal/offline/restore.go", "if len(names) > 0 {", "if len(names) > 1<<40 {", "./cmd/macronode/internal/offline TestRestoreRejectsArchiveOfAnotherJournal$")),
		alone("one test starts without its archive", one("segments that the older snapshot needs are archived", "an older snapshot may be needed", "adapters/recovery/recovery.go", "journalfile.Behind(segments, all[1])", "journalfile.Behind(segments, all[0])", "./cmd/macronode/internal/server TestKeeps$")),
		alone("only a copy with a smaller bound shows it", one("copy ahead of its journal is accepted", "a backup is complete", "adapters/backup/backup.go", "if b.Upto > 0 && c.done.LSN > b.Upto {", "if false {", "./adapters/backup TestCopyRejectsOtherJournals$")),
		one("copy without new frames is not compared", "a backup is complete", "adapters/backup/backup.go", "if err := c.run(from, b.Upto); err != nil {", "if err := c.run(from, b.Upto); c.done.LSN != b.Upto && err != nil {", "./adapters/backup TestCopyRejectsOtherJournals$", "./adapters/backup TestRestoreContinuesUnderNewID$"),
		one("reading does not end at its bound", "a reading beside the writer takes durable frames", journals+"scan.go", "return s.Upto > 0 && s.found.Last >= s.Upto }", "return false }", "./adapters/journalfile TestReadingEndsAtUpto$", "./adapters/backup TestCopyHasFramesUpToCut$"),
		one("known durable frame is ignored", "removed segments are damage", journals+"scan.go", "max(s.Known, s.From.LSN, s.Upto)", "max(s.From.LSN, s.Upto)", "./adapters/journalfile TestMissingKnownFramesAreDamage$", "./adapters/backup TestRottenCopyIsDamaged$"),
		alone("a journal of the simulator has no such segment", one("journal ID 0 is accepted", "a journal has an ID", journals+"part.go", "p.whole = p.start.journal != 0", "p.whole = true", "./adapters/journalfile TestForgedItemsAreRejected$")),
		alone("only a discarded write and damage behind it together show it", one("discarded frame is returned", "an unacknowledged frame is not returned", journals+"read.go", "if err == nil && !at.sound {", "if err == nil && false {", "./adapters/journalfile TestStaleFrameIsNotReturned$")),
		one("root before a frame is not proved", "a receipt has the roots of the chain", journals+"seek.go", "root == types.Root(it.root) {", "root != (types.Root{}) {", journal, sim),
		one("only the first damage is reported", "verify names every damaged place", journals+"inspect.go", "if !ok || l.lsn >= end {", "if !ok || l.lsn >= end || l.off > off {", "./adapters/journalfile TestDamagedByteLosesOneFrame$", "./adapters/journalfile TestInspectRandomDamage$"),
		one("snapshot is named before it is synced", "a named file is whole", snapshots+"write.go", "w.sync(1)", "w.sync(1 << 40)", summed, sim),
		one("snapshot name is not synced", "a name is durable after SyncDir", snapshots+"write.go", directory, "", "./adapters/snapshot TestCrashKeepsEarlierSnapshot$", "./adapters/snapshot TestFailureLeavesNoFile$"),
		one("snapshot with trailing bytes is accepted", "any invalid byte invalidates a snapshot", snapshots+"read.go", "case len(payload) != endSize, r.off != r.size:", "case len(payload) != endSize:", "./adapters/snapshot TestBitFlipsAreRejected$", forgeries),
		one("blocks of another snapshot are accepted", "the end is chained over all blocks", snapshots+"read.go", "u64(payload) != r.sum.rows, types.Root(payload[16:]) != r.sum.chain:", "u64(payload) != r.sum.rows:", "./adapters/snapshot TestForgedItemsAreRejected$", forgeries),
		one("rows of another state are accepted", "a snapshot is the state it was made of", snapshots+"read.go", "s.At != h.At || s.Hash() != end.state:", "s.At != h.At || end.state == 0:", "./adapters/snapshot TestForgedItemsAreRejected$", forgeries),
		one("only one snapshot is kept", "an older snapshot may be needed", snapshots+"maker.go", "return lsn >= made.LSN || lsn == base })", "return lsn >= made.LSN })", "./adapters/snapshot TestInvalidSnapshotsAreSkipped$", "./adapters/snapshot TestSnapshotIsFunctionOfJournal$"),
		one("ref is dumped as a key", "a loaded state is the one that was dumped", "core/idempotency/dump.go", "\t\tif k.Ref {\n", "\t\tif false {\n", idem, state),
		one("mark is loaded in part", "a loaded state is the one that was dumped", "core/idempotency/dump.go", "w.forgottenTo, w.newestForgotten = forgot, last", "w.forgottenTo = forgot", idem, state),
		one("dump loses the number of starts", "a loaded state is the one that was dumped", "core/state/dump.go", "uint64(s.Journal), s.Starts}", "uint64(s.Journal), 0}", state, sim),
		one("moved file is not read back", "the live file is removed when its copy is right", archives+"archive.go", "if kept, err = a.same(live, size, name, name+leftover, step); err != nil {\n\t\treturn 0, err\n\t}", "", "./adapters/archive TestCopyIsVerified$", "./adapters/archive TestFailedMoveKeepsLiveFile$"),
		one("moved file is removed before its copy's name is durable", "a crash leaves the live file or both", archives+"archive.go", "\tif err := a.kept.SyncDir(); err != nil { // needed for an existing name too: it may not have been synced\n\t\treturn m, fmt.Errorf(\"sync the directory: %w\", err)\n\t}\n", "", "./adapters/archive TestCrashKeepsFile$", "./adapters/archive TestFailedMoveKeepsLiveFile$"),
	}
}
