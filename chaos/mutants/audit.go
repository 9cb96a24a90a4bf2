package mutants

// audit are bugs of who did what.
func audit() []Mutant {
	const (
		log, line, pen = "adapters/audit/audit.go", "adapters/audit/line.go", "adapters/audit/pen.go"
		walk           = "./adapters/audit TestNothingIsLostUnsaid"
		shelves        = "./adapters/audit TestTheShelfAgrees$"
	)
	return []Mutant{
		one("loss that nobody hears of", "loss is explicit", log, "l.batch.over, l.over = 0, l.over, 0", "l.batch.over, l.over = 0, 0, 0", walk, "./adapters/audit TestLossIsSaid"),
		one("loss said before its place", "loss is said where the lines would stand", log, "l.batch.done, l.batch.over, l.over = 0, l.over, 0\n", "l.batch.done, l.batch.over, l.over = 0, 0, 0\n\tif l.lost.Load() > 0 && l.batch.left() == 0 {\n\t\tl.batch.over = l.lost.Swap(0)\n\t}\n", walk, "./adapters/audit TestLossIsSaid"),
		one("line is written twice after half a write", "each line is in the file once", line, "b.text[:min(n+1, len(b.text))]", "b.text[:n]", walk, "./adapters/audit TestHalfAWrite$"),
		one("line that follows a torn one", "a torn line ends before another begins", pen, "if p.at.torn {", "if false {", walk, "./adapters/audit TestATornLineEnds"),
		one("file that is never full", "a file has a limit", pen, "if p.at.size > 0 && p.at.size+int64(len(lines)) > p.limits.Size {", "if false {", "./adapters/audit TestFullFilesAreKept", shelves),
		one("oldest file is kept", "so many files are kept", pen, "for gap < p.limits.Keep {", "for gap < p.limits.Keep+1 {", "./adapters/audit TestFullFilesAreKept", shelves),
		one("file moved twice", "no file is moved twice", pen, "errors.Is(err, fs.ErrNotExist) {\n\t\t\tbreak\n", "errors.Is(err, fs.ErrNotExist) {\n\t\t\tgap += 0\n", "./adapters/audit TestATurnThatFailedHalfWay", shelves),
		one("link that is followed", "what is no plain file is not followed", pen, "|syscall.O_NOFOLLOW", "", "./adapters/audit TestWhatStandsInItsPlace", shelves),
		one("pipe that is written to", "what is no plain file is not written to", pen, "err = ErrFile", "", "./adapters/audit TestWhatStandsInItsPlace", shelves),
		one("writes to what was taken away", "a file that is taken away is followed by another", pen, "if p.at.file != nil && !p.at.Here() {", "if false {", "./adapters/audit TestAFileThatIsTakenAway", shelves),
		one("end that leaves the queue", "the end writes all", log, "	l.mu.Unlock()\n\tl.flush()\n", "	l.mu.Unlock()\n", "./adapters/audit TestTheEndWritesAll", "./adapters/audit TestNotesMeetTheEnd$"),
		one("line noted after the end", "what is noted after the end is lost, and counted", log, "room := !l.ended && len", "room := len", "./adapters/audit TestTheEndWritesAll", "./adapters/audit TestNotesMeetTheEnd$"),
		one("error said each time", "an error of the disk is said once", log, "	if !l.failing {\n", "	{\n", "./adapters/audit TestADiskThatRefuses", "./adapters/audit TestTheEndOfARefusingDisk$"),
		one("text as it came", "hostile texts are escaped", line, "case r >= ' ' && r <= '~':", "case r >= ' ' && r <= '~', r > 0x7f && r <= 0xff:", "./adapters/audit TestHostileTexts", "./adapters/audit TestTextsAreGolden$"),
		one("quote that ends the text", "hostile texts are escaped", line, `case r == '"', r == '\\':`, `case r == '\\':`, "./adapters/audit TestHostileTexts", "./adapters/audit TestTextsAreGolden$"),
		one("text without an end", "a line is bounded", line, "	cut(&l.Peer, maxPeer)\n", "", "./adapters/audit TestHostileTexts", "./adapters/audit TestTheLongestLine"),
		one("line that waits for more", "a line is there within a second", log, "case <-due.C:", "case <-l.some:", "./adapters/audit TestALineIsThereWithinASecond", "./adapters/audit TestADiskThatRefuses$"),
		one("open to all", "for its owner alone", pen, "0o600)", "0o644)", "./adapters/audit TestALineIsThereWithinASecond", shelves),
	}
}
