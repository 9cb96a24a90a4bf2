package mutants

// wire are bugs of what stands before net/http: TLS, and the bytes of requests.
func wire() []Mutant {
	const (
		server = "adapters/httpserver/"

		smuggling = "./adapters/httpserver TestSmuggling$"
		wrong     = "./adapters/httpserver TestABodyThatGoesWrong$"
		framing   = "./adapters/httpserver FuzzFraming$"
		streams   = "./adapters/httpserver TestStreamsAreBounded$"
		read      = "./adapters/httpserver TestReadCertificate$"

		ends    = "./adapters/httpserver TestOneEndBySecond$"
		spoken  = "one table has every form of HTTP/2"
		hostile = "one table has every form, and nothing else sends any"
		late    = "one test has a request go wrong behind its handler's beginning"
		shaken  = "what was agreed on is seen in one handshake"
	)
	return []Mutant{
		alone(hostile, one("two lengths, and one is believed", "a request ends in one place", server+"framing.go", "case f.trailing, f.lengths+f.codings > 0:", "case f.trailing:", smuggling)),
		alone(hostile, one("coding of a version that has none", "a request ends in one place", server+"framing.go", "f.kind == aCoding && (f.old || ", "f.kind == aCoding && (", smuggling)),
		alone(hostile, one("line that is folded", "a request ends in one place", server+"framing.go", "	case !tokens[c]:\n", "	case f.at == ofField && c == ' ':\n\t\tf.at = inValue\n\tcase !tokens[c]:\n", smuggling)),
		alone(late, one("body that goes wrong and ends well", "no request is a shorter one", server+"guard.go", "if why := f.of.refuses(f.request); why != nil {", "if why := f.of.refuses(f.request); false {", wrong)),
		alone(late, one("request behind a wrong one", "nothing is smuggled", server+"guard.go", "wrong > 0 && request >= wrong", "wrong > 0 && request == wrong", wrong)),
		one("requests that nobody counts", "whose bytes were wrong is refused", server+"guard.go", "	g.served++\n", "", smuggling, framing),
		alone("only a server is asked for no resource", one("request that its guard does not count", "whose bytes were wrong is refused", server+"httpserver.go", "DisableGeneralOptionsHandler: true,", "DisableGeneralOptionsHandler: false,", framing)),
		one("twice as many streams", "requests of a connection are bounded", server+"httpserver.go", "MaxConcurrentStreams: c.Streams,", "MaxConcurrentStreams: 2 * c.Streams,", streams, "./adapters/httpserver TestRapidReset$"),
		alone("one test has two connections", one("streams that nobody adds up", "requests of all connections are bounded", server+"httpserver.go", "if s.stream(1) > int64(s.config.MaxConns) {", "if s.stream(1) < 0 {", streams)),
		alone("one test sends ahead", one("window that is wide open", "what was not read is bounded", server+"httpserver.go", "MaxReceiveBufferPerConnection: c.Window,", "MaxReceiveBufferPerConnection: 1 << 20,", "./adapters/httpserver TestWhatIsNotReadIsBounded$")),

		alone(spoken, one("two lengths by HTTP/2, and the first is believed", "a request ends in one place", server+"guard.go", "case len(lengths) > 1:", "case len(lengths) > 2:", ends)),
		alone(spoken, one("body that was announced and never came", "no request is a shorter one", server+"guard.go", "case int64(n) != r.ContentLength:", "case int64(n) < r.ContentLength:", ends)),
		alone(spoken, one("host beside the authority", "a request is to one host", server+"guard.go", "case len(hosts) > 1 || len(hosts) == 1 && hosts[0] != r.Host:", "case len(hosts) > mostFields:", ends)),

		alone(shaken, one("older TLS", "TLS is of version 1.3", server+"tls.go", "tls.VersionTLS13,", "tls.VersionTLS12,", "./adapters/httpserver TestVersionAndKeyExchange$")),
		alone(shaken, one("required, and not asked for", "keys are agreed on as the operator says", server+"tls.go", "	if quantum {\n", "	if false {\n", "./adapters/httpserver TestVersionAndKeyExchange$")),
		alone("one client would resume", one("handshake that shows nothing", "who comes is shown the certificate that there is", server+"tls.go", "SessionTicketsDisabled: true,", "SessionTicketsDisabled: false,", "./adapters/httpserver TestAnotherCertificate$")),
		one("certificate that is over", "a bad one is not shown", server+"certificate.go", "case !at.Before(one.NotAfter):", "case false:", read, "./cmd/macronode TestRenew$"),
		alone("one test has chains", one("chain in any order", "a bad one is not shown", server+"certificate.go", "if err := one.CheckSignatureFrom(all[i+1]); err != nil {", "if err := one.CheckSignatureFrom(all[i+1]); false {", read)),
		alone("one test has chains", one("end of the first alone", "a chain is over when one of it is", server+"certificate.go", "if one.NotAfter.Before(c.ends) {", "if false {", read)),
		alone("one test breaks off", one("answer that breaks off and seems whole", "no silent truncation: envoy-21647", server+"guard.go", "if s.reset.Load() {", "if false {", "./adapters/httpserver TestABrokenAnswerHasNoEnd$")),
		alone("one test has a stranger", one("stranger with a certificate", "a key goes to the node alone", "cmd/macronode/tls.go", "!= print {", "== \"\" {", "./cmd/macronode TestTheNodeProvesItself$")),
	}
}
