package mutants

// sinks are faults of the delivery to sinks.
func sinks() []Mutant {
	const (
		dir      = "adapters/export/"
		contract = "./adapters/export TestFaultsAreRetryable$"
		order    = "./adapters/export TestSinksDeliverInOrderUnderFaults$"
		stream   = "./adapters/export TestStreamKeepsOneItem$"
		statuses = "./adapters/export TestStatusDecides$"
		listed   = "./adapters/index TestUsageIsListed$"
	)
	return []Mutant{
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
		alone("it is read by seq only here", one("a slice of the index has another window", "a slice is found by its seq", "adapters/index/streams.go", "Seq: seq - 1}}", "Seq: seq}}", listed)),
	}
}
