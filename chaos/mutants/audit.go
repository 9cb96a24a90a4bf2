package mutants

// audit are bugs of the audit log.
func audit() []Mutant {
	const (
		log, line, pen = "adapters/audit/audit.go", "adapters/audit/line.go", "adapters/audit/pen.go"
		walk           = "./adapters/audit TestEveryLossIsCounted"
		shelves        = "./adapters/audit TestFilesMatchModel$"
	)
	return []Mutant{
		one("lost audit lines are not counted", "loss is explicit", log, "l.batch.over, l.over = 0, l.over, 0", "l.batch.over, l.over = 0, 0, 0", walk, "./adapters/audit TestLossIsRecorded"),
		one("loss is reported before its place", "loss is reported where the lines are missing", log, "l.batch.done, l.batch.over, l.over = 0, l.over, 0\n", "l.batch.done, l.batch.over, l.over = 0, 0, 0\n\tif l.lost.Load() > 0 && l.batch.left() == 0 {\n\t\tl.batch.over = l.lost.Swap(0)\n\t}\n", walk, "./adapters/audit TestLossIsRecorded"),
		one("line is written again after a partial write", "each line is in the file once", line, "b.text[:min(n+1, len(b.text))]", "b.text[:n]", walk, "./adapters/audit TestPartialWriteIsCompleted$"),
		one("partial line is not ended", "a partial line ends before the next one", pen, "if p.at.torn {", "if false {", walk, "./adapters/audit TestTornLineIsTerminated"),
		one("audit file has no size limit", "a file has a limit", pen, "if p.at.size > 0 && p.at.size+int64(len(lines)) > p.limits.Size {", "if false {", "./adapters/audit TestFullFilesAreKept", shelves),
		one("one audit file too many is kept", "the number of files is limited", pen, "for gap < p.limits.Keep {", "for gap < p.limits.Keep+1 {", "./adapters/audit TestFullFilesAreKept", shelves),
		one("rotation moves a file twice", "a file is moved once", pen, "errors.Is(err, fs.ErrNotExist) {\n\t\t\tbreak\n", "errors.Is(err, fs.ErrNotExist) {\n\t\t\tgap += 0\n", "./adapters/audit TestRotationResumes", shelves),
		one("symbolic link is followed", "only regular files are opened", pen, "|syscall.O_NOFOLLOW", "", "./adapters/audit TestIrregularFilesAreNotWritten", shelves),
		one("pipe is written to", "only regular files are written", pen, "err = ErrFile", "", "./adapters/audit TestIrregularFilesAreNotWritten", shelves),
		one("removed audit file is written to", "a removed file is replaced by a new one", pen, "if p.at.file != nil && !p.at.Here() {", "if false {", "./adapters/audit TestMovedFileIsRecreated", shelves),
		one("close does not flush the queue", "close writes all lines", log, "	l.mu.Unlock()\n\tl.flush()\n", "	l.mu.Unlock()\n", "./adapters/audit TestShutdownWritesQueue", "./adapters/audit TestNotesDuringShutdown$"),
		one("line is accepted after close", "a line after close is lost and counted", log, "room := !l.ended && len", "room := len", "./adapters/audit TestShutdownWritesQueue", "./adapters/audit TestNotesDuringShutdown$"),
		one("disk error is logged each time", "a disk error is logged once", log, "	if !l.failing {\n", "	{\n", "./adapters/audit TestDiskErrorIsLoggedOnce", "./adapters/audit TestShutdownWithDiskErrorCountsLines$"),
		one("control characters are not escaped", "hostile texts are escaped", line, "case r >= ' ' && r <= '~':", "case r >= ' ' && r <= '~', r > 0x7f && r <= 0xff:", "./adapters/audit TestHostileTexts", "./adapters/audit TestTextEncodingGolden$"),
		one("quote is not escaped", "hostile texts are escaped", line, `case r == '"', r == '\\':`, `case r == '\\':`, "./adapters/audit TestHostileTexts", "./adapters/audit TestTextEncodingGolden$"),
		one("field has no length limit", "a line is bounded", line, "	cut(&l.Peer, maxPeer)\n", "", "./adapters/audit TestHostileTexts", "./adapters/audit TestLongestLine"),
		one("line waits for the next one", "a line is written within a second", log, "case <-due.C:", "case <-l.some:", "./adapters/audit TestLineIsWrittenWithinASecond", "./adapters/audit TestDiskErrorIsLoggedOnce$"),
		one("audit file is readable by others", "only the owner can read the file", pen, "0o600)", "0o644)", "./adapters/audit TestLineIsWrittenWithinASecond", shelves),
	}
}
