package mutants

// shell are bugs of what an operator is told, and of what he is kept from.
func shell() []Mutant {
	const (
		server, shell = "adapters/httpserver/", "cmd/macronode/"

		taken  = "./adapters/httpserver TestAnAddressThatCannotBeTakenIsOneSentence$"
		socket = "./adapters/httpserver TestUnixSockets$"
		atOnce = "./adapters/httpserver TestFreeIsOfAllAtOnce$"
		held   = "./cmd/macronode TestADirectoryThatIsHeld$"
	)
	return []Mutant{
		alone("one table has all that stands at a path", one("a file taken for a socket", "what the node did not make it leaves alone", server+"listener.go", "return ErrNoSocket\n", "return nil\n", taken)),
		one("a socket taken from who listens", "what the node did not make it leaves alone", server+"listener.go", "		_ = c.Close()\n\t\treturn ErrInUse\n", "		_ = c.Close()\n\t\treturn nil\n", atOnce, socket),
		one("a lock that outlives its holder", "status tells who holds the directory", "adapters/fs/lock.go", "!errors.Is(err, syscall.EWOULDBLOCK)", "err != nil && !errors.Is(err, syscall.EWOULDBLOCK)", held, "./adapters/fs TestGivenBack$"),
		alone("a check is one verb", one("a check that reads no certificate", "what a check calls good a start takes", shell+"settings.go", "readCertificate(cfg); err != nil", "readCertificate(cfg); err != nil && false", "./cmd/macronode TestACheckReadsTheCertificate$")),
		alone("nothing else is renewed without a key", one("a renewal that nobody counts", "what was applied is said", shell+"reload.go", "!next.shown.Same(l.tls.Shown())", "false", "./cmd/macronode TestARenewalIsCounted$")),
		one("entries that are told by their place", "of a list is told what changed", shell+"changed.go", "kept := common(old, new)\n", "kept := [][2]int(nil)\n", "./cmd/macronode TestDiffers$", "./cmd/macronode TestOneOfMany$"),
		alone("one test has a certificate follow another", one("a certificate that the one before it was warned of", "each certificate is warned of", shell+"tls.go", "!shown.Same(l.watched)", "false", "./cmd/macronode TestACertificateIsWatched$")),
		alone("one table has what status says", one("a certificate that is over, and status does not say", "status says what the log does", shell+"status.go", "case over.String():", "case \"over and over\":", "./cmd/macronode TestStatus$")),
		alone("one table has who is named", one("a breaker of nobody", "readyz names the upstreams", "adapters/adminapi/routes.go", "m.Broken = a.Upstreams(s.OpenCircuits)", "m.Broken = a.Upstreams(s.AwaitedUpstreams)", "./adapters/adminapi TestAwaitedUpstreamsAreNamed$")),
	}
}
