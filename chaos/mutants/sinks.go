package mutants

// sinks are faults of the delivery to sinks.
func sinks() []Mutant {
	const (
		dir      = "adapters/export/"
		contract = "./adapters/export TestFaultsAreRetryable$"
		order    = "./adapters/export TestSinksDeliverInOrderUnderFaults$"
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
		alone("the receiver of the contract uses the same function", one("a signature leaves out the time", "a captured webhook cannot be sent later", dir+"webhook.go", `[]byte(id + "." + at + ".")`, `[]byte(id + ".." + at[:0])`, "./adapters/export TestWebhookSignature$")),
		alone("it is read by seq only here", one("a slice of the index has another window", "a slice is found by its seq", "adapters/index/streams.go", "Seq: seq - 1}}", "Seq: seq}}", listed)),
	}
}
