package mutants

// hangingDisks are faults of the time limits of directories of objects.
func hangingDisks() []Mutant {
	return []Mutant{
		one("a disk that hangs is asked again", "few goroutines wait for a disk that hangs", "adapters/provider/timed.go", "if g.late.Load() > 0 {", "if g.late.Load() < 0 {", "./adapters/provider TestHangingDiskEndsCalls$", "./adapters/objectstore TestReadSurvivesHangingDisk$"),
		alone("one test lets a disk hang between two calls of an upload", one("a copy that is not durable keeps its name", "an upload whose disk hangs leaves no file that is taken for a copy", "adapters/objectstore/upload_end.go", "_ = t.left.remove(t.Port, u.contentName(t))", "_ = t.Port.Remove(u.contentName(t))", "./adapters/objectstore TestUploadSurvivesHangingDisk$")),
		alone("one test looks at what comes late", one("a file that is made late stays", "a late call changes nothing that was given up", "adapters/provider/timed.go", "\t\t_ = t.Port.Remove(name)\n", "", "./adapters/provider TestHangingDiskEndsChanges$")),
		alone("one test makes more calls than may wait", one("a call that waits for a disk leaves its slot", "few goroutines wait for a disk that hangs", "adapters/provider/timed.go", "\t\tdefer func() { <-g.slots }()\n", "\t\t<-g.slots\n", "./adapters/provider TestHangingDiskHoldsFewGoroutines$")),
		alone("one test opens providers without a node", one("directories have no time limit", "a disk that hangs blocks no read of an object that another has", "cmd/macronode/internal/settings/storage.go", "case len(list) > 1:", "case len(list) > 99:", "./cmd/macronode/internal/settings TestDirectoriesHaveTimeLimits$")),
		alone("the others open directories without a node; on the real binary it takes a minute", one("the only directory has no time limit", "an upload that the disk does not answer gives its place back", "cmd/macronode/internal/settings/storage.go", "is.Port = provider.NewOnly(provider.Dir{FS: p.Dir}, provider.Answer)", "is.Port = provider.Dir{FS: p.Dir}", "./cmd/macronode/internal/settings TestDirectoriesHaveTimeLimits$")),
		one("the only directory is not read while changes hang", "what can be read is read", "adapters/provider/timed.go", "return &Timed{Port: p, direct: p, within: within, reads: newGate(MaxOnlyReads), changes: newGate(MaxCalls)}", "return NewTimed(p, within)", "./adapters/provider TestOnlyDirectoryIsReadWhileChangesHang$", "./adapters/objectstore TestOnlyDirectoryHangs$"),
		one("a probe that hangs takes the only directory for unreadable", "the conditions of a node name what fails", "adapters/provider/timed.go", "\tif t.isOnly() {\n\t\treturn nil, err\n\t}\n", "", "./adapters/provider TestOnlyDirectoryIsReadWhileChangesHang$", "./adapters/objectstore TestOnlyDirectoryHangs$"),
		alone("one test hangs all reads of the only directory", one("a content is read from a disk that answers no read", "a disk that hangs is asked no more", "adapters/provider/content.go", "\tif err := t.reads.hangs(); err != nil {\n\t\treturn nil, err\n\t}\n", "", "./adapters/provider TestOnlyDirectoryHangs$")),
		alone("one test has a server with so little time", one("an upload that its disk holds up gets no answer", "an upload whose disk hangs gets 503", "adapters/httpapi/objects.go", "\tdefer o.suspendDeadline()()\n\terr := objectio", "\terr := objectio", "./adapters/httpapi TestLateUploadIsAnswered$")),
	}
}

// fullDisks are faults of uploads and repairs when disks are full.
func fullDisks() []Mutant {
	const (
		places  = "core/placement/space.go"
		space   = "adapters/objectstore/space.go"
		model   = "./core/placement TestWritersAreThoseWithRoom$"
		shards  = "./core/placement TestShardWritersAreThoseWithRoom$"
		passed  = "./adapters/objectstore TestFullDiskIsPassedOver$"
		repairs = "./adapters/objectstore TestRepairPassesOverFullDisk$"
	)
	return []Mutant{
		alone("one test has this", one("a full disk waits for the interval", "files of deleted objects do not use up the disk", "adapters/objectstore/store.go", "s.written.Load() < spare/4", "spare > 0", "./adapters/objectstore TestFullAsksForCollection$")),
		alone("one test has this", one("uploads take the reserve of the disk", "uploads never stop the journal", space, "return s.limits.Reserve + freeCheck", "return freeCheck", "./adapters/objectstore TestRefusals$")),
		alone("on the real binary it takes a minute", one("a full provider is not named", "missing copies have a reason", "adapters/objectstore/probe.go", "p.noteSpace(unwritable)", "p.noteSpace(nil)", "./adapters/objectstore TestProbeFindsWhatFails$")),
		one("a disk without space for the object is chosen", "a disk with space takes what a full one cannot", places, "spare >= max(1, bytes)", "spare >= max(1, min(1, bytes))", model, shards, passed, repairs),
		alone("one model has more providers than are required", one("copies that are not required are begun on full disks", "a disk without space is chosen only if too few others have it", places, "n = min(n, max(required, o.n))", "n = min(n, max(required, n))", model)),
		alone("one test has more shards than are required", one("shards that are not required are begun on full disks", "a disk without space is chosen only if too few others have it", places, "(step == 0 || chosen < required)", "(step == 0 || chosen < required+n)", shards)),
		one("disks are not asked for their space", "a disk with space takes what a full one cannot", space, "if state.Spare[i] = spare; p.note(err) != nil {", "if state.Spare[i] += spare * 0; p.note(err) != nil {", passed, repairs, files),
		alone("one test has a disk that says it has space", one("a disk that has refused a write is chosen again", "a disk with space takes what a full one cannot", "adapters/objectstore/provider.go", "isFull(err) && !errors.Is(err, ErrNoSpace)", "isFull(err) && err == nil", "./adapters/objectstore TestRefusedWriteIsRemembered$")),
		one("a repair waits for the full disk", "every object gets its copies again", "adapters/objectstore/restore_parts.go", "s.Missing(o, &held, room)", "s.Missing(o, &held, usable)", repairs, "./adapters/objectstore TestRepairOfDamageOnFullDisk$"),
		alone("one test has an upload that is refused", one("an upload that was refused is not reported", "the operator sees that uploads are refused", "adapters/objectstore/upload_end.go", "if !u.silent && isFull(u.err) {", "if u.silent && isFull(u.err) {", "./adapters/objectstore TestRefusalIsReportedOnce$")),
		alone("one test has an upload that is refused", one("a refusal is not reported to the node", "the operator sees that uploads are refused", "cmd/macronode/internal/server/object_probe.go", "r.refused.after(r.files.Refused())", "r.refused.after(nil)", "./cmd/macronode/internal/server TestRefusedUploadIsReported$")),
		alone("one test looks at what a repair begins", one("a repair begins what it has no space for", "a repair leaves the disks as they were if it cannot succeed", space, "bytes = u.partBytes()\n\t}\n\treturn u", "bytes = 0\n\t}\n\treturn u", "./adapters/objectstore TestRepairLeavesFullDiskAlone$")),
	}
}
