package mutants

// sinks are faults of the delivery to sinks.
func sinks() []Mutant {
	const (
		dir      = "adapters/export/"
		contract = "./adapters/export TestFaultsAreRetryable$"
		order    = "./adapters/export TestSinksDeliverInOrderUnderFaults$"
		stream   = "./adapters/export TestStreamKeepsOneItem$"
		topic    = "./adapters/export TestTopicKeepsOneRecord$"
		crash    = "./adapters/export TestFilesSurviveCrashAtEachOperation$"
		lives    = "./adapters/export TestFilesAgreeWithLanes$"
		again    = "./adapters/export TestLineIsNotRepeatedAfterRestart$"
		statuses = "./adapters/export TestStatusDecides$"
		listed   = "./adapters/index TestUsageIsListed$"
	)
	return []Mutant{
		alone("only there is a sink changed", one("a changed sink begins before the old one has ended", "a lane has one exporter", "cmd/macronode/internal/server/exports_change.go", "if at.follows(old) {", "if false && at.follows(old) {", "./cmd/macronode/internal/cli TestChangedSinkWaitsForOldOne$")),
		alone("the same", one("a changed sink delivers its backlog to the old receiver", "after a reload, the old receiver gets nothing else", "cmd/macronode/internal/server/exports_change.go", "old.leave()", "old.stop()", "./cmd/macronode/internal/cli TestChangedSinkWaitsForOldOne$")),
		alone("only there does no receiver answer", one("a change does not cut what is delivered", "a receiver that hangs is replaced within seconds", "cmd/macronode/internal/server/exporter.go", "e.mu.Unlock()\n\t\t\tcut()\n", "e.mu.Unlock()\n", "./cmd/macronode/internal/cli TestHangingReceiverIsReplaced$")),
		alone("only there does a delivery outlive its sink", one("a sink that waits for an earlier delivery is ok", "a sink that delivers nothing is not ok", "cmd/macronode/internal/server/exports_admin.go", "case waits:", "case waits && false:", "./cmd/macronode/internal/server TestChangedSinkShowsWhatItWaitsFor$")),
		alone("the same", one("the lag begins again with a change", "the lag is that of the oldest item", "cmd/macronode/internal/server/exports_admin.go", "if !old.oldest.IsZero() {", "if false {", "./cmd/macronode/internal/server TestChangedSinkShowsWhatItWaitsFor$")),
		alone("the same", one("a sink is removed while it delivers", "positions of a sink are removed when nothing of it runs", "cmd/macronode/internal/server/exports_admin.go", "if old, any := e.leavingOf(sink, time.Now()); any {", "if old, any := e.leavingOf(sink, time.Now()); any && lanes > 0 {", "./cmd/macronode/internal/server TestChangedSinkShowsWhatItWaitsFor$")),
		alone("the same", one("a directory that is still in use rejects a reload", "a sink waits for the directory of another one", "cmd/macronode/internal/server/exports_change.go", "have := slices.Concat(e.sinks(), slices.DeleteFunc(slices.Clone(e.leaving), (*exporter).hasEnded))", "have := e.sinks()", "./cmd/macronode/internal/server TestChangedSinkShowsWhatItWaitsFor$")),
		alone("only there does a redelivery fail for a while", one("redriven items are not shown", "each item that waits is in the status", "cmd/macronode/internal/server/exports_admin.go", "s.Redriven += l.Redriven", "s.Redriven += 0", "./cmd/macronode/internal/cli TestExports$")),
		alone("only there does a command not end", one("a delivery that does not end is not logged", "the log says that a change waits", "cmd/macronode/internal/server/exporter.go", "late = time.After(slowAnswer)", "late = nil", "./cmd/macronode/internal/server TestDeliveryThatDoesNotEndIsLogged$")),
		alone("only there is a server hostile", one("a server of NATS announces messages of any size", "no receiver ends the process", dir+"nats_conn.go", "if bytes > natsMessage {", "if false {", "./adapters/export TestHostileServerOfNATS$")),
		alone("the client of NATS skips what is there", one("the end of a message of NATS is not checked", "no receiver ends the process", dir+"nats_conn.go", "if len(line) > 0 {", "if len(line) > 1<<20 {", "./adapters/export TestProtocolOfNATS$")),
		alone("only there is a server hostile", one("a server of PostgreSQL sends a message of any size", "no receiver ends the process", dir+"postgres_conn.go", "f.SetMaxBodyLen(databaseBytes)", "f.SetMaxBodyLen(1 << 30)", "./adapters/export TestHostileServerOfPostgreSQL$")),
		alone("the limit of a connection is far", one("a connection to PostgreSQL is used to its limit", "no receiver ends the process", dir+"postgres_conn.go", "return ok && is.received.Load() < databaseBytes/2", "return ok && is.received.Load() < 2*databaseBytes", "./adapters/export TestConnectionIsReplaced$")),
		alone("only there are certificates replaced", one("a connection to PostgreSQL uses the files of an earlier one", "certificates are replaced while the node runs", dir+"postgres_config.go", "*to = *is.ConnConfig", "_ = is", "./adapters/export TestFilesOfDatabaseAreReadForEachConnection$")),
		alone("only there is an option invalid", one("an invalid option of a database is found by the sink", "config check rejects what a start rejects", "cmd/macronode/internal/settings/exports.go", "if s.Kind == export.KindPostgres {", "if false {", "./cmd/macronode/internal/settings TestOptionsOfSinksAreChecked$")),
		alone("only there is a permission given", one("a client of Kafka without permission is kept", "what an operator mends takes effect", dir+"kafka_client.go", "replaced := k.refused && len(k.records) == 0", "replaced := k.refused && len(k.records) > 0", "./adapters/export TestPermissionIsAskedForAgain$")),
		one("a redirect counts as delivered", "only 2xx acknowledges an item", dir+"http.go", "case s >= 200 && s < 300:", "case s >= 200 && s < 400:", statuses, contract),
		one("a redirect is followed", "an item goes to no other address", dir+"http.go", "return http.ErrUseLastResponse", "return nil", statuses, contract),
		one("a sink rejects what fails for now", "an item is never given up because a receiver is down", dir+"http.go", "r := Result{Outcome: Retryable, Status:", "r := Result{Outcome: Permanent, Status:", statuses, contract, order),
		one("a dimension is several segments of a path", "other items have other paths", dir+"http.go", "c == '.' && !dots:", "c == '.' && !dots, c == '/':", "./adapters/export TestPathSegment$", "./adapters/export TestItemPathsAreDistinct$"),
		alone("elsewhere the line that takes its place covers it", one("a torn line of an export stays", "each line of a file is whole", dir+"file.go", "errors.Join(f.Truncate(size), f.Sync())", "f.Sync()", "./adapters/export TestTornLineIsCut$")),
		one("an exported line is not synced", "an item is durable before it is acknowledged", dir+"file.go", "err = l.file.Sync()", "err = error(nil)", contract, crash, lives),
		one("a line is repeated after a restart", "a crash repeats no line of a file", dir+"file_tail.go", "if seq > r.last ||", "if true || seq > r.last ||", crash, lives, again),
		one("a torn line with an end stays", "each line of a file is an object", dir+"file.go", "case !jsontext.Value(last).IsValid():", "case !jsontext.Value(`{}`).IsValid():", crash, lives),
		one("the name of a file of exports is not synced", "an item is durable before it is acknowledged", dir+"file.go", "if err := f.disk.syncDir(f.dir.path); err != nil || l.tail != nil {", "if err := error(nil); err != nil || l.tail != nil {", crash, lives),
		alone("only there is the process killed between a sync that fails and its repair", one("a line that could not be synced counts as delivered after a restart", "an item is durable before it is acknowledged", dir+"file.go", `_, err = f.WriteAt(append(bytes.Clone(last), '\n'), from)`, "_ = from", "./adapters/export TestLineOfFailedSyncIsWrittenAgain$")),
		alone("on a simulated disk it takes long to find the shortest case", one("a line that could not be cut is repeated", "a line is once in a file, also if its sync fails", dir+"file.go", "if l.failed && number == l.number {", "if false {", contract)),
		alone("other tests do not move a file", one("a line of a file that was moved counts as delivered", "what an operator delivers again is in a file", dir+"file.go", "return had && f.disk.has(f.pathOf(l.stream, number))", "return had && number > 0", "./adapters/export TestLineOfMovedFileIsWrittenAgain$")),
		one("a file that vanishes is replaced", "the files of a stream have no gap", dir+"file.go", "if err := f.checkHere(); err != nil {", "if err := error(nil); err != nil {", "./adapters/export TestVanishedFilesAreNotReplaced$", "./cmd/macronode/internal/cli TestFilesThatVanish$"),
		one("a file without the last lines is written on after a restart", "the files of a stream have no gap", dir+"file.go", "err = f.checkFollows(l, item)", "err = error(nil)", "./adapters/export TestFilesBehindLaneAreRefused$", "./cmd/macronode/internal/cli TestFilesThatVanish$"),
		alone("only there has a file lost lines", one("a file that has lost lines is written on", "the files of a stream have no gap", dir+"file.go", "case size < l.size:", "case size < 0:", "./adapters/export TestVanishedFilesAreNotReplaced$")),
		alone("elsewhere the missing file comes first", one("a directory that vanishes is made again", "a sink does not write below a mount point", dir+"directory.go", "if d.is.Load() == nil {", "if d.is.Load() == nil || true {", "./adapters/export TestDirectoryIsNotMadeAgain$")),
		one("two sinks write into one directory", "a file sink has its directory for itself", dir+"directory.go", "lock, err := d.disk.lock(at, d.holder)", "lock, err := (*fs.Held)(nil), error(nil)\n\t_ = at", "./adapters/export TestDirectoryHasOneSink$", "./adapters/export TestReplacedDirectoryIsLockedAnew$"),
		alone("only there leads another path to it", one("a file sink writes into a directory of the node", "the node deletes nothing that a sink has acknowledged", dir+"directory.go", "os.SameFile(is, other) && (own || !r.Only)", "at == r.Path && os.SameFile(is, other) && (own || !r.Only)", "./adapters/export TestDirectoryHasOneSink$")),
		alone("the receiver of the contract uses the same function", one("a signature leaves out the time", "a captured webhook cannot be sent later", dir+"webhook.go", `[]byte(id + "." + at + ".")`, `[]byte(id + ".." + at[:0])`, "./adapters/export TestWebhookSignature$")),
		alone("elsewhere the window of the server covers it", one("a message of NATS is published wherever it is", "an item is once in a stream, however late it is repeated", dir+"nats.go", "jetstream.WithExpectLastSequencePerSubject(0), ", "", stream)),
		alone("the contract finds it, and takes long to find the shortest case", one("a message of NATS has no id", "the server drops what it has seen", dir+"nats.go", "jetstream.WithMsgID(item.ID), ", "", stream)),
		alone("only there has the stream another message", one("another message counts as the item", "only the same bytes are a duplicate", dir+"nats.go", "!bytes.Equal(has.Data, body)", "false", stream)),
		alone("only its proxy changes acknowledgements", one("any answer of NATS acknowledges", "an item is delivered when its stream has a place for it", dir+"nats.go", "ack.Stream != n.config.Stream || ack.Sequence == 0", "false", contract)),
		one("a topic is not read before the first record", "an item is once in a topic, also after a restart", dir+"kafka_client.go", "	for at < next {", "	for false && at < next {", topic, "./adapters/export TestTailOfPartition$"),
		alone("the test of kills finds it, in some seeds", one("a record is produced while the topic is read", "an item is once in a topic, also after a restart", dir+"kafka_client.go", "tailUnread, tailReading)", "tailUnread, tailRead)", "./adapters/export TestNothingIsProducedBeforeTheTail$")),
		alone("only there is a record repeated by the same client", one("a record is produced again while the client has it", "an item is once in a topic, however often it is repeated", dir+"kafka.go", "case !waiting:", "case true:", topic)),
		alone("only there has the topic another record", one("another record counts as the item", "only the same bytes are a duplicate", dir+"kafka.go", "found && has != value, waiting", "false && has != value, waiting", topic)),
		alone("it is read by seq only here", one("a slice of the index has another window", "a slice is found by its seq", "adapters/index/streams.go", "Seq: seq - 1}}", "Seq: seq}}", listed)),
	}
}
