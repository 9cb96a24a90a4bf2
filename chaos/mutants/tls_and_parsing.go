package mutants

// wire are bugs of TLS and of the parsing of request bytes.
func wire() []Mutant {
	const (
		server = "adapters/httpserver/"

		smuggling = "./adapters/httpserver TestAmbiguousFramingIsRejected$"
		wrong     = "./adapters/httpserver TestInvalidChunksAbortResponse$"
		framing   = "./adapters/httpserver FuzzFraming$"
		streams   = "./adapters/httpserver TestConcurrentStreamLimits$"
		read      = "./adapters/httpserver TestReadCertificate$"

		ends    = "./adapters/httpserver TestHTTP2FramingAgreesWithFields$"
		spoken  = "one table has every form of HTTP/2"
		hostile = "only one table has such requests"
		late    = "one test has a request go wrong behind its handler's beginning"
		shaken  = "only one test inspects a handshake"
	)
	return []Mutant{
		alone(hostile, one("one of two lengths is used", "a request has one end", server+"framing.go", "case f.isTrailer, f.contentLengths+f.transferCodings > 0:", "case f.isTrailer:", smuggling)),
		alone(hostile, one("coding of HTTP/1.0 is accepted", "a request has one end", server+"framing.go", "f.kind == transferEncoding && (f.isHTTP10 || ", "f.kind == transferEncoding && (", smuggling)),
		alone(hostile, one("folded line is accepted", "a request has one end", server+"framing.go", "\tcase !isTokenChar[c]:\n", "\tcase f.state == beforeField && c == ' ':\n\t\tf.state = inValue\n\tcase !isTokenChar[c]:\n", smuggling)),
		alone(late, one("invalid body ends normally", "a request is never shortened", server+"guard.go", "if why := f.of.rejectReason(f.request); why != nil {", "if why := f.of.rejectReason(f.request); false {", wrong)),
		alone(late, one("request after an invalid one is served", "no request smuggling", server+"guard.go", "wrong > 0 && request >= wrong", "wrong > 0 && request == wrong", wrong)),
		one("served requests are not counted", "an invalid request is rejected", server+"guard.go", "	g.served++\n", "", smuggling, framing),
		alone("only a request for the server itself shows it", one("guard does not count a request", "an invalid request is rejected", server+"httpserver.go", "DisableGeneralOptionsHandler: true,", "DisableGeneralOptionsHandler: false,", framing)),
		one("limit of streams is doubled", "streams are bounded", server+"httpserver.go", "MaxConcurrentStreams: c.Streams,", "MaxConcurrentStreams: 2 * c.Streams,", streams, "./adapters/httpserver TestRapidReset$"),
		one("streams of all connections are not counted", "requests of all connections are bounded", server+"streams.go", "case l.streams > l.most:", "case l.streams < 0:", streams, "./adapters/httpserver TestStreamsAgreeWithModel$"),
		one("receive window is too large", "unread data is bounded", server+"httpserver.go", "MaxReceiveBufferPerStream: c.Window,", "MaxReceiveBufferPerStream: 1 << 20,", "./adapters/httpserver TestUnreadDataIsBounded$", "./adapters/httpserver TestServerUsesEachLimit$"),
		one("requests of a client share one receive window", "an unread body delays no other", server+"httpserver.go", "MaxReceiveBufferPerConnection: c.Streams * c.Window,", "MaxReceiveBufferPerConnection: c.Window,", "./adapters/httpserver TestUnreadBodyDelaysNoOtherOfItsConnection$", "./adapters/httpserver TestUnreadDataOfAllIsBounded$"),

		alone(spoken, one("first of two HTTP/2 lengths is used", "a request has one end", server+"guard.go", "case len(lengths) > 1:", "case len(lengths) > 2:", ends)),
		alone(spoken, one("missing end of a body is accepted", "a request is never shortened", server+"guard.go", "case int64(n) != r.ContentLength:", "case int64(n) < r.ContentLength:", ends)),
		alone(spoken, one("host besides the authority is accepted", "a request has one host", server+"guard.go", "case len(hosts) > 1 || len(hosts) == 1 && hosts[0] != r.Host:", "case len(hosts) > maxFields:", ends)),
		one("unknown expectation is forwarded over HTTP/2", "both protocols reject the same", server+"guard.go", "case r.Header.Get(\"Expect\") != \"\":", "case false:", ends, "./adapters/httpserver TestUnknownExpectationFails$"),

		alone(shaken, one("TLS 1.2 is accepted", "TLS is of version 1.3", server+"tls.go", "tls.VersionTLS13,", "tls.VersionTLS12,", "./adapters/httpserver TestTLSVersionAndKeyExchange$")),
		alone(shaken, one("required key exchange is not requested", "the configuration decides the key exchange", server+"tls.go", "	if quantum {\n", "	if false {\n", "./adapters/httpserver TestTLSVersionAndKeyExchange$")),
		alone("one client would resume a session", one("resumed session skips the certificate", "every client gets the certificate", server+"tls.go", "SessionTicketsDisabled: true,", "SessionTicketsDisabled: false,", "./adapters/httpserver TestCertificateIsReplaced$")),
		one("expired certificate is used", "an invalid certificate is not used", server+"certificate.go", "case !at.Before(cert.NotAfter):", "case false:", read, "./cmd/macronode/internal/server TestRenew$"),
		alone("one test has chains", one("chain in the wrong order is used", "an invalid certificate is not used", server+"certificate.go", "if err := cert.CheckSignatureFrom(all[i+1]); err != nil {", "if err := cert.CheckSignatureFrom(all[i+1]); false {", read)),
		alone("one test has chains", one("expiry of the first certificate only", "a chain expires with its first certificate", server+"certificate.go", "if cert.NotAfter.Before(c.notAfter) {", "if false {", read)),
		alone("one test breaks the connection", one("broken response seems complete", "no silent truncation: envoy-21647", server+"guard.go", "if s.reset.Load() {", "if false {", "./adapters/httpserver TestAbortedResponseHasNoCloseNotify$")),
		alone("one test has a foreign certificate", one("foreign certificate is accepted", "a key is sent to the node only", "cmd/macronode/internal/cli/client_tls.go", "!= print {", "== \"\" {", "./cmd/macronode/internal/cli TestNodeCertificate$")),
	}
}
