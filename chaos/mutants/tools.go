package mutants

// shell are bugs of tools and messages for operators.
func shell() []Mutant {
	const (
		server, shell = "adapters/httpserver/", "cmd/macronode/"

		taken  = "./adapters/httpserver TestListenErrorsAreSentences$"
		socket = "./adapters/httpserver TestUnixSockets$"
		atOnce = "./adapters/httpserver TestCheckAddressesOfAll$"
		held   = "./cmd/macronode/internal/cli TestLockedDirectoryIsReported$"
	)
	return []Mutant{
		alone("one table has every kind of file at a path", one("file is replaced by a socket", "files of others are not touched", server+"listener.go", "return ErrNoSocket\n", "return nil\n", taken)),
		one("socket of a running process is replaced", "files of others are not touched", server+"listener.go", "		_ = c.Close()\n\t\treturn ErrInUse\n", "		_ = c.Close()\n\t\treturn nil\n", atOnce, socket),
		one("free lock counts as held", "status names the holder of the directory", "adapters/fs/lock.go", "return false, f.Close()", "return true, f.Close()", held, "./adapters/fs TestCloseReleasesLock$"),
		alone("a check is one verb", one("check does not read the certificate", "a checked configuration starts", "cmd/macronode/internal/cli/settings.go", "settings.ReadCertificate(cfg); err != nil", "settings.ReadCertificate(cfg); err != nil && false", "./cmd/macronode/internal/cli TestConfigCheckReadsCertificate$")),
		alone("nothing else is renewed without a key", one("renewed certificate is not logged", "applied changes are reported", "cmd/macronode/internal/server/reload.go", "!next.certificate.Equal(r.certificates.tls.Certificate())", "false", "./cmd/macronode/internal/server TestRenewalIsCounted$")),
		one("a malformed line stops a batch", "a rejected line is reported and the next one is applied", "cmd/macronode/internal/cli/batch.go", "if p.v.Atomic || !errors.As(err, &problem)", "if !errors.As(err, &problem) || problem != nil", "./cmd/macronode/internal/cli TestBatch$", "./cmd/macronode TestScripts/^wallet$"),
		alone("one test needs no small disk", one("a restore without space is a wrong usage", "scripts see a failure as one", "cmd/macronode/internal/offline/restore.go", "\treturn fmt.Errorf(\"the restore into %s is not completed: %w\", cfg.Data, err)", "\treturn exit.Unable(fmt.Errorf(\"the restore into %s is not completed: %w\", cfg.Data, err))", "./cmd/macronode/internal/offline TestInterruptedRestoreHasFailed$")),
		alone("one test validates a backup", one("a damaged header passes a validation", "restore --validate agrees with verify", "cmd/macronode/internal/offline/restore.go", "v.OK = v.isIntact()", "v.OK = v.IsComplete()", "./cmd/macronode/internal/offline TestValidateAgreesWithVerify$")),
		one("explain prints control characters", "a client does not change the terminal of an operator", "cmd/macronode/internal/explain/printable.go", "|| !unicode.IsPrint(r) {", "|| unicode.IsPrint(r) && false {", "./cmd/macronode/internal/explain TestUnprintableCharactersAreEscaped$", "./cmd/macronode/internal/cli TestExplainEscapesPath$"),
		one("a path that is no text cannot be explained", "each decision can be shown", "adapters/httpapi/admission.go", "strings.ToValidUTF8(p[:min(len(p), maxPath)], \"\\ufffd\")", "p[:min(len(p), maxPath)]", "./adapters/httpapi TestPathOfDecisionIsText$", "./cmd/macronode/internal/cli TestExplainEscapesPath$"),
		one("a malformed line of a pipe ends the run", "a rejected line is reported and the next one is applied", "cmd/macronode/internal/cli/batch.go", "if err != nil && (p.v.Atomic ||", "if err != nil && (true ||", "./cmd/macronode/internal/cli TestMalformedLineOfPipe$", "./cmd/macronode TestScripts/^wallet$"),
		one("diff compares list entries by position", "a diff shows the changed entries", "cmd/macronode/internal/cli/config_changes.go", "kept := commonSubsequence(old, new)\n", "kept := [][2]int(nil)\n", "./cmd/macronode/internal/cli TestDescribeChange$", "./cmd/macronode/internal/cli TestOneChangedEntryOfMany$"),
		alone("one test has a certificate follow another", one("second certificate gets no warning", "each certificate gets a warning", "cmd/macronode/internal/server/certificates.go", "!shown.Equal(c.logged)", "false", "./cmd/macronode/internal/server TestCertificateExpiryIsLogged$")),
		alone("one table has what status says", one("expired certificate is missing in status", "status shows what the log shows", "cmd/macronode/internal/cli/status.go", "case settings.CertificateOver.String():", "case \"settings.CertificateOver and settings.CertificateOver\":", "./cmd/macronode/internal/cli TestStatus$")),
		alone("one table has the names of upstreams", one("readyz names the wrong upstreams", "readyz names the upstreams", "adapters/adminapi/routes.go", "m.Broken = a.Upstreams(open)", "m.Broken = a.Upstreams(s.AwaitedUpstreams)", "./adapters/adminapi TestVerboseNamesAwaitedUpstreams$")),
	}
}
