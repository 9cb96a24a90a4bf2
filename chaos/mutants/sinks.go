package mutants

// sinks are faults of the delivery to sinks.
func sinks() []Mutant {
	const (
		dir      = "adapters/export/"
		contract = "./adapters/export TestFaultsAreRetryable$"
		order    = "./adapters/export TestSinksDeliverInOrderUnderFaults$"
		stream   = "./adapters/export TestStreamKeepsOneItem$"
		topic    = "./adapters/export TestTopicKeepsOneRecord$"
		statuses = "./adapters/export TestStatusDecides$"
		listed   = "./adapters/index TestUsageIsListed$"
	)
	return []Mutant{
		alone("only there is a sink changed", one("a changed sink begins before the old one has ended", "a lane has one exporter", "cmd/macronode/internal/server/exports_change.go", "if at.follows(old) {", "if false && at.follows(old) {", "./cmd/macronode/internal/cli TestChangedSinkWaitsForOldOne$")),
		alone("the same", one("a changed sink delivers its backlog to the old receiver", "after a reload, the old receiver gets nothing else", "cmd/macronode/internal/server/exports_change.go", "old.leave()", "old.stop()", "./cmd/macronode/internal/cli TestChangedSinkWaitsForOldOne$")),
		one("a redirect counts as delivered", "only 2xx acknowledges an item", dir+"http.go", "case s >= 200 && s < 300:", "case s >= 200 && s < 400:", statuses, contract),
		one("a redirect is followed", "an item goes to no other address", dir+"http.go", "return http.ErrUseLastResponse", "return nil", statuses, contract),
		one("a sink rejects what fails for now", "an item is never given up because a receiver is down", dir+"http.go", "r := Result{Outcome: Retryable, Status:", "r := Result{Outcome: Permanent, Status:", statuses, contract, order),
		one("a dimension is several segments of a path", "other items have other paths", dir+"http.go", "c == '.' && !dots:", "c == '.' && !dots, c == '/':", "./adapters/export TestPathSegment$", "./adapters/export TestItemPathsAreDistinct$"),
		one("a torn line of an export stays", "each line of a file is whole", dir+"file.go", "errors.Join(f.Truncate(size), f.Sync())", "f.Sync()", order, "./adapters/export TestTornLineIsCut$"),
		alone("a power loss shows it", one("an exported line is not synced", "an item is durable before it is acknowledged", dir+"file.go", "if err := l.file.Sync(); err != nil {", "if err := error(nil); err != nil {", contract)),
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
